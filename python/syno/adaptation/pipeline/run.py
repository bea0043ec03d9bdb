"""The first steps of an adaptation: candidates, fits and scores. The journal remembers each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from syno._util.errors import UserError, first_line
from syno.adaptation.pipeline.arguments import AdaptationArguments
from syno.adaptation.pipeline.budget import Budget
from syno.adaptation.pipeline.fine_tuning import FineTuner
from syno.adaptation.pipeline.goals import Goal
from syno.adaptation.pipeline.journal import POOL, AdaptationJournal, Scope, open_journal
from syno.adaptation.pipeline.kinds import Kind, kinds_of
from syno.adaptation.pipeline.latency import InterleavedTimer
from syno.adaptation.pipeline.length import Lengths
from syno.adaptation.pipeline.narrowing import Narrowed, Narrowing
from syno.adaptation.pipeline.pool import Candidate, CandidateDocument, candidates
from syno.adaptation.pipeline.progress import AdaptationObserver, Progress, silent
from syno.adaptation.pipeline.recorder import Recorder
from syno.adaptation.pipeline.results import NetworkRow
from syno.adaptation.pipeline.scores import Scorer
from syno.adaptation.pipeline.screening import Fits, ScreenedCandidate, fitted, screened
from syno.adaptation.pipeline.selection import Selector, Totals
from syno.adaptation.pipeline.source import AdaptationSource
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.network.surgery import layer_report
from syno.operators.operator import Operator
from syno.options import AdaptOptions, TimingOptions, TrainOptions
from syno.store import Store
from syno.study.evaluate import engines


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
        self.tuner = FineTuner(subject, options, journal, seed, self.note)
        self.recorded = Recorder(
            subject.copy,
            lambda: subject.inputs(options.fit_images),
            options.activation_mib << 20,
        )
        self.lengths = Lengths(self.tuner, budget, grows=grows)
        self.clock = InterleavedTimer(
            subject.original, subject.example, options.engine, options.threads, options.rounds
        )
        self.narrowing = (
            Narrowing(subject, options, journal, self.clock) if options.widths else None
        )

    def scored(self, operators: Sequence[str | Operator], limited: Sequence[str]) -> Scored:
        """Gather candidates, fit and score them.

        limited: what goals limit of them, of `COSTS`.
        """
        subject, journal, budget = self.subject, self.journal, self.budget
        scope = journal.scope(limited)
        self.forecast(budget.forecast())
        with journal.phase("original"):
            original = self._original()
        kinds = kinds_of(subject.network.template, subject.example, causal=subject.network.causal)
        with journal.phase("candidates"):
            entries, pool = screened(
                kinds,
                self._pool(operators),
                self.recorded,
                self.options,
                scope,
                budget,
                self.seed,
                self.told("candidates"),
            )
        fits = Fits(self.recorded, kinds)
        with journal.phase("fits"):
            errors = fitted(kinds, entries, fits, scope, budget, self.told("fits"))
        with journal.phase("scores"):
            one_slot, selector = self._selector(kinds, entries, errors, fits, original, scope)
        return Scored(original, kinds, pool, entries, errors, one_slot, fits, selector)

    def _original(self) -> NetworkRow:
        def measure() -> dict[str, float]:
            value = self.subject.check_trained()
            return {"value": value, "latency_ms": self.clock.original_ms()}

        self.progress("original", 0, 1, "")
        found = self.journal.once("original", "", measure)
        report = layer_report(self.subject.network.template)
        self.progress("original", 1, 1, "")
        return NetworkRow(
            name="original",
            about="the trained network",
            value=found["value"],
            ratio=1.0,
            latency_ms=found["latency_ms"],
            engine=self.options.engine,
            macs=report.macs,
            params=report.params,
        )

    def _pool(self, operators: Sequence[str | Operator]) -> list[Candidate]:
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
    def refitting(self) -> list[torch.Tensor]:
        """Inputs for which the operators of a chosen network are fitted again; may be empty."""
        if not self.options.refit:
            return []
        found, left = [], self.recorded.samples
        for batch in self.subject.inputs(self.options.fit_images):
            if left > 0:
                found.append(batch[:left])
                left -= len(batch)
        return found

    def _selector(
        self,
        kinds: Mapping[str, Kind],
        entries: Mapping[str, Sequence[ScreenedCandidate]],
        errors: Mapping[str, Mapping[str, float]],
        fits: Fits,
        original: NetworkRow,
        scope: Scope,
    ) -> tuple[dict[str, dict[str, float]], Selector]:
        scorer = Scorer(self.subject, kinds, entries, fits, self.options, scope, self.budget)
        scores = scorer.one_slot(errors, self.told("scores"))
        dependence: dict[tuple[str, str], float] = {}
        if self.options.pairs and self.options.score != "fit":
            dependence = scorer.pairs(scores, self.told("pairs"))
        assert original.latency_ms is not None
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
        )

    def narrowed(self, goals: Sequence[Goal]) -> Narrowed | None:
        """A network with fewer channels for goals; None where there is none, or none is wanted."""
        if self.narrowing is None:
            return None
        try:
            return self.narrowing.select(goals)
        except UserError as error:
            self.note(f"no network with fewer channels: {first_line(error)}")
            self.narrowing = None
            return None

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
        with open_journal(opened, given.name, usual, settings, seed) as journal:
            journal.started()
            observer = given.progress or silent
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
    is_possible = note is None or not options.engine.startswith("syno")
    engine = options.engine if is_possible else engines.EAGER
    return dataclasses.replace(options, engine=engine, kernels=train.kernels), note
