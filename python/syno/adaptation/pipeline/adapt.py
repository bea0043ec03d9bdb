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
from syno.adaptation.pipeline.goals import SLOTS, Goal, goal
from syno.adaptation.pipeline.in_format import deliverable
from syno.adaptation.pipeline.narrowing import Narrowed
from syno.adaptation.pipeline.networks import network_of
from syno.adaptation.pipeline.pool import check_given
from syno.adaptation.pipeline.results import CALIBRATION, AdaptedNetwork, NetworkRow
from syno.adaptation.pipeline.rivals.pruning import has_torch_pruning
from syno.adaptation.pipeline.run import AdaptationRun, Scored, started
from syno.adaptation.pipeline.selection import OutOfReachError, Selected, name_of
from syno.adaptation.pipeline.source import checked_source
from syno.engines.engine_network import EngineNetwork
from syno.operands.lookup import NamedOperator, named_operators
from syno.store.environment import capture_environment
from syno.study.fronts import LATENCY, MACS, PARAMS
from syno.study_options import RIVAL_FORMATS, RIVALS, TORCH_PRUNING
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
            replaced, or all goals are out of reach; the message says what the least possible is.
    """
    goals = _goals(given.latency, given.slots, given.macs, given.params)
    operators = named_operators(given.operators)  # an unknown one is an error before all else
    if TORCH_PRUNING in given.rival and not has_torch_pruning():
        raise UserError(
            f"the rival {TORCH_PRUNING} is not installed\n"
            "  what to do: pip install torch-pruning (part of syno[rivals])"
        )
    grows = _has_usual_length(given.fidelity)
    source = checked_source(given)
    check_given(source.network.template, operators)
    with started(source, given, grows=grows) as run:
        kinds = given.rival or (RIVALS if given.rivals else ())
        found = _adapted(run, goals, operators, rivals=kinds, final=given.final)
        found.max_drop = given.max_drop
        for each in found.networks:
            if marks := found.marks(each.row):
                run.note(f"the network {each.name} {' and '.join(marks)}")
    return found


def _adapted(
    run: AdaptationRun,
    wanted: Sequence[Sequence[Goal]],
    operators: Sequence[NamedOperator],
    *,
    rivals: Sequence[str],
    final: bool,
) -> Adaptation:
    """Run all phases."""
    journal = run.journal
    scored = run.scored(operators, wanted)
    chosen: list[tuple[Sequence[Goal], Selected | Narrowed]] = []
    unreached: dict[str, str] = {}
    for number, goals in enumerate(wanted):
        run.progress("choice", number, len(wanted), name_of(goals))
        with journal.phase("choice"):
            over = run.budget.until("choice", 1.0 / (len(wanted) - number))
            try:
                chosen.append((goals, _nearest(run, scored, goals, over)))
            except OutOfReachError as error:
                if len(unreached) + 1 == len(wanted):
                    raise
                run.note(f"{first_line(error)}: {error.nearest}")
                unreached[name_of(goals)] = error.nearest
    run.progress("choice", len(wanted), len(wanted), "")
    networks = []
    for number, (goals, selected) in enumerate(chosen):
        with journal.phase("fine-tuning"):
            networks.append(network_of(run, scored, goals, selected, len(chosen) - number))
    others: list[tuple[NetworkRow, nn.Module | None]] = []
    if run.in_integers is not None and RIVAL_FORMATS not in rivals:
        others.append(run.in_integers)
    failures: dict[str, str] = {}
    if rivals:
        from syno.adaptation.pipeline.rivals.rivals import Rivals

        with journal.phase("rivals"):
            found, failures = Rivals(run, scored).rows(
                rivals, networks, [goals for goals, _ in chosen], run.told("rivals")
            )
            others += found
    original = scored.original
    if final:
        with journal.phase("test split"):
            original, networks, others = _final(run, original, networks, others)
    return Adaptation(
        study=journal.study.name,
        objective=run.subject.objective,
        original=original,
        networks=networks,
        unreached=unreached,
        rivals=[row for row, _ in others],
        others={row.name: made for row, net in others if (made := deliverable(row, net))},
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

    OutOfReachError where neither operators nor fewer channels keep the goals.
    """
    narrow = run.narrowed(goals, over)
    if narrow is not None:
        scored.selector.learn(narrow.widths, narrow.distance)
    try:
        selected = scored.selector.select(goals, run.refitting, over)
    except OutOfReachError as error:
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


def _final(
    run: AdaptationRun,
    original: NetworkRow,
    networks: list[AdaptedNetwork],
    others: list[tuple[NetworkRow, nn.Module | None]],
) -> tuple[NetworkRow, list[AdaptedNetwork], list[tuple[NetworkRow, nn.Module | None]]]:
    """Measure everything on the test split, once."""

    def tested(row: NetworkRow, net: nn.Module, *, trained: bool = True) -> NetworkRow:
        found = []
        for number, one in enumerate([net, *run.tuner.others(row.name)]):
            key = row.name if number == 0 else f"{row.name}, seed {run.seed + number}"
            name = row.name if row is original else f"{row.name} {run.seed + number}"
            delivered = run.delivery.delivered(name, one) if trained else one
            test = functools.partial(run.source.test, delivered)
            value: float | None = run.journal.once("test", key, test)
            if value is None:  # data without a test split
                return row
            found.append(value)
        return dataclasses.replace(row, test=statistics.mean(found), tests=tuple(found))

    first = tested(original, run.subject.original)
    for each in networks:
        each.row = tested(each.row, each.net)
    rows: list[tuple[NetworkRow, nn.Module | None]] = []
    for row, net in others:
        if net is not None:
            row = tested(row, net, trained=not isinstance(net, EngineNetwork))
        rows.append((row, net))
    return first, networks, rows


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
