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
from functools import cached_property
from typing import Any

import torch
from torch import nn

from syno._util.hooks import removed_after
from syno.adaptation.pipeline.assembly import plain
from syno.adaptation.pipeline.delivery import Delivery
from syno.adaptation.pipeline.goals import SLOTS, Goal
from syno.adaptation.pipeline.journal import AdaptationJournal
from syno.adaptation.pipeline.latency import InterleavedTimer
from syno.adaptation.pipeline.results import WidthRow
from syno.adaptation.pipeline.selection import name_of
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.adaptation.widths import Elimination, eliminations, narrowed
from syno.network.channels.groups import channel_groups, without
from syno.network.surgery import layer_report
from syno.options import AdaptOptions
from syno.study.fronts import LATENCY, MACS, PARAMS

# Channels of a step, where a group has at least four times as many.
_STEPS = (16, 8, 4, 2, 1)
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
        delivery: Delivery,
        clock: InterleavedTimer,
    ) -> None:
        self._subject, self._options = subject, options
        self._journal, self._delivery, self._clock = journal, delivery, clock

    @cached_property
    def _original(self) -> nn.Module:
        return plain(self._subject.original)

    @cached_property
    def _inputs(self) -> list[torch.Tensor]:
        return self._subject.inputs(self._options.fit_images)

    @cached_property
    def _eliminations(self) -> dict[str, Elimination]:
        """Of each group; the journal remembers the order and the errors."""
        groups = {g.name: g for g in channel_groups(self._original, self._subject.example)}

        def find() -> dict[str, list[list[float]]]:
            found = eliminations(self._original, list(groups.values()), self._inputs)
            return {e.group.name: [list(e.order), list(e.errors)] for e in found}

        known = self._journal.once("eliminations", "", find)
        return {
            name: Elimination(group, tuple(map(int, known[name][0])), tuple(known[name][1]))
            for name, group in groups.items()
            if name in known
        }

    @cached_property
    def _costs(self) -> _Costs:
        seconds = self._delivery.layer_seconds
        return _Costs(self._original, self._subject.example, seconds)

    @cached_property
    def _rest(self) -> dict[str, float]:
        """What is not of layers, such as products of attention, and stays."""
        report, whole = layer_report(self._subject.network.template), self._costs.whole
        return {
            MACS: (report.macs or 0) - whole[MACS],
            PARAMS: (report.params or 0) - whole[PARAMS],
        }

    def select(self, goals: Sequence[Goal], over: Callable[[], bool]) -> Narrowed | None:
        """The network for limits on some resources; None where no widths keep them.

        over: whether the time is over, after which no nearer network is searched. Times of slots
        are no goal for widths: there is nothing in place of a slot.
        """
        if any(goal.resource == SLOTS for goal in goals) or not self._eliminations:
            return None
        name = name_of(goals)
        found = self._journal.once("narrowed", name, lambda: self._found(name, goals, over))
        return None if found is None else Narrowed(**found)

    def network(self, widths: Mapping[str, int]) -> nn.Module:
        """The network with these widths, fitted."""
        plans = [(self._eliminations[name], width) for name, width in widths.items()]
        made = narrowed(self._original, plans, self._inputs)
        self._subject.refresh(made)
        return made

    def rows(self, widths: Mapping[str, int]) -> tuple[WidthRow, ...]:
        """Which groups lose channels, and what that costs."""
        return tuple(
            WidthRow(name, e.group.size, widths[name], e.without(e.group.size - widths[name]))
            for name, e in self._eliminations.items()
            if name in widths
        )

    def structure(self, widths: Mapping[str, int]) -> nn.Module:
        """The network with these widths and any weights."""
        found = self._eliminations
        return without(self._original, [found[name].removed(w) for name, w in widths.items()])

    def _found(
        self, name: str, goals: Sequence[Goal], over: Callable[[], bool]
    ) -> dict[str, Any] | None:
        rest = self._rest
        limits = {
            goal.resource: goal.limit(self._costs.whole[goal.resource] + rest[goal.resource])
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
        net = self.network(widths)
        if not times:
            ratio = self._clock.ratio(net)
        distance = self._subject.quality(net, _MORE * self._options.score_images).divergence
        costs = self._costs.of(self._removed(widths))
        macs, params = (round(costs[each] + rest[each]) for each in (MACS, PARAMS))
        return dataclasses.asdict(Narrowed(name, widths, ratio, distance, macs, params))

    def _of_latency(
        self, limits: Mapping[str, float], wanted: float, over: Callable[[], bool]
    ) -> tuple[dict[str, int], float] | None:
        """Widths whose latency is at most `wanted` of the original's, and near to it.

        A share of the seconds of layers stands for the latency, or of the MACs where the engine
        does not say what layers take.
        """
        name = LATENCY if self._costs.whole[LATENCY] else MACS
        most = min(1.0, limits.get(name, math.inf) / self._costs.whole[name])
        low, high, share = 0.0, most, min(wanted, most)
        best: tuple[dict[str, int], float] | None = None
        for _ in range(_TRIES):
            widths = self._within({**limits, name: share * self._costs.whole[name]})
            if widths is None:  # less is not possible
                low = share
            else:
                ratio = self._clock.ratio(self.structure(widths))
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
        widths = {name: e.group.size for name, e in self._eliminations.items()}
        costs = self._costs.whole

        def over() -> list[str]:
            return [name for name, limit in limits.items() if costs[name] > limit]

        def rate(name: str) -> float:
            """The error of the next step of a group for what it saves; infinite without one."""
            step = self._step(name, widths[name])
            if not step:
                return math.inf
            elimination = self._eliminations[name]
            gone = elimination.group.size - widths[name]
            error = elimination.without(gone + step) - elimination.without(gone)
            after = self._costs.of(self._removed({**widths, name: widths[name] - step}))
            saved = sum((costs[each] - after[each]) / self._costs.whole[each] for each in above)
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
            widths[name] -= self._step(name, widths[name])
            costs = self._costs.of(self._removed(widths))
            above = over()
            heapq.heappush(queue, (rate(name), name))
        return {n: w for n, w in widths.items() if w < self._eliminations[n].group.size}

    def _step(self, name: str, width: int) -> int:
        """How many channels go next: widths are multiples of so many."""
        size = self._eliminations[name].group.size
        step = next(each for each in _STEPS if size >= 4 * each or each == 1)
        rest = width % step or step
        return rest if width - rest >= max(step, 1) and width > rest else 0

    def _removed(self, widths: Mapping[str, int]) -> dict[tuple[str, int], int]:
        """Of each dimension of a parameter how many elements are gone."""
        gone: dict[tuple[str, int], int] = {}
        for name, width in widths.items():
            group = self._eliminations[name].group
            for place, indices in group.indices.items():
                lost = (group.size - width) * indices.shape[1]
                gone[place] = gone.get(place, 0) + lost
        return gone


class _Costs:
    """What the layers of a network need without some elements of its parameters.

    seconds: of layers by name, which are taken to be proportional to the size of the weight.

    whole: of the network as it is.
    """

    def __init__(self, net: nn.Module, example: torch.Tensor, seconds: Mapping[str, float]) -> None:
        self._shapes = {name: tuple(p.shape) for name, p in net.named_parameters()}
        self._places = _places(net, example)
        self._seconds = {f"{name}.weight": spent for name, spent in seconds.items()}
        self.whole = self.of({})

    def of(self, gone: Mapping[tuple[str, int], int]) -> dict[str, float]:
        """The costs without so many elements of dimensions of parameters."""
        macs = params = time = 0.0
        for name, shape in self._shapes.items():
            size = math.prod(n - gone.get((name, dim), 0) for dim, n in enumerate(shape))
            params += size
            macs += self._places.get(name, 0) * size
            if name in self._seconds:
                time += self._seconds[name] * size / math.prod(shape)
        return {LATENCY: time, MACS: macs, PARAMS: params}


def _places(net: nn.Module, example: torch.Tensor) -> dict[str, int]:
    """How often each element of a weight is multiplied for one sample: the places of a map."""
    found: dict[str, int] = {}

    def count(name: str) -> Callable[..., None]:
        def look(module: nn.Module, _: object, result: torch.Tensor) -> None:
            weight = module.weight
            assert isinstance(weight, torch.Tensor)
            found[f"{name}.weight"] = result[0].numel() // len(weight)

        return look

    layers = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
    hooks = [
        module.register_forward_hook(count(name))
        for name, module in net.named_modules()
        if isinstance(module, layers)
    ]
    with removed_after(hooks), torch.no_grad():
        net(example)
    return found
