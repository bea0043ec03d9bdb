"""The evaluators of trainings: one for each seed, isolated if requested and possible."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.runs.termination import on_termination
from syno.store.records import OK, PAUSED
from syno.study.evaluate import evaluator as evaluation
from syno.study.evaluate.checkpoints import checkpoint
from syno.study.evaluate.evaluator import NetworkEvaluator
from syno.study.evaluate.evaluator_settings import EvaluatorSettings
from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator
from syno.study.evaluate.isolation import isolated

if TYPE_CHECKING:
    from syno.operators.operator import Operator
    from syno.store import Outcome
    from syno.study.observer import StudyObserver
    from syno.study.training.trainings import Trainings
    from syno.train import ProcessGroup


class Evaluators:
    """The evaluator of each seed, in separate processes if requested and possible.

    Only one evaluator exists at a time, because trainings are ordered by seed.

    Args:
        trainings: what is trained.
        group: the processes that train together, of which this is one.
        observer: is called with the steps of evaluations.
        weights: a folder for the trained weights; None to keep none.
    """

    def __init__(
        self,
        trainings: Trainings,
        group: ProcessGroup,
        observer: StudyObserver,
        weights: Path | None = None,
    ) -> None:
        if group.world > 1 and trainings.options.isolation.isolate:
            raise UserError(
                f"{group.world} processes train one network, so its evaluation cannot be isolated\n"
                "  what to do: omit --isolate"
            )
        self._trainings, self._group, self._observer = trainings, group, observer
        self._weights = weights
        folder = trainings.options.checkpoints
        self._checkpoints = None if folder is None else Path(folder)
        self._seed: int | None = None
        self._evaluator: NetworkEvaluator | IsolatedEvaluator | None = None
        self._terminated = False

    def __enter__(self) -> Evaluators:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def run(self, operator: Operator | None, seed: int) -> Outcome | None:
        """Verify, train and time the network with an operator, or the original network (None).

        Returns:
            The outcome; None if the training was paused.
        """
        evaluator = self._of(seed)
        with self._passing_on(evaluator):
            outcome = evaluator.baseline() if operator is None else evaluator.evaluate(operator)
        # A signal before or after the training ended the process.
        paused = outcome.status == PAUSED or (self._terminated and outcome.status != OK)
        return None if paused else outcome

    def forget(self, operator: Operator | None, seed: int) -> None:
        """Delete the checkpoint of a training whose result is stored."""
        path = checkpoint(self._checkpoints, operator, seed)
        if path is not None:
            path.unlink(missing_ok=True)

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM arrived during an isolated evaluation."""
        return self._terminated

    def _close(self) -> None:
        if isinstance(self._evaluator, IsolatedEvaluator):
            self._evaluator.close()
        self._evaluator = self._seed = None

    def _of(self, seed: int) -> NetworkEvaluator | IsolatedEvaluator:
        if self._evaluator is None or seed != self._seed:
            self._close()
            self._evaluator, self._seed = self._made(seed), seed
        return self._evaluator

    def _made(self, seed: int) -> NetworkEvaluator | IsolatedEvaluator:
        given, first = self._trainings, self._group.is_first
        options = given.options
        network = given.network(seed)
        settings: EvaluatorSettings = {
            "fidelity": given.fidelity,
            "seed": seed,
            "timing": options.timing,
            "deadline_s": options.train.deadline_s,
            "kernels": options.train.kernels or "eager",
            "device": options.device,
            "workers": options.workers,
            "checkpoints": self._checkpoints,
            "weights": self._weights if first else None,
            "measured": given.latency and first,
            "quantization": given.quantization if first else None,
        }
        factory: Callable[..., NetworkEvaluator] = evaluation.make_evaluator
        data: tuple[object, ...] = (given.data, options.data_dir, given.dataset.fingerprint)
        data += (options.train.tokenizer,)
        if given.own is not None:
            factory, data = evaluation.make_custom_evaluator, (given.own,)
        made = isolated(
            factory,
            network,
            *data,
            wanted=False if self._group.world > 1 else options.isolation.isolate,
            settings=settings,
            deadline_s=options.train.deadline_s,
            memory_limit=options.isolation.memory_limit,
            # Without a baseline, a few of its steps determine the time limit of operators.
            baseline_s=None
            if options.baseline or options.train.deadline_s
            else given.seconds_each(),
            observer=self._observer,
        )
        if made is not None:
            return made
        return NetworkEvaluator(network, given.dataset, observer=self._observer, **settings)

    @contextlib.contextmanager
    def _passing_on(self, evaluator: NetworkEvaluator | IsolatedEvaluator) -> Iterator[None]:
        """Send SIGTERM on to the isolated training, which writes a checkpoint and pauses.

        Without checkpoints, and without isolation, the signal has its usual effect.
        """
        kept = self._checkpoints is not None
        if not (kept and isinstance(evaluator, IsolatedEvaluator)):
            yield
            return

        def terminate() -> None:
            self._terminated = True
            evaluator.terminate()

        with on_termination(terminate):
            yield
