"""A worker: it takes proposals of drivers from a store, evaluates them and stores the results.

A worker may come, leave, or be killed at any time. It takes the operators as text, and reads them
under the specification of the study: nothing that a store contains is executed. Networks and data
are made on the machine of the worker, from their names in the settings of the study.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from syno._util.checks import names
from syno._util.errors import UserError
from syno._util.threads import usable_cores
from syno.operators.operator import Operator
from syno.operators.specification import read_specification
from syno.runs.termination import on_termination
from syno.space.rules import rule_set
from syno.store import (
    HEARTBEAT_S,
    ProposalRecord,
    Store,
    StudyRecord,
    UnavailableError,
    Worker,
)
from syno.store.environment import capture_environment
from syno.store.errors import persistently
from syno.store.records import ADAPTATION
from syno.study.answers import Answers
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.protocol import Evaluator, RungEvaluator
from syno.study.evaluate.weights import Weights
from syno.study.loop import PreemptedError, evaluate
from syno.study.observer import StudyObserver
from syno.study.prepared import evaluator_of, load_rungs
from syno.study.settings import GIVEN, check_data
from syno.study.sparingly import Sparingly
from syno.study.stoppers import Tally
from syno.study.study import settings_of

LOOK_S = 0.25  # between two looks for proposals
# After so many workers that were lost over an operator, it is given up.
MOST_LOSSES = 10
# Characters of the text of an operator, which has some hundreds.
MOST_TEXT = 1 << 16
MOST_TAGS, MOST_TAG = 64, 100
# Methods of studies that one process does alone.
_ALONE = (ADAPTATION, GIVEN)


class Bench(NamedTuple):
    """What a worker evaluates the proposals of one study with.

    parse: reads an operator from its text.
    checkpoints, weights: of this machine, where the evaluator writes them.
    """

    parse: Callable[[str], Operator]
    evaluator: Evaluator | RungEvaluator
    checkpoints: Checkpoints | None = None
    weights: Weights | None = None


class Prepare(Protocol):
    """Makes the bench of a study; a UserError says why this worker cannot."""

    def __call__(
        self, answers: Answers, observer: StudyObserver
    ) -> contextlib.AbstractContextManager[Bench]:
        """Return the bench, which is closed in the end."""


def work(
    store: Store,
    *,
    tags: Sequence[str] = (),
    study: str | int | None = None,
    idle_s: float | None = None,
    data_dir: str | None = None,
    device: str = "cpu",
    predictor: str | None = None,
    prepare: Prepare | None = None,
    observer: StudyObserver | None = None,
) -> int:
    """Evaluate proposals of drivers until SIGTERM, or until nothing was left to do for a while.

    Args:
        store: an open store, which other processes share.
        tags: what this worker offers, such as the name of its device. A study that needs tags is
            evaluated by workers that have all of them.
        study: the name or id of a study; None for any study of the store.
        idle_s: end after so many seconds without a proposal; None to wait for ever.
        data_dir: where the data is on this machine, if it is not where the study says.
        device: what trains networks: `cpu` or `cuda`.
        predictor: a file of a latency predictor: this worker predicts, and measures nothing.
        prepare: makes the evaluator of a study.
        observer: is called with the progress.

    Returns:
        The number of proposals that were evaluated.

    Raises:
        UserError: if the store is in memory, and if this worker cannot evaluate `study`.
    """
    if store.in_memory:
        raise UserError("a store in memory has no workers: other processes cannot reach it")
    made = prepare or _Prepared(data_dir, device, predictor)
    worker = _Working(store, check_tags(tags), study, made, observer or StudyObserver())
    with on_termination(_preempt):
        try:
            return worker.until_idle(idle_s)
        except PreemptedError:
            return worker.evaluated
        finally:
            worker.close()


def check_tags(given: Sequence[str]) -> tuple[str, ...]:
    """Return the tags of a worker.

    Raises:
        UserError: if they are too many, or one of them is empty or too long.
    """
    found = names("tags", given)
    if len(found) > MOST_TAGS or any(not 0 < len(tag) <= MOST_TAG for tag in found):
        raise UserError(
            f"tags (--tags) are at most {MOST_TAGS} texts of 1 to {MOST_TAG} characters"
        )
    return found


class _Working:
    def __init__(
        self,
        store: Store,
        tags: tuple[str, ...],
        study: str | int | None,
        prepare: Prepare,
        observer: StudyObserver,
    ) -> None:
        self._store, self._tags, self._prepare, self._observer = store, tags, prepare, observer
        self._note = observer.on_note
        self._only = None
        if study is not None:
            self._only = persistently(functools.partial(store.study, study), self._note)
        self._worker = Worker()
        self._made: tuple[Answers, Bench] | None = None  # for the study of the last proposal
        self._open = contextlib.ExitStack()
        self._refused: set[int] = set()  # studies that this worker cannot evaluate
        self._keep_checkpoints, self._keep_weights = Sparingly(), Sparingly()
        self.evaluated = 0
        self._began = time.monotonic()
        self._environment = capture_environment(
            threads=int(os.environ.get("OMP_NUM_THREADS") or usable_cores()),
            rules=str(rule_set().version),
        )
        announce = functools.partial(
            store.presence.announce, self._worker.name, self._environment, tags
        )
        persistently(announce, self._note)

    def until_idle(self, idle_s: float | None) -> int:
        """Evaluate what there is, until there was nothing for `idle_s` seconds."""
        last = beat = time.monotonic()
        while True:
            if persistently(self._step, self._note):
                last = beat = time.monotonic()
                continue
            if idle_s is not None and time.monotonic() - last >= idle_s:
                return self.evaluated
            if time.monotonic() - beat >= HEARTBEAT_S:
                persistently(
                    functools.partial(self._store.presence.beat, self._worker.name), self._note
                )
                beat = time.monotonic()
            time.sleep(LOOK_S)

    def close(self) -> None:
        """End the evaluator, and leave the store."""
        self._open.close()
        with contextlib.suppress(UserError):  # the store may be what failed
            self._store.presence.leave(self._worker.name)
        self._worker.close()

    def _step(self) -> bool:
        """Evaluate one proposal; return whether there was one."""
        if self._made is not None:
            self._made[0].release_all()
        for record in self._store.driven():
            if record.id in self._refused or record.settings.get("method") in _ALONE:
                continue
            if not self._store.is_waiting(record, self._worker.name):
                continue
            if self._only is not None and record.id != self._only.id:
                continue
            try:
                found = self._prepared(record)
                if found is not None and self._evaluate(*found):
                    return True
            except UnavailableError:
                raise
            except UserError as error:
                if self._only is not None:
                    raise
                self._refused.add(record.id)
                self._note(f"study '{record.name}' is left to others: {error}")
        return False

    def _prepared(self, record: StudyRecord) -> tuple[Answers, Bench] | None:
        """Return what evaluates a study; None for one that needs other tags."""
        if self._made is not None and self._made[0].record.id == record.id:
            return self._made
        events = self._store.events(record)
        settings = settings_of(record, events)
        if not set(settings.needs) <= set(self._tags):
            if self._only is not None:
                raise UserError(
                    f"study '{record.name}' needs workers with the tags "
                    f"{', '.join(settings.needs)}, and this one has "
                    f"{', '.join(self._tags) or 'none'}\n  what to do: --tags"
                )
            return None
        self._open.close()
        self._made = None
        rules = next((str(e.data["rules"]) for e in events if e.kind == "space"), "")
        answers = Answers(self._store, record, settings, rules, self._worker)
        answers.most_losses = MOST_LOSSES
        bench = self._open.enter_context(self._prepare(answers, self._observer))
        answers.counts_attempts = not getattr(bench.evaluator, "is_isolated", False)
        self._made = answers, bench
        return self._made

    def _evaluate(self, answers: Answers, bench: Bench) -> bool:
        """Take a proposal of a study and evaluate it; return whether there was one."""
        record = self._store.lease(
            answers.record, self._worker.name, counted=answers.counts_attempts
        )
        if record is None:  # another worker was faster
            return False
        answers.hold(record)
        if answers.settle(record):
            return True
        try:
            operator = None if record.text is None else _operator(bench, record)
        except UserError:
            answers.release(record.id)
            raise
        proposal = answers.made(record, operator)
        self._observer.on_ask(proposal)
        outcome = evaluate(answers, bench.evaluator, proposal, self._observer)
        self.evaluated += 1
        if bench.checkpoints is not None:
            keep = functools.partial(bench.checkpoints.keep, answers.checkpoints_needed)
            self._keep_checkpoints(keep)
        if bench.weights is not None:
            self._keep_weights(functools.partial(bench.weights.keep, answers.weights_needed))
        if outcome is not None:
            seconds = time.monotonic() - self._began
            self._observer.on_tell(proposal, outcome, Tally(self.evaluated, 0, seconds))
        return True


def _operator(bench: Bench, record: ProposalRecord) -> Operator:
    """Read the operator of a proposal, and check that it is the one that its key says."""
    text = record.text or ""
    if len(text) > MOST_TEXT:
        raise UserError(
            f"proposal {record.ask} has a text of {len(text):,} characters\n"
            f"  expected: an operator, of at most {MOST_TEXT:,} characters"
        )
    operator = bench.parse(text)
    if operator.key != record.key:
        raise UserError(
            f"proposal {record.ask} has an operator with the key {record.key}, and this worker "
            f"computes {operator.key} from its text\n"
            "  what to do: install the same version of Syno on all machines"
        )
    return operator


class _Prepared:
    """Makes the evaluator of a study from the names in its settings."""

    def __init__(self, data_dir: str | None, device: str, predictor: str | None) -> None:
        self._data_dir, self._device, self._predictor = data_dir, device, predictor

    @contextlib.contextmanager
    def __call__(self, answers: Answers, observer: StudyObserver) -> Iterator[Bench]:
        store, record, settings = answers.store, answers.record, answers.settings
        if settings.model is None or settings.metric is not None or settings.data is None:
            raise UserError(
                f"study '{record.name}' was started with a module or data of a program, which a "
                "store cannot hold\n"
                "  what to do: search with a model and data by name, or without workers"
            )
        own = str(rule_set(settings.extent.rules_off).version)
        if answers.rules != own:
            raise UserError(
                f"study '{record.name}' was started with the rules {answers.rules}, and this "
                f"worker has {own}\n  what to do: install the same version of Syno on all machines"
            )
        folder = self._data_dir or settings.data_dir
        rungs = load_rungs(settings.model, settings, folder, None)
        check_data(record.name, settings, rungs.marked(settings))
        specification = read_specification(record.specification)
        checkpoints = None if rungs.ladder is None else Checkpoints.of(store, record)
        weights = Weights.of(store, record)
        given = (store, record, settings, rungs, folder, observer, checkpoints, weights)
        with evaluator_of(*given, device=self._device, predictor=self._predictor) as evaluator:
            parse = functools.partial(Operator.from_text, specification=specification)
            yield Bench(parse, evaluator, checkpoints, weights)


def _preempt() -> None:
    """Raise PreemptedError; once, so that what follows is not interrupted again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise PreemptedError
