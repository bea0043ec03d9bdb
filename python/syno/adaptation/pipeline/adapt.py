"""`syno.adapt`: the steps of an adaptation, each of which the journal remembers."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence

from torch import nn

from syno._util.declaration import takes
from syno._util.errors import UserError, first_line
from syno.adaptation.pipeline.adaptation import Adaptation
from syno.adaptation.pipeline.arguments import AdaptationArguments
from syno.adaptation.pipeline.assembly import assembled, empty
from syno.adaptation.pipeline.goals import SLOTS, Goal, goal, limited_costs
from syno.adaptation.pipeline.kinds import by_slot
from syno.adaptation.pipeline.narrowing import Narrowed
from syno.adaptation.pipeline.results import (
    CALIBRATION,
    AdaptedNetwork,
    NetworkRow,
    Reached,
    SlotRow,
)
from syno.adaptation.pipeline.run import AdaptationRun, Scored, started
from syno.adaptation.pipeline.selection import Selected, name_of
from syno.adaptation.pipeline.source import checked_source
from syno.operators.operator import Operator
from syno.store.environment import capture_environment
from syno.study.fronts import LATENCY, MACS, PARAMS
from syno.train import Fidelity

USUAL_GOALS = ("0.7x", "0.5x", "0.35x")


@takes(AdaptationArguments)
def adapt(given: AdaptationArguments) -> Adaptation:
    """Make a trained network faster: choose an operator for each of its layers, and fine-tune.

    Operators are fitted to the layers, scored by what they change in the outputs of the network,
    and chosen for each slot by an integer program under a goal, with latencies of compiled code.
    The chosen networks are trained once, with distillation from the original. Every finding is
    stored at once: the same call with `name` continues an adaptation that was stopped in any way.

    Raises:
        UserError: the network does not fit the data or is not better than a guess, no layer can be
            replaced, or a goal is out of reach; the message says what the least possible is.
    """
    goals = _goals(given.latency, given.slots, given.macs, given.params)
    grows = _has_usual_length(given.fidelity)
    with started(checked_source(given), given, grows=grows) as run:
        found = _adapted(run, goals, given.operators, rivals=given.rivals, final=given.final)
    found.max_drop = given.max_drop
    return found


def _adapted(
    run: AdaptationRun,
    wanted: Sequence[Sequence[Goal]],
    operators: Sequence[str | Operator],
    *,
    rivals: bool,
    final: bool,
) -> Adaptation:
    """Run all phases."""
    journal = run.journal
    scored = run.scored(operators, limited_costs(wanted[0]))
    chosen: list[Selected | Narrowed] = []
    for number, goals in enumerate(wanted):
        run.progress("choice", number, len(wanted), name_of(goals))
        with journal.phase("choice"):
            over = run.budget.until("choice", 1.0 / (len(wanted) - number))
            chosen.append(_nearest(run, scored, goals, over))
    run.progress("choice", len(wanted), len(wanted), "")
    networks = []
    for number, (goals, selected) in enumerate(zip(wanted, chosen, strict=True)):
        with journal.phase("fine-tuning"):
            left = len(chosen) - number
            if isinstance(selected, Narrowed):
                networks.append(_narrow_network(run, scored, goals, selected, left))
            else:
                networks.append(_network(run, scored, goals, selected, left))
    others: list[tuple[NetworkRow, nn.Module | None]] = []
    failures: dict[str, str] = {}
    if rivals:
        from syno.adaptation.pipeline.rivals.rivals import Rivals

        with journal.phase("rivals"):
            others, failures = Rivals(run, scored).rows(networks, wanted, run.told("rivals"))
    original = scored.original
    if final:
        with journal.phase("test split"):
            original, networks, others = _final(run, original, networks, others)
    return Adaptation(
        study=journal.study.name,
        objective=run.subject.objective,
        original=original,
        networks=networks,
        rivals=[row for row, _ in others],
        seconds=dict(journal.seconds),
        hours=run.budget.hours,
        candidates=len(scored.pool),
        failures=failures,
        settings=dict(journal.study.settings),
        environment=dataclasses.asdict(capture_environment(threads=run.options.threads, rules="")),
        original_net=run.subject.original,
        example=run.subject.example,
        samples=run.subject.inputs(CALIBRATION),
        score=run.subject.share_right if run.subject.has_classes else None,
    )


def _nearest(
    run: AdaptationRun, scored: Scored, goals: Sequence[Goal], over: Callable[[], bool]
) -> Selected | Narrowed:
    """The network for goals whose outputs are nearest to the original's, before it is trained.

    UserError where neither operators nor fewer channels keep the goals.
    """
    narrow = run.narrowed(goals)
    try:
        selected = scored.selector.select(goals, run.refitting, over)
    except UserError as error:
        if narrow is None:
            raise
        run.note(f"{first_line(error)} with operators: {narrow.goal} has fewer channels instead")
        return narrow
    if narrow is None or selected.distance <= narrow.distance:
        return selected
    run.note(
        f"{narrow.goal} has fewer channels: its outputs are nearer to the original's than those "
        f"with operators ({narrow.distance:.3g} and {selected.distance:.3g})"
    )
    return narrow


def _narrow_network(
    run: AdaptationRun, scored: Scored, goals: Sequence[Goal], found: Narrowed, left: int
) -> AdaptedNetwork:
    """Fine-tune a network with fewer channels."""
    narrowing = run.narrowing
    assert narrowing is not None

    def structure() -> nn.Module:
        return narrowing.structure(found.widths)

    fidelity = run.lengths.fidelity(found.goal, structure, left)
    run.forecast(run.lengths.forecast(fidelity, left))
    row, net = run.tuner.network(
        found.goal,
        "fewer channels",
        lambda: narrowing.network(found.widths),
        structure,
        found.ratio,
        fidelity,
        run.told(f"fine-tuning {found.goal}"),
    )
    row = dataclasses.replace(row, macs=found.macs, params=found.params)
    reached = tuple(_reached(each, scored.original, row, ()) for each in goals)
    row = dataclasses.replace(row, goals=reached)
    return AdaptedNetwork(row, (), net, narrowing.rows(found.widths))


def _network(
    run: AdaptationRun, scored: Scored, goals: Sequence[Goal], selected: Selected, left: int
) -> AdaptedNetwork:
    """Fine-tune a network; left: how many are not fine-tuned yet, with this one."""
    choice = scored.selector.candidates(selected.choice)

    def build() -> nn.Module:
        return assembled(run.subject, scored.kinds, choice, scored.fits, refit=run.refitting)

    def structure() -> nn.Module:
        return empty(run.subject, scored.kinds, choice)

    fidelity = run.lengths.fidelity(selected.goal, structure, left)
    run.forecast(run.lengths.forecast(fidelity, left))
    row, net = run.tuner.network(
        selected.goal,
        "an operator for each slot",
        build,
        structure,
        selected.ratio,
        fidelity,
        run.told(f"fine-tuning {selected.goal}"),
    )
    costs = scored.selector.costs(selected.choice)
    row = dataclasses.replace(row, macs=round(costs[MACS]), params=round(costs[PARAMS]))
    slots = _slot_rows(scored, selected)
    reached = tuple(_reached(each, scored.original, row, slots) for each in goals)
    return AdaptedNetwork(dataclasses.replace(row, goals=reached), slots, net)


def _reached(
    goal: Goal, original: NetworkRow, row: NetworkRow, slots: Sequence[SlotRow]
) -> Reached:
    """What a network reached of a goal."""
    before, after = {
        LATENCY: (original.latency_ms, row.latency_ms),
        SLOTS: (sum(each.before_ms for each in slots), sum(each.after_ms for each in slots)),
        MACS: (original.macs, row.macs),
        PARAMS: (original.params, row.params),
    }[goal.resource]
    assert before and after is not None
    return Reached(goal.resource, goal.limit(before) / before, after / before)


def _final(
    run: AdaptationRun,
    original: NetworkRow,
    networks: list[AdaptedNetwork],
    others: list[tuple[NetworkRow, nn.Module | None]],
) -> tuple[NetworkRow, list[AdaptedNetwork], list[tuple[NetworkRow, nn.Module | None]]]:
    """Measure everything on the test split, once."""

    def tested(row: NetworkRow, net: nn.Module) -> NetworkRow:
        found = []
        for number, one in enumerate([net, *run.tuner.others(row.name)]):
            key = row.name if number == 0 else f"{row.name}, seed {run.seed + number}"
            test = functools.partial(run.source.test, one)
            value: float | None = run.journal.once("test", key, test)
            if value is None:  # data without a test split
                return row
            found.append(value)
        return dataclasses.replace(row, test=statistics.mean(found), tests=tuple(found))

    first = tested(original, run.subject.original)
    for each in networks:
        each.row = tested(each.row, each.net)
    rows = [(row if net is None else tested(row, net), net) for row, net in others]
    return first, networks, rows


def _slot_rows(scored: Scored, selected: Selected) -> tuple[SlotRow, ...]:
    of_slot = by_slot(scored.kinds)
    rows = []
    for slot, entries in scored.selector.entries.items():
        entry = scored.selector.entry(slot, selected.choice[slot])
        chosen = entry.candidate
        rows.append(
            SlotRow(
                slot=slot,
                layer=of_slot[slot].layer,
                operator=chosen.name,
                formula=chosen.operator.formula() if chosen.is_operator else "",
                text=chosen.text,
                source=chosen.source,
                before_ms=entries[0].latency_ms,
                after_ms=entry.latency_ms,
                macs_before=entries[0].macs,
                macs_after=entry.macs,
                error=scored.errors[slot][chosen.name],
            )
        )
    return tuple(rows)


def _goals(latency: object, slots: object, macs: object, params: object) -> list[list[Goal]]:
    given = {LATENCY: latency, SLOTS: slots, MACS: macs, PARAMS: params}
    lists = [
        [goal(resource, each) for each in _several(value)]
        for resource, value in given.items()
        if _several(value)
    ]
    if not lists:
        lists = [[goal(LATENCY, each) for each in USUAL_GOALS]]
    return [list(chosen) for chosen in itertools.product(*lists)]


def _has_usual_length(fidelity: Fidelity | str | Mapping[str, int | str] | None) -> bool:
    """Whether the user has left open how long networks are fine-tuned."""
    if isinstance(fidelity, Mapping):
        return not {"epochs", "steps", "images"} & set(fidelity)
    return fidelity is None


def _several(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
