"""`syno.adapt`: the steps of an adaptation, each of which the journal remembers."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn

from syno._util.options import grouped
from syno.adaptation.pipeline import scores as scoring
from syno.adaptation.pipeline.assembly import assembled, empty
from syno.adaptation.pipeline.budget import Budget
from syno.adaptation.pipeline.goals import LATENCY, MACS, PARAMS, Goal, goal
from syno.adaptation.pipeline.journal import Journal, open_journal
from syno.adaptation.pipeline.kinds import Kind, kinds_of
from syno.adaptation.pipeline.latency import Clock
from syno.adaptation.pipeline.length import Lengths
from syno.adaptation.pipeline.pool import Candidate, candidates
from syno.adaptation.pipeline.recorder import Recorder
from syno.adaptation.pipeline.results import Adaptation, AdaptedNetwork, NetworkRow, SlotRow
from syno.adaptation.pipeline.screening import Entry, Fits, fitted, screened
from syno.adaptation.pipeline.selection import Selected, Selector, Totals, name_of
from syno.adaptation.pipeline.source import Source, checked_source
from syno.adaptation.pipeline.subject import Subject
from syno.adaptation.pipeline.tuning import fine_tuned
from syno.codegen.native import no_compiler
from syno.network.surgery import layer_report
from syno.operators.operator import Operator
from syno.options import DEFAULT_STORE, AdaptOptions
from syno.store import Store
from syno.train import Fidelity

if TYPE_CHECKING:
    from syno.network.layers import LayerFilter
    from syno.study.results import StudyResults

USUAL_GOALS = ("0.7x", "0.5x", "0.35x")


class Observer(Protocol):
    """Is told how far an adaptation is: the phase, and how much is done of it, and with what."""

    def __call__(self, phase: str, done: int, total: int, remark: str) -> None:
        """Take note."""


@grouped(options=AdaptOptions)
def adapt(
    net: nn.Module | str | StudyResults,
    data: object = None,
    *,
    latency: object = None,
    macs: object = None,
    params: object = None,
    max_drop: float | None = None,
    where: LayerFilter | Sequence[LayerFilter] | None = None,
    example_input: torch.Tensor | None = None,
    model_options: Mapping[str, int | str] | None = None,
    data_dir: str | None = None,
    validation: object = None,
    loss: object = None,
    metric: object = None,
    maximize: bool = True,
    operators: Sequence[str | Operator] = (),
    fidelity: Fidelity | str | Mapping[str, int] | None = None,
    hours: float | None = None,
    rivals: bool = False,
    final: bool = False,
    options: AdaptOptions | None = None,
    store: Store | str = DEFAULT_STORE,
    name: str | None = None,
    seed: int = 0,
    progress: Observer | None = None,
) -> Adaptation:
    """Make a trained network faster: choose an operator for each of its layers, and fine-tune.

    Operators are fitted to the layers, scored by what they change in the outputs of the network,
    and chosen for each slot by an integer program under a goal, with latencies of compiled code.
    The chosen networks are trained once, with distillation from the original. Every finding is
    stored at once: the same call with `name` continues an adaptation that was stopped in any way.

    Args:
        net: a trained network, the name of a model (with `weights` in `model_options`), or the
            results of a study (`syno.load_study`), whose baseline network is taken.
        data: the name of a data set, a torch.utils.data.Dataset or a DataLoader; default: that of
            the study.
        latency: goals for the latency of the network, one or several: `0.5x` of the original's, or
            milliseconds. Default, without other goals: `0.7x`, `0.5x` and `0.35x`.
        macs, params: goals for the MACs of one sample and the parameters, each one or several. Each
            combination of goals gives a network.
        max_drop: percent that the network `best` of the result may lose, points for accuracy.
        where: filters of the layers to replace, as in `syno.substitute`. Default: the slots of the
            network or model, or its 3x3 convolutions.
        example_input: an input of the network, with which slots are made for `where`.
        model_options: options of a model by name.
        data_dir: the folder of a data set by name.
        validation, loss, metric, maximize: of a custom data set, as in `syno.search`.
        operators: further candidates, as for `syno train`.
        fidelity: how long networks are fine-tuned, and with which recipe; or changes of the
            default one, such as `{"epochs": 2}`.
        hours: the time for everything but rivals and the test split, over all runs of the study. It
            is divided over the steps: there are fewer candidates, samples and epochs if it is
            short, and more epochs if there is time and `fidelity` does not say how many. Default:
            that of the study, or else no limit.
        rivals: also try other ways to make the network faster, with the same goals and recipe.
        final: also measure the test split, once, at the end.
        options: how operators are chosen.
        store: where findings are kept; its studies give candidates, too.
        name: of the study; an existing adaptation is continued, also with other goals.
        seed: of samples and trainings.
        progress: called with (phase, done, total, remark). The phase `study` has the name of the
            study as its remark, and `forecast` a sentence about the time.

    Raises:
        UserError: the network does not fit the data or is not better than a guess, no layer can be
            replaced, or a goal is out of reach; the message says what the least possible is.
    """
    options = _possible(options or AdaptOptions())
    goals = _goals(latency, macs, params)
    given = checked_source(
        net,
        data,
        where=where,
        example_input=example_input,
        model_options=model_options or {},
        data_dir=data_dir,
        validation=validation,
        loss=loss,
        metric=metric,
        maximize=maximize,
        fidelity=fidelity,
        seed=seed,
    )
    opened = store if isinstance(store, Store) else Store.open(store)
    try:
        subject = given.subject()
        settings = {
            **given.settings(),
            "operators": [o.text if isinstance(o, Operator) else o for o in operators],
            "options": dataclasses.asdict(options),
            "fingerprint": subject.fingerprint,
        }
        journal = open_journal(opened, name, given.name.replace("/", "-"), settings, seed)
        journal.started()
        if progress is not None:
            progress("study", 0, 1, journal.study.name)
        budget = Budget(hours, journal)
        run = _Run(
            subject,
            given,
            goals,
            options,
            journal,
            budget,
            opened,
            seed,
            progress or _silent,
            grows=_has_usual_length(fidelity),
        )
        found = run.execute(operators, rivals=rivals, final=final)
        found.max_drop = max_drop
        journal.stopped("complete")
        return found
    finally:
        if opened is not store:
            opened.close()


class _Run:
    """The steps of an adaptation; each is a phase of the journal."""

    def __init__(
        self,
        subject: Subject,
        source: Source,
        goals: Sequence[Sequence[Goal]],
        options: AdaptOptions,
        journal: Journal,
        budget: Budget,
        store: Store,
        seed: int,
        progress: Observer,
        *,
        grows: bool,
    ) -> None:
        self._subject, self._source, self._goals = subject, source, goals
        self._options, self._journal, self._store = options, journal, store
        self._budget, self._seed, self._progress = budget, seed, progress
        self._recorded = Recorder(
            subject.copy,
            lambda: subject.inputs(options.fit_images),
            options.activation_mib << 20,
        )
        self._lengths = Lengths(subject, options, journal, budget, seed, grows=grows)
        self._clock = Clock(
            subject.original, subject.example, options.engine, options.threads, options.rounds
        )

    def execute(
        self, operators: Sequence[str | Operator], *, rivals: bool, final: bool
    ) -> Adaptation:
        """Run all phases."""
        subject, journal, budget = self._subject, self._journal, self._budget
        self._forecast(budget.forecast())
        with journal.phase("original"):
            original = self._original()
        kinds = kinds_of(subject.network.template, subject.example, causal=subject.network.causal)
        with journal.phase("candidates"):
            entries, pool = screened(
                kinds,
                self._pool(operators),
                self._recorded,
                self._options,
                journal,
                budget,
                self._seed,
                self._told("candidates"),
            )
        fits = Fits(self._recorded, kinds)
        with journal.phase("fits"):
            errors = fitted(kinds, entries, fits, journal, budget, self._told("fits"))
        with journal.phase("scores"):
            selector = self._selector(kinds, entries, errors, fits, original)
        chosen = []
        for number, goals in enumerate(self._goals):
            self._progress("choice", number, len(self._goals), name_of(goals))
            with journal.phase("choice"):
                over = budget.until("choice", 1.0 / (len(self._goals) - number))
                chosen.append(selector.select(goals, journal, self._refitting, over))
        self._progress("choice", len(self._goals), len(self._goals), "")
        networks = []
        for number, selected in enumerate(chosen):
            with journal.phase("fine-tuning"):
                left = len(chosen) - number
                networks.append(self._network(selected, left, selector, kinds, errors, fits))
        others: list[tuple[NetworkRow, nn.Module | None]] = []
        failures: dict[str, str] = {}
        if rivals:
            from syno.adaptation.pipeline.rivals.rivals import Rivals

            with journal.phase("rivals"):
                found = Rivals(
                    subject, kinds, selector, fits, self._options, journal, self._clock, self._seed
                )
                others, failures = found.rows(
                    networks, self._goals, self._refitting, self._told("rivals")
                )
        if final:
            with journal.phase("test split"):
                original, networks, others = self._final(original, networks, others)
        return Adaptation(
            study=journal.study.name,
            objective=subject.objective,
            original=original,
            networks=networks,
            rivals=[row for row, _ in others],
            seconds=dict(journal.seconds),
            hours=budget.hours,
            candidates=len(pool),
            failures=failures,
            example=subject.example,
        )

    def _original(self) -> NetworkRow:
        def measure() -> dict[str, float]:
            value = self._subject.check_trained()
            return {"value": value, "latency_ms": self._clock.original_ms()}

        self._progress("original", 0, 1, "")
        found = self._journal.once("original", "", measure)
        report = layer_report(self._subject.network.template)
        self._progress("original", 1, 1, "")
        return NetworkRow(
            name="original",
            about="the trained network",
            value=found["value"],
            ratio=1.0,
            latency_ms=found["latency_ms"],
            engine=self._options.engine,
            macs=report.macs,
            params=report.params,
        )

    def _pool(self, operators: Sequence[str | Operator]) -> list[Candidate]:
        def gather() -> list[dict[str, object]]:
            found = candidates(
                self._subject.network,
                zoo_too=self._options.zoo,
                samples=self._options.samples,
                seed=self._seed,
                given=operators,
                store=self._store,
            )
            return [each.to_json() for each in found]

        rows: list[Any] = self._journal.once("pool", "", gather)
        return [Candidate(**row) for row in rows]

    @property
    def _refitting(self) -> list[torch.Tensor]:
        return self._subject.inputs(self._options.fit_images) if self._options.refit else []

    def _selector(
        self,
        kinds: Mapping[str, Kind],
        entries: Mapping[str, Sequence[Entry]],
        errors: Mapping[str, Mapping[str, float]],
        fits: Fits,
        original: NetworkRow,
    ) -> Selector:
        subject, options, journal = self._subject, self._options, self._journal
        scores = scoring.one_slot(
            subject,
            kinds,
            entries,
            errors,
            fits,
            options,
            journal,
            self._budget,
            self._told("scores"),
        )
        dependence: dict[tuple[str, str], float] = {}
        if options.pairs and options.score != "fit":
            dependence = scoring.pairs(
                subject,
                kinds,
                entries,
                scores,
                fits,
                options,
                journal,
                self._budget,
                self._told("pairs"),
            )
        assert original.latency_ms is not None
        totals = Totals(original.latency_ms, float(original.macs or 0), float(original.params or 0))
        return Selector(
            subject, kinds, entries, scores, dependence, totals, fits, options, self._clock
        )

    def _network(
        self,
        selected: Selected,
        left: int,
        selector: Selector,
        kinds: Mapping[str, Kind],
        errors: Mapping[str, Mapping[str, float]],
        fits: Fits,
    ) -> AdaptedNetwork:
        """Fine-tune a network; left: how many are not fine-tuned yet, with this one."""
        choice = selector.candidates(selected.choice)

        def build() -> nn.Module:
            return assembled(self._subject, kinds, choice, fits, refit=self._refitting)

        def structure() -> nn.Module:
            return empty(self._subject, kinds, choice)

        fidelity = self._lengths.fidelity(selected.goal, structure(), left)
        self._forecast(self._lengths.forecast(fidelity, left))
        net, results, value = fine_tuned(
            self._subject,
            selected.goal,
            build,
            structure,
            self._options,
            self._journal,
            self._seed,
            self._told(f"fine-tuning {selected.goal}"),
            fidelity,
        )
        costs = selector.costs(selected.choice)
        original_ms = self._journal.get("original", "")["latency_ms"]
        values = tuple(each.value for each in results)
        row = NetworkRow(
            name=selected.goal,
            about="an operator for each slot",
            value=sum(values) / len(values),
            values=values,
            fitted=value,
            ratio=selected.ratio,
            latency_ms=selected.ratio * original_ms,
            engine=self._options.engine,
            macs=round(costs[MACS]),
            params=round(costs[PARAMS]),
            seconds=sum(each.seconds for each in results),
        )
        return AdaptedNetwork(row, _slot_rows(selector, selected, kinds, errors), net)

    def _final(
        self,
        original: NetworkRow,
        networks: list[AdaptedNetwork],
        others: list[tuple[NetworkRow, nn.Module | None]],
    ) -> tuple[NetworkRow, list[AdaptedNetwork], list[tuple[NetworkRow, nn.Module | None]]]:
        """Measure everything on the test split, once."""

        def of(name: str, net: nn.Module) -> float | None:
            found = self._journal.once("test", name, lambda: self._source.test(net))
            return None if found is None else float(found)

        first = dataclasses.replace(original, test=of("original", self._subject.original))
        for each in networks:
            each.row = dataclasses.replace(each.row, test=of(each.name, each.net))
        rows = [
            (row if net is None else dataclasses.replace(row, test=of(row.name, net)), net)
            for row, net in others
        ]
        return first, networks, rows

    def _forecast(self, text: str) -> None:
        if text:
            self._progress("forecast", 0, 0, text)

    def _told(self, phase: str) -> Callable[[int, int, str], None]:
        return lambda done, total, remark: self._progress(phase, done, total, remark)


def _slot_rows(
    selector: Selector,
    selected: Selected,
    kinds: Mapping[str, Kind],
    errors: Mapping[str, Mapping[str, float]],
) -> tuple[SlotRow, ...]:
    of_slot = {slot: kind for kind in kinds.values() for slot in kind.slots}
    rows = []
    for slot, entries in selector.entries.items():
        entry = next(e for e in entries if e.candidate.name == selected.choice[slot])
        chosen = entry.candidate
        rows.append(
            SlotRow(
                slot=slot,
                layer=of_slot[slot].layer,
                operator=chosen.name,
                formula=chosen.operator.formula() if chosen.is_operator else "",
                text=chosen.text,
                before_ms=entries[0].latency_ms,
                after_ms=entry.latency_ms,
                macs_before=entries[0].macs,
                macs_after=entry.macs,
                error=errors[slot][chosen.name],
            )
        )
    return tuple(rows)


def _goals(latency: object, macs: object, params: object) -> list[list[Goal]]:
    if latency is None and macs is None and params is None:
        latency = USUAL_GOALS
    lists = [
        [goal(resource, each) for each in _several(value)]
        for resource, value in ((LATENCY, latency), (MACS, macs), (PARAMS, params))
        if value is not None and _several(value)
    ]
    return [list(chosen) for chosen in itertools.product(*lists)]


def _possible(options: AdaptOptions) -> AdaptOptions:
    """Options for this machine: without a compiler, everything runs in eager PyTorch."""
    compiled = no_compiler() is None
    engine = options.engine if compiled or not options.engine.startswith("syno") else "eager"
    kernels = options.kernels or ("compiled" if compiled else "eager")
    return dataclasses.replace(options, engine=engine, kernels=kernels)


def _has_usual_length(fidelity: Fidelity | str | Mapping[str, int] | None) -> bool:
    """Whether the user has left open how long networks are fine-tuned."""
    if isinstance(fidelity, Mapping):
        return not {"epochs", "steps", "images"} & set(fidelity)
    return fidelity is None


def _several(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _silent(phase: str, done: int, total: int, remark: str) -> None:
    """Nobody watches."""
