"""Channels of groups in the integer program: beside each slot's candidate, each group's width.

A block that may be left out is a group of one, whose width is 1 or 0.

Layers whose channels go stay as they are otherwise: a group and the slots whose layers it is part
of exclude each other. A layer between two groups, of which a share a and a share b of its channels
stay, needs a b of what it did. What that differs from the sum of what both save is a cost of their
widths together.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from syno.adaptation.pipeline.channel_widths import ChannelWidths, Widths
from syno.adaptation.pipeline.journal import Scope
from syno.adaptation.pipeline.progress import Progress
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.study.fronts import LATENCY, MACS, PARAMS

# Widths of a group, the original one too, and the least share of the channels.
_WIDTHS, _LEAST = 7, 0.25
# Pairs of groups that layers stand between; more make the program slow.
_MOST_PAIRS = 64

Pair = tuple[int, int]
Matrix = list[list[float]]


@dataclass(frozen=True)
class GroupChoices:
    """The widths of groups, in the order of the network.

    widths: of each group, the original one first; costs: of each resource, by group and width, not
    negative: they count from the narrowest one; shared: of two groups together, beside those.
    slots: whose layers a group is part of. errors: of the layers that read the group; of a block
    how far the network is without it. exclusive: pairs of groups of which one at most is changed.
    blocks: how many of the last groups are blocks.
    """

    names: Sequence[str] = ()
    widths: Sequence[Sequence[int]] = ()
    errors: Sequence[Sequence[float]] = ()
    costs: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    shared: Mapping[str, Mapping[Pair, Matrix]] = field(default_factory=dict)
    slots: Sequence[Sequence[str]] = ()
    exclusive: Sequence[Pair] = ()
    blocks: int = 0

    @property
    def count(self) -> int:
        """How many groups of channels there are."""
        return len(self.names) - self.blocks

    def widths_of(self, places: Sequence[int]) -> dict[str, int]:
        """The widths of groups that lose channels, by the numbers of their choices."""
        return {
            name: of[place]
            for name, of, place in zip(self.names, self.widths, places, strict=True)
            if place
        }

    def places_of(self, widths: Widths) -> list[int]:
        """The numbers of the choices of all groups; those that are not named keep their width."""
        return [
            of.index(widths[name]) if name in widths else 0
            for name, of in zip(self.names, self.widths, strict=True)
        ]

    def nearest(self, widths: Widths) -> list[int]:
        """The numbers of the choices that are nearest to these widths."""
        return [
            min(range(len(of)), key=lambda n: abs(of[n] - widths.get(name, of[0])))
            for name, of in zip(self.names, self.widths, strict=True)
        ]


@dataclass(frozen=True)
class ScoredGroups:
    """The widths of groups, what each of them costs, and what makes networks of these widths."""

    choices: GroupChoices
    scores: Sequence[Sequence[float]]
    channels: ChannelWidths


def group_choices(
    channels: ChannelWidths,
    slots: Sequence[str],
    original_ms: float,
    *,
    widths: bool = True,
    blocks: bool = True,
) -> GroupChoices:
    """The widths that the groups of a network may have, and the blocks that it may lack.

    slots: names of all slots. original_ms: the latency of the original network, of which layers
    have their share of MACs where the engine does not know their times. widths, blocks: which of
    both there are.
    """
    steps = {name: _widths(channels, name) for name in channels.eliminations} if widths else {}
    steps = {name: of for name, of in steps.items() if len(of) > 1}
    if blocks:
        steps |= {name: [1, 0] for name in channels.blocks}
    whole = channels.whole

    def needed(given: Widths) -> dict[str, float]:
        found = channels.costs(given)
        time = 1e3 * found[LATENCY] if whole[LATENCY] else original_ms * found[MACS] / whole[MACS]
        return {**found, LATENCY: time}

    def given(name: str, place: int) -> dict[str, int]:
        return {name: steps[name][place]} if place else {}

    everything = needed({})
    alone = {name: [needed(given(name, i)) for i in range(len(of))] for name, of in steps.items()}
    pairs, apart = _pairs(channels, steps)
    while len(pairs) > _MOST_PAIRS:
        # The channels of a whole stage, which many layers read, are those of the largest errors.
        most = statistics.mode(itertools.chain.from_iterable(pairs))
        del steps[most]
        pairs, apart = ([pair for pair in of if most not in pair] for of in (pairs, apart))
    names = list(steps)
    shared: dict[str, dict[Pair, Matrix]] = {each: {} for each in (LATENCY, MACS, PARAMS)}
    for one, other in pairs:
        places = [range(len(steps[name])) for name in (one, other)]
        both = [[needed(given(one, i) | given(other, j)) for j in places[1]] for i in places[0]]
        for each, of in shared.items():
            of[names.index(one), names.index(other)] = [
                [
                    both[i][j][each]
                    - alone[one][i][each]
                    - alone[other][j][each]
                    + everything[each]
                    for j in places[1]
                ]
                for i in places[0]
            ]
    return GroupChoices(
        names,
        [steps[name] for name in names],
        [_errors(channels, name, steps[name]) for name in names],
        {
            each: [
                [max(cost[each] - alone[name][-1][each], 0.0) for cost in alone[name]]
                for name in names
            ]
            for each in shared
        },
        shared,
        [_slots(_parameters(channels, name, steps[name]), slots) for name in names],
        [(names.index(one), names.index(other)) for one, other in apart],
        sum(_is_block(of) for of in steps.values()),
    )


def group_scores(
    choices: GroupChoices,
    channels: ChannelWidths,
    subject: AdaptationSubject,
    images: int,
    scope: Scope,
    usual: float,
    over: Callable[[], bool],
    progress: Progress,
) -> list[list[float]]:
    """What each width of each group costs: errors, times how much the network's outputs feel them.

    For that a network is measured in which the group alone has its middle width.

    Args:
        choices: the groups.
        channels: what makes the networks.
        subject: what compares them.
        images: on how many samples.
        scope: of the journal.
        usual: the sensitivity of groups for which there was no time.
        over: whether the time is over.
        progress: is told about it.
    """
    known: list[float | None] = []
    for number, (name, widths, errors) in enumerate(
        zip(choices.names, choices.widths, choices.errors, strict=True)
    ):
        progress(number, len(choices.names), f"channels of {name}")
        middle = len(widths) // 2

        def measure(name: str = name, width: int = widths[middle]) -> float:
            net = channels.fitted({name: width}, channels.original, channels.few)
            subject.refresh(net)
            return subject.quality(net, images).divergence

        if over() and scope.get("group", name) is None:
            known.append(None)
            continue
        distance: float = scope.once("group", name, measure)
        known.append(max(distance, 0.0) / errors[middle] if errors[middle] > 0 else None)
    progress(len(choices.names), len(choices.names), "")
    found = [each for each in known if each is not None]
    usual = statistics.median(found) if found else usual
    return [
        [(usual if each is None else each) * error for error in errors]
        for each, errors in zip(known, choices.errors, strict=True)
    ]


def _widths(channels: ChannelWidths, name: str) -> list[int]:
    """Widths from the original one down, at about equal distances."""
    size = width = channels.eliminations[name].group.size
    every = [size]
    while step := channels.step(name, width):
        width -= step
        if width < _LEAST * size:
            break
        every.append(width)
    if len(every) <= _WIDTHS:
        return every
    places = [round(i * (len(every) - 1) / (_WIDTHS - 1)) for i in range(_WIDTHS)]
    return [every[place] for place in places]


def _is_block(widths: Sequence[int]) -> bool:
    return widths[-1] == 0


def _errors(channels: ChannelWidths, name: str, widths: Sequence[int]) -> list[float]:
    if _is_block(widths):
        return [0.0, channels.blocks[name]]
    elimination = channels.eliminations[name]
    return [elimination.without(elimination.group.size - width) for width in widths]


def _pairs(
    channels: ChannelWidths, steps: Mapping[str, Sequence[int]]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Groups that some parameter belongs to both of, and those that exclude each other.

    A group in a block is gone with it. One that goes through it is as wide behind it as before it,
    unless the block only happens to give as many channels as it gets.
    """
    parameters = {name: _parameters(channels, name, of) for name, of in steps.items()}
    together: list[tuple[str, str]] = []
    exclusive: list[tuple[str, str]] = []
    for one, other in itertools.combinations(steps, 2):
        if not parameters[one] & parameters[other]:
            continue
        apart = False
        if _is_block(steps[other]):
            inside = parameters[one] <= parameters[other]
            apart = inside or not channels.fits({one: steps[one][-1], other: 0})
        (exclusive if apart else together).append((one, other))
    return together, exclusive


def _parameters(channels: ChannelWidths, name: str, widths: Sequence[int]) -> set[str]:
    if _is_block(widths):
        return channels.parameters_of_block(name)
    return channels.parameters_of_group(name)


def _slots(parameters: Iterable[str], slots: Sequence[str]) -> list[str]:
    parts = {parameter.rpartition(".")[0] for parameter in parameters}
    return [slot for slot in slots if slot in parts]
