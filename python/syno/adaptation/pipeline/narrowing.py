"""A network with fewer channels for each goal, in place of operators.

Channels go by elimination (`syno.adaptation.widths`). A step takes a few channels from one group;
the steps of least error for what they save come first, until the network keeps the goal. How much
a share of the MACs takes of the latency is found by measuring a few networks.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syno.adaptation.pipeline.channel_widths import ChannelWidths
from syno.adaptation.pipeline.goals import SLOTS, Goal
from syno.adaptation.pipeline.journal import AdaptationJournal
from syno.adaptation.pipeline.latency import InterleavedTimer
from syno.adaptation.pipeline.selection import name_of
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.options import AdaptOptions
from syno.study.fronts import LATENCY, MACS, PARAMS

# A latency is searched until it is this near below the goal, as a share of the original's, or so
# often.
_NEAR, _TRIES = 0.02, 6
# Of the score images, as for networks with operators.
_MORE = 4


@dataclass(frozen=True)
class Narrowed:
    """A network with fewer channels for a goal.

    widths: of groups that lose channels. ratio: its measured latency relative to that of the
    original; distance: of its outputs from the original's before the fine-tuning; macs, params: of
    the whole network.
    """

    goal: str
    widths: dict[str, int]
    ratio: float
    distance: float
    macs: int
    params: int


class Narrowing:
    """Chooses widths for goals."""

    def __init__(
        self,
        subject: AdaptationSubject,
        options: AdaptOptions,
        journal: AdaptationJournal,
        channels: ChannelWidths,
        clock: InterleavedTimer,
    ) -> None:
        self._subject, self._options = subject, options
        self._journal, self.channels, self._clock = journal, channels, clock

    def select(self, goals: Sequence[Goal], over: Callable[[], bool]) -> Narrowed | None:
        """The network for limits on some resources; None where no widths keep them.

        over: whether the time is over, after which no nearer network is searched. Times of slots
        are no goal for widths: there is nothing in place of a slot.
        """
        if any(goal.resource == SLOTS for goal in goals) or not self.channels.eliminations:
            return None
        name = name_of(goals)
        found = self._journal.once("narrowed", name, lambda: self._found(name, goals, over))
        return None if found is None else Narrowed(**found)

    def _found(
        self, name: str, goals: Sequence[Goal], over: Callable[[], bool]
    ) -> dict[str, Any] | None:
        rest = self.channels.rest
        limits = {
            goal.resource: goal.limit(self.channels.whole[goal.resource] + rest[goal.resource])
            - rest[goal.resource]
            for goal in goals
            if goal.resource != LATENCY
        }
        times = [goal for goal in goals if goal.resource == LATENCY]
        widths = self._within(limits)
        if widths is None:
            return None
        ratio = math.nan
        if times:
            original_ms = self._journal.get("original", "")["latency_ms"]
            wanted = min(goal.limit(original_ms) for goal in times) / original_ms
            timed = self._of_latency(limits, wanted, over)
            if timed is None:
                return None
            widths, ratio = timed
        if not widths:  # the original keeps all goals
            return None
        net = self.channels.network(widths)
        if not times:
            ratio = self._clock.ratio(net)
        distance = self._subject.quality(net, _MORE * self._options.score_images).divergence
        costs = self.channels.costs(widths)
        macs, params = (round(costs[each] + rest[each]) for each in (MACS, PARAMS))
        return dataclasses.asdict(Narrowed(name, widths, ratio, distance, macs, params))

    def _of_latency(
        self, limits: Mapping[str, float], wanted: float, over: Callable[[], bool]
    ) -> tuple[dict[str, int], float] | None:
        """Widths whose latency is at most `wanted` of the original's, and near to it.

        A share of the seconds of layers stands for the latency, or of the MACs where the engine
        does not say what layers take.
        """
        name = LATENCY if self.channels.whole[LATENCY] else MACS
        most = min(1.0, limits.get(name, math.inf) / self.channels.whole[name])
        low, high, share = 0.0, most, min(wanted, most)
        best: tuple[dict[str, int], float] | None = None
        for _ in range(_TRIES):
            widths = self._within({**limits, name: share * self.channels.whole[name]})
            if widths is None:  # less is not possible
                low = share
            else:
                ratio = self._clock.ratio(self.channels.structure(widths))
                if ratio <= wanted and (best is None or ratio > best[1]):
                    best = widths, ratio
                if 0.0 <= wanted - ratio < _NEAR or (best is not None and over()):
                    break
                low, high = (share, high) if ratio <= wanted else (low, share)
            share = (low + high) / 2
        return best

    def _within(self, limits: Mapping[str, float]) -> dict[str, int] | None:
        """Widths of little error that keep limits on costs of layers; None where none do.

        Greedy: the step of the least error for what it saves of what is above its limit.
        """
        widths = {name: e.group.size for name, e in self.channels.eliminations.items()}
        costs = self.channels.whole

        def over() -> list[str]:
            return [name for name, limit in limits.items() if costs[name] > limit]

        def rate(name: str) -> float:
            """The error of the next step of a group for what it saves; infinite without one."""
            step = self.channels.step(name, widths[name])
            if not step:
                return math.inf
            elimination = self.channels.eliminations[name]
            gone = elimination.group.size - widths[name]
            error = elimination.without(gone + step) - elimination.without(gone)
            after = self.channels.costs({**widths, name: widths[name] - step})
            saved = sum((costs[each] - after[each]) / self.channels.whole[each] for each in above)
            return error / saved if saved > 0 else math.inf

        above = over()
        queue = [(rate(name), name) for name in widths] if above else []
        heapq.heapify(queue)
        while above:
            if not queue:
                return None
            # What steps of other groups save changes slowly: the rate is looked at again.
            _, name = heapq.heappop(queue)
            found = rate(name)
            if found == math.inf:
                continue
            if queue and found > queue[0][0]:
                heapq.heappush(queue, (found, name))
                continue
            widths[name] -= self.channels.step(name, widths[name])
            costs = self.channels.costs(widths)
            above = over()
            heapq.heappush(queue, (rate(name), name))
        return {n: w for n, w in widths.items() if w < self.channels.eliminations[n].group.size}
