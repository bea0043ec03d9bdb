"""The network of a goal: fine-tuned, in the engine of the latencies, with what it reached."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from torch import nn

from syno.adaptation.pipeline.assembly import assembled, empty
from syno.adaptation.pipeline.channel_widths import ChannelWidths
from syno.adaptation.pipeline.goals import SLOTS, Goal
from syno.adaptation.pipeline.kinds import by_slot
from syno.adaptation.pipeline.narrowing import Narrowed
from syno.adaptation.pipeline.pool import ORIGINAL_LAYER
from syno.adaptation.pipeline.results import AdaptedNetwork, NetworkRow, Reached, SlotRow
from syno.adaptation.pipeline.run import AdaptationRun, Scored
from syno.adaptation.pipeline.selection import Selected
from syno.study.fronts import LATENCY, MACS, PARAMS


def network_of(
    run: AdaptationRun,
    scored: Scored,
    goals: Sequence[Goal],
    selected: Selected | Narrowed,
    left: int,
) -> AdaptedNetwork:
    """Fine-tune the network that was chosen for goals; left: how many are not trained yet."""
    if isinstance(selected, Narrowed):
        return _narrow_network(run, scored, goals, selected, left)
    return _network(run, scored, goals, selected, left)


def _narrow_network(
    run: AdaptationRun, scored: Scored, goals: Sequence[Goal], found: Narrowed, left: int
) -> AdaptedNetwork:
    """Fine-tune a network with fewer channels."""
    channels = run.channels

    def structure() -> nn.Module:
        return channels.structure(found.widths)

    fidelity = run.lengths.fidelity(found.goal, structure, left)
    run.forecast(run.lengths.forecast(fidelity, left))
    row, net = run.tuner.network(
        found.goal,
        "fewer channels",
        lambda: channels.network(found.widths),
        structure,
        found.ratio,
        fidelity,
        run.told(f"fine-tuning {found.goal}"),
    )
    row = dataclasses.replace(run.delivered(row, net), macs=found.macs, params=found.params)
    reached = tuple(_reached(each, scored.original, row, ()) for each in goals)
    row = dataclasses.replace(row, goals=reached)
    made = run.delivery.quantized(f"{row.name} {run.seed}", net)
    return AdaptedNetwork(row, (), net, channels.rows(found.widths), made)


def _network(
    run: AdaptationRun, scored: Scored, goals: Sequence[Goal], selected: Selected, left: int
) -> AdaptedNetwork:
    """Fine-tune a network with an operator for each slot, and maybe fewer channels."""
    selector, channels, widths = scored.selector, run.channels, selected.widths
    choice = selector.candidates(selected.choice)

    def build() -> nn.Module:
        narrow = functools.partial(channels.fitted, widths) if widths else None
        return assembled(
            run.subject, scored.kinds, choice, scored.fits, refit=run.refitting, narrow=narrow
        )

    def structure() -> nn.Module:
        narrow = functools.partial(channels.structure, widths) if widths else None
        return empty(run.subject, scored.kinds, choice, narrow)

    fidelity = run.lengths.fidelity(selected.goal, structure, left)
    run.forecast(run.lengths.forecast(fidelity, left))
    row, net = run.tuner.network(
        selected.goal,
        _moves(selected),
        build,
        structure,
        selected.ratio,
        fidelity,
        run.told(f"fine-tuning {selected.goal}"),
    )
    costs = selector.costs(selected.choice, widths)
    row = dataclasses.replace(
        run.delivered(row, net), macs=round(costs[MACS]), params=round(costs[PARAMS])
    )
    slots = _slot_rows(scored, selected, channels)
    reached = tuple(_reached(each, scored.original, row, slots) for each in goals)
    row = dataclasses.replace(row, goals=reached)
    made = run.delivery.quantized(f"{row.name} {run.seed}", net)
    blocks = channels.block_rows(widths)
    return AdaptedNetwork(row, slots, net, channels.rows(widths), made, blocks)


def _moves(selected: Selected) -> str:
    """What was changed, in words."""
    if not selected.widths:
        return "an operator for each slot"
    moves = ["operators"] if set(selected.choice.values()) != {ORIGINAL_LAYER.name} else []
    moves += ["fewer channels"] if any(selected.widths.values()) else []
    moves += ["fewer blocks"] if not all(selected.widths.values()) else []
    return " and ".join(filter(None, (", ".join(moves[:-1]), moves[-1])))


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


def _slot_rows(scored: Scored, selected: Selected, channels: ChannelWidths) -> tuple[SlotRow, ...]:
    of_slot = by_slot(scored.kinds)
    rows = []
    for slot, entries in scored.selector.entries.items():
        entry = scored.selector.entry(slot, selected.choice[slot])
        chosen = entry.candidate
        left = channels.share_left(slot, selected.widths)
        rows.append(
            SlotRow(
                slot=slot,
                layer=of_slot[slot].layer,
                operator=chosen.name,
                formula=chosen.operator.formula() if chosen.is_operator else "",
                text=chosen.text,
                source=chosen.source,
                before_ms=entries[0].latency_ms,
                after_ms=left * entry.latency_ms,
                macs_before=entries[0].macs,
                macs_after=round(left * entry.macs),
                error=scored.errors[slot][chosen.name],
            )
        )
    return tuple(rows)
