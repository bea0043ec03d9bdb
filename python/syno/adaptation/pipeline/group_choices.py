"""Channels of groups in the integer program: beside each slot's candidate, each group's width.

Layers whose channels go stay as they are otherwise: a group and the slots whose layers it is part
of exclude each other. A layer between two groups, of which a share a and a share b of its channels
stay, needs a b of what it did. What that differs from the sum of what both save is a cost of their
widths together.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
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
    slots: whose layers a group is part of. errors: of the layers that read the group.
    """

    names: Sequence[str] = ()
    widths: Sequence[Sequence[int]] = ()
    errors: Sequence[Sequence[float]] = ()
    costs: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    shared: Mapping[str, Mapping[Pair, Matrix]] = field(default_factory=dict)
    slots: Sequence[Sequence[str]] = ()

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
    channels: ChannelWidths, slots: Sequence[str], original_ms: float
) -> GroupChoices:
    """The widths that the groups of a network may have.

    slots: names of all slots. original_ms: the latency of the original network, of which layers
    have their share of MACs where the engine does not know their times.
    """
    widths = {name: _widths(channels, name) for name in channels.eliminations}
    widths = {name: of for name, of in widths.items() if len(of) > 1}
    whole = channels.whole

    def needed(given: Widths) -> dict[str, float]:
        found = channels.costs(given)
        time = 1e3 * found[LATENCY] if whole[LATENCY] else original_ms * found[MACS] / whole[MACS]
        return {**found, LATENCY: time}

    everything = needed({})
    alone = {name: [needed({name: w}) for w in of] for name, of in widths.items()}
    while True:
        pairs = _pairs(channels, list(widths))
        if len(pairs) <= _MOST_PAIRS:
            break
        # The channels of a whole stage, which many layers read, are those of the largest errors.
        most = statistics.mode(itertools.chain.from_iterable(pairs))
        del widths[list(widths)[most]]
    names = list(widths)
    shared: dict[str, dict[Pair, Matrix]] = {each: {} for each in (LATENCY, MACS, PARAMS)}
    for first, second in pairs:
        one, other = names[first], names[second]
        both = [[needed({one: v, other: w}) for w in widths[other]] for v in widths[one]]
        for each, of in shared.items():
            of[first, second] = [
                [
                    both[i][j][each]
                    - alone[one][i][each]
                    - alone[other][j][each]
                    + everything[each]
                    for j in range(len(widths[other]))
                ]
                for i in range(len(widths[one]))
            ]
    return GroupChoices(
        names,
        [widths[name] for name in names],
        [_errors(channels, name, widths[name]) for name in names],
        {
            each: [
                [max(cost[each] - alone[name][-1][each], 0.0) for cost in alone[name]]
                for name in names
            ]
            for each in shared
        },
        shared,
        [_slots(channels, name, slots) for name in names],
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


def _errors(channels: ChannelWidths, name: str, widths: Sequence[int]) -> list[float]:
    elimination = channels.eliminations[name]
    return [elimination.without(elimination.group.size - width) for width in widths]


def _pairs(channels: ChannelWidths, names: Sequence[str]) -> list[Pair]:
    """Groups that some parameter belongs to both of."""
    parameters = [
        {parameter for parameter, _ in channels.eliminations[name].group.indices} for name in names
    ]
    return [
        (i, j)
        for i, j in itertools.combinations(range(len(names)), 2)
        if parameters[i] & parameters[j]
    ]


def _slots(channels: ChannelWidths, name: str, slots: Sequence[str]) -> list[str]:
    parts = {place.rpartition(".")[0] for place, _ in channels.eliminations[name].group.indices}
    return [slot for slot in slots if slot in parts]
