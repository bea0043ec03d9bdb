"""The first steps of an adaptation: candidates, fits and scores. The journal remembers each."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from torch import nn

from syno._util import numbers
from syno._util.errors import UserError, first_line
from syno._util.inputs import Inputs, first, samples_in
from syno.adaptation.pipeline.arguments import AdaptationArguments
from syno.adaptation.pipeline.assembly import plain
from syno.adaptation.pipeline.budget import Budget
from syno.adaptation.pipeline.channel_widths import ChannelWidths
from syno.adaptation.pipeline.delivery import ORIGINAL, Delivery
from syno.adaptation.pipeline.fine_tuning import FineTuner
from syno.adaptation.pipeline.goals import SLOTS, Goal, limited_costs
from syno.adaptation.pipeline.group_choices import (
    GroupChoices,
    ScoredGroups,
    group_choices,
    group_scores,
)
from syno.adaptation.pipeline.in_format import OWN_INT8, in_format
from syno.adaptation.pipeline.journal import POOL, AdaptationJournal, Scope, open_journal
from syno.adaptation.pipeline.kinds import Kind, kinds_of
from syno.adaptation.pipeline.latency import InterleavedTimer
from syno.adaptation.pipeline.length import Lengths
from syno.adaptation.pipeline.narrowing import Narrowed, Narrowing
from syno.adaptation.pipeline.pool import Candidate, CandidateDocument, candidates
from syno.adaptation.pipeline.progress import AdaptationObserver, Progress, shown
from syno.adaptation.pipeline.recorder import Recorder
from syno.adaptation.pipeline.results import NetworkRow
from syno.adaptation.pipeline.scores import Scorer
from syno.adaptation.pipeline.screening import Fits, ScreenedCandidate, fitted, screened
from syno.adaptation.pipeline.selection import Selector, Totals, name_of
from syno.adaptation.pipeline.source import AdaptationSource
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.engines import engine as known_engines
from syno.engines.engine_network import EngineNetwork
from syno.network.placeholder import slots
from syno.network.surgery import layer_report
from syno.operands.lookup import NamedOperator
from syno.operators.operator import Operator
from syno.options import AdaptOptions, TimingOptions, TrainOptions
from syno.store import Store
from syno.study.evaluate import engines
from syno.study.fronts import LATENCY

# The usual engine of the latencies, and that of networks which it does not take.
_LIBRARY, _COMPILED = "syno-cpp", "syno"
# With less time than this many hours, the original is not looked at in INT8.
_LEAST_HOURS = 0.2


@dataclass(frozen=True)
class Scored:
    """What is known of a network before operators are chosen.

    original: the network as it was. kinds: its slots. pool: all candidates that were tried.
    entries: those that were kept, by the kind of slot; errors: of their fits, by slot and name.
    one_slot: what they lose alone, as errors.
    """

    original: NetworkRow
    kinds: Mapping[str, Kind]
    pool: Sequence[Candidate]
    entries: Mapping[str, Sequence[ScreenedCandidate]]
    errors: Mapping[str, Mapping[str, float]]
    one_slot: Mapping[str, Mapping[str, float]]
    fits: Fits
    selector: Selector


class AdaptationRun:
    """An adaptation that runs, with what all of its steps use."""

    def __init__(
        self,
        subject: AdaptationSubject,
        source: AdaptationSource,
        options: AdaptOptions,
        journal: AdaptationJournal,
        budget: Budget,
        store: Store,
        seed: int,
        progress: AdaptationObserver,
        *,
        grows: bool,
    ) -> None:
        self.subject, self.source, self.options = subject, source, options
        self.journal, self.budget, self._store = journal, budget, store
        self.seed, self.progress = seed, progress
        self.recorded = Recorder(
            subject.copy,
            lambda: subject.inputs(options.fit_images),
            options.activation_mib << 20,
        )
        engine = options.engine or journal.once("engine", "", self._usual_engine)
        self.options = options = dataclasses.replace(options, engine=engine)
        self.delivery = Delivery(subject, options, journal)
        self.tuner = FineTuner(subject, options, journal, seed, self.note)
        self.lengths = Lengths(self.tuner, budget, grows=grows)
        self.clock = InterleavedTimer(
            subject.original, subject.example, self.delivery, options.threads, options.rounds
        )
        self.in_integers: tuple[NetworkRow, EngineNetwork] | None = None
        self.channels = ChannelWidths(subject, options.fit_images, journal, self.delivery)
        self.narrowing = (
            Narrowing(subject, options, journal, self.channels, self.clock)
            if options.widths
            else None
        )

    def _usual_engine(self) -> str:
        """The engine of libraries, or `syno.compile` for a network that cannot become one."""
        subject = self.subject
        try:
            found = known_engines.get(_LIBRARY)
            found.prepare(plain(subject.original), subject.example, self.options.threads)
            return _LIBRARY
        except UserError as error:
            self.note(
                f"latencies are those of syno.compile, because the network is no C++ library: "
                f"{first_line(error)}"
            )
            return _COMPILED

    def scored(self, operators: Sequence[NamedOperator], goals: Sequence[Sequence[Goal]]) -> Scored:
        """Gather candidates, fit and score them.

        goals: of the networks, which limit the same resources.
        """
        journal, budget = self.journal, self.budget
        scope = journal.scope(limited_costs(goals[0]))
        self.forecast(budget.forecast())
        with journal.phase("original"):
            original = self._original()
            self.in_integers = self._in_integers()
            self.lengths.check(len(goals))
        kinds = self._kinds()
        with journal.phase("candidates"):
            entries, pool = screened(
                kinds,
                self._pool(operators),
                self.recorded,
                self.delivery.formats,
                self.options,
                scope,
                budget,
                self.seed,
                self.told("candidates"),
            )
        self._foretell(kinds, entries, original, goals)
        fits = Fits(self.recorded, kinds)
        with journal.phase("fits"):
            errors = fitted(kinds, entries, fits, scope, budget, self.told("fits"))
        with journal.phase("scores"):
            slots_alone = any(goal.resource == SLOTS for goal in goals[0])
            one_slot, selector = self._selector(
                kinds, entries, errors, fits, original, scope, widths=not slots_alone
            )
        return Scored(original, kinds, pool, entries, errors, one_slot, fits, selector)

    def _kinds(self) -> dict[str, Kind]:
        """The kinds of slots, without those whose layers are frozen."""
        subject = self.subject
        template, frozen = subject.network.template, subject.frozen
        kept = [
            name
            for name, slot in slots(template).items()
            if slot.original is not None
            and any(f"{name}.{own}" in frozen for own, _ in slot.original.named_parameters())
        ]
        kinds = kinds_of(template, subject.example, causal=subject.network.causal, without=kept)
        if frozen:
            are, stay = ("is", "stays") if len(frozen) == 1 else ("are", "stay")
            self.note(
                f"{numbers.counted(len(frozen), 'parameter')} of the network, such as "
                f"{min(frozen)}, {are} frozen (requires_grad is False) and {stay} the same; layers "
                "that have one are not replaced, and keep their channels"
            )
        if not kinds:
            raise UserError(
                "the layers of all slots are frozen\n"
                "  expected: layers that are trained      what to do: net.requires_grad_(True)"
            )
        return kinds

    def _original(self) -> NetworkRow:
        def measure() -> dict[str, float]:
            value = self.subject.check_trained()
            return {"value": value, "latency_ms": self.clock.original_ms()}

        self.progress("original", 0, 1, "")
        found = self.journal.once("original", "", measure)
        report = layer_report(self.subject.network.template)
        value, exact = self.delivery.value(ORIGINAL, self.subject.original, found["value"])
        self.progress("original", 1, 1, "")
        return NetworkRow(
            name=ORIGINAL,
            about="the trained network",
            value=value,
            exact=exact,
            ratio=1.0,
            latency_ms=found["latency_ms"],
            engine=self.delivery.engine.name,
            macs=report.macs,
            params=report.params,
        )

    def _in_integers(self) -> tuple[NetworkRow, EngineNetwork] | None:
        """The original as our library in INT8, where latencies are those of such in float32.

        None where it cannot be one, or the time is short.
        """
        hours = self.budget.hours
        if self.delivery.engine.name != _LIBRARY or (hours is not None and hours < _LEAST_HOURS):
            return None
        try:
            row, made = in_format(self, OWN_INT8)
        except UserError as error:
            self.note(f"the original does not run in {OWN_INT8}: {first_line(error)}")
            return None
        assert row.value is not None and row.ratio is not None
        if row.ratio < 1.0:
            shown = self.subject.objective.in_words(row.value)
            self.note(
                f"the original in {OWN_INT8} takes {row.ratio:.2f}x of its latency in float32, "
                f"with {shown}; with that engine (--engine), it is adapted from there"
            )
        return row, made

    def _foretell(
        self,
        kinds: Mapping[str, Kind],
        entries: Mapping[str, Sequence[ScreenedCandidate]],
        original: NetworkRow,
        goals: Sequence[Sequence[Goal]],
    ) -> None:
        """Note which latencies no operators will reach, by the times of slots alone."""
        assert original.latency_ms is not None
        saved = sum(
            len(kind.slots)
            * (entries[name][0].latency_ms - min(each.latency_ms for each in entries[name]))
            for name, kind in kinds.items()
        )
        least = original.latency_ms - saved
        missed = [
            name_of(each)
            for each in goals
            if any(g.resource == LATENCY and g.limit(original.latency_ms) < least for g in each)
        ]
        if missed:
            self.note(
                f"operators will hardly reach {', '.join(missed)}: with the fastest in each slot, "
                f"the latency would be about {max(least, 0.0) / original.latency_ms:.2f}x"
            )

    def _pool(self, operators: Sequence[NamedOperator]) -> list[Candidate]:
        def gather() -> list[CandidateDocument]:
            found = candidates(
                self.subject.network,
                zoo_too=self.options.zoo,
                samples=self.options.samples,
                seed=self.seed,
                given=operators,
                store=self._store,
            )
            return [each.to_json() for each in found]

        rows = self.journal.once(POOL, "", gather)
        return [Candidate(**row) for row in rows]

    @property
    def refitting(self) -> list[Inputs]:
        """Inputs for which the operators of a chosen network are fitted again; may be empty."""
        if not self.options.refit:
            return []
        found: list[Inputs] = []
        left = self.recorded.samples
        for batch in self.subject.inputs(self.options.fit_images):
            if left > 0:
                found.append(first(batch, left))
                left -= samples_in(batch)
        return found

    def _selector(
        self,
        kinds: Mapping[str, Kind],
        entries: Mapping[str, Sequence[ScreenedCandidate]],
        errors: Mapping[str, Mapping[str, float]],
        fits: Fits,
        original: NetworkRow,
        scope: Scope,
        *,
        widths: bool,
    ) -> tuple[dict[str, dict[str, float]], Selector]:
        scorer = Scorer(self.subject, kinds, entries, fits, self.options, scope, self.budget)
        scores, sensitivity = scorer.one_slot(errors, self.told("scores"))
        dependence: dict[tuple[str, str], float] = {}
        if self.options.pairs and self.options.score != "fit":
            dependence = scorer.pairs(scores, self.told("pairs"))
        assert original.latency_ms is not None
        groups = None
        if widths:
            names = list(scores)
            groups = self._groups(names, original.latency_ms, sensitivity, scorer.samples, scope)
        totals = Totals(original.latency_ms, float(original.macs or 0), float(original.params or 0))
        return scores, Selector(
            self.subject,
            kinds,
            entries,
            scores,
            dependence,
            totals,
            fits,
            self.options,
            self.clock,
            scope,
            groups,
        )

    def _groups(
        self,
        slots: Sequence[str],
        original_ms: float,
        sensitivity: float,
        images: int,
        scope: Scope,
    ) -> ScoredGroups | None:
        """The groups of channels and the blocks, scored; None where there are none."""

        def choices_of() -> GroupChoices:
            return group_choices(
                self.channels,
                slots,
                original_ms,
                widths=self.narrowing is not None,
                blocks=self.options.blocks,
            )

        try:
            choices = choices_of()
        except UserError as error:
            self._without_widths(error)
            choices = choices_of()
        if not choices.names:
            return None
        over, told = self.budget.until("scores"), self.told("scores")
        scores = group_scores(
            choices, self.channels, self.subject, images, scope, sensitivity, over, told
        )
        return ScoredGroups(choices, scores, self.channels)

    def _without_widths(self, error: UserError) -> None:
        self.note(f"no network with fewer channels: {first_line(error)}")
        self.narrowing = None

    def narrowed(self, goals: Sequence[Goal], over: Callable[[], bool]) -> Narrowed | None:
        """A network with fewer channels for goals; None where there is none, or none is wanted.

        over: whether the time for it is over.
        """
        if self.narrowing is None:
            return None
        try:
            return self.narrowing.select(goals, over)
        except UserError as error:
            self._without_widths(error)
            return None

    def delivered(self, row: NetworkRow, net: nn.Module) -> NetworkRow:
        """The row of a network as it is delivered: in the engine of the latencies, timed again."""
        exact: list[float] = []
        values: list[float] = []
        names = [f"{row.name} {self.seed + number}" for number in range(len(row.values))]
        if not self.delivery.is_exact:
            every = [net, *self.tuner.others(row.name)]
            for name, one, value in zip(names, every, row.values, strict=False):
                values.append(self.delivery.value(name, one, value)[0])
                exact.append(value)
            row = dataclasses.replace(
                row,
                value=statistics.mean(values),
                values=tuple(values),
                exact=statistics.mean(exact),
            )

        def measure() -> float:
            made = self.delivery.delivered(names[0], net)
            if isinstance(made, EngineNetwork):
                return self.clock.ratio_of(made.once)
            return self.clock.ratio(made)

        ratio = self.journal.once("delivered ratio", row.name, measure)
        original_ms = self.journal.get("original", "")["latency_ms"]
        return dataclasses.replace(row, ratio=ratio, latency_ms=ratio * original_ms)

    def forecast(self, text: str) -> None:
        """Tell a sentence about the time, if there is one."""
        if text:
            self.progress("forecast", 0, 0, text)

    def note(self, text: str) -> None:
        """Tell something that the user should know, such as what cannot be compiled."""
        self.progress("note", 0, 0, text)

    def told(self, phase: str) -> Progress:
        """The observer of one phase."""
        return lambda done, total, remark: self.progress(phase, done, total, remark)


@contextmanager
def started(
    source: AdaptationSource, given: AdaptationArguments, *, grows: bool = False
) -> Iterator[AdaptationRun]:
    """Begin an adaptation, or continue it, and note its end."""
    options, note = _possible(given.options)
    store, seed = given.store, given.seed
    opened = store if isinstance(store, Store) else Store.open(store)
    try:
        subject = source.subject()
        settings = {
            **source.settings(),
            "operators": [o.text if isinstance(o, Operator) else o for o in given.operators],
            "options": dataclasses.asdict(options),
            "fingerprint": subject.fingerprint,
        }
        usual = source.name.replace("/", "-")
        with (
            open_journal(opened, given.name, usual, settings, seed) as journal,
            ExitStack() as shows,
        ):
            journal.started()
            observer = shows.enter_context(shown()) if given.progress is None else given.progress
            observer("study", 0, 1, journal.study.name)
            budget = Budget(given.hours, journal)
            run = AdaptationRun(
                subject, source, options, journal, budget, opened, seed, observer, grows=grows
            )
            if note is not None:
                run.note(note)
            yield run
            journal.stopped("complete")
    finally:
        if opened is not store:
            opened.close()


def _possible(options: AdaptOptions) -> tuple[AdaptOptions, str | None]:
    """Options for this machine, and a note where it has no compiler: all runs in eager PyTorch."""
    train, _, note = engines.decide(TrainOptions(kernels=options.kernels), TimingOptions())
    own = options.engine is None or options.engine.startswith("syno")
    engine = options.engine if note is None or not own else engines.EAGER
    return dataclasses.replace(options, engine=engine, kernels=train.kernels), note
