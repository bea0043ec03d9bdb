"""A network for each goal: chosen by the integer program, assembled, measured, chosen again.

1. The integer program gives the best assignments under the goal that were not assembled yet.
2. They are assembled, and their outputs compared with those of the original.
3. What was seen corrects the linear model of what slots lose together (`interactions`).
4. The latency of the nearest one is measured, which corrects the model of latencies.
5. This is repeated until no assignment that is nearer to the original comes.

An assignment has a candidate for each slot, and a width for each group of channels.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs
from syno.adaptation.pipeline.assembly import Narrow, assembled
from syno.adaptation.pipeline.channel_widths import Widths
from syno.adaptation.pipeline.goals import SLOTS, TIMES, Goal
from syno.adaptation.pipeline.group_choices import ScoredGroups
from syno.adaptation.pipeline.interactions import Interactions
from syno.adaptation.pipeline.journal import Scope
from syno.adaptation.pipeline.kinds import Kind, by_slot
from syno.adaptation.pipeline.latency import InterleavedTimer, NetworkLatency
from syno.adaptation.pipeline.pool import ORIGINAL, REMOVED, Candidate
from syno.adaptation.pipeline.screening import Fits, ScreenedCandidate
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.network.choice import Assignment, Choices
from syno.options import AdaptOptions
from syno.study.fronts import LATENCY, MACS, PARAMS

# So many of the best assignments of a goal are assembled at a time, and so often at most.
_ASSEMBLED, _ROUNDS = 3, 6
_MORE = 4
# A network is nearer to the original if its distance is smaller by this share.
_NEARER = 0.01
# The model of the latency is off if it misses by more than this share of the original's latency.
_OFF = 0.03


class OutOfReachError(UserError):
    """No assignment keeps the goals. nearest: what the least possible is, in a line."""

    def __init__(self, name: str, least: Sequence[str]) -> None:
        advice = "  what to do: a weaker goal, or more candidates (samples, mutations, keep)"
        lines = [f"the goal {name} is out of reach", *(f"  {line}" for line in least), advice]
        super().__init__("\n".join(lines))
        self.nearest = "; ".join(least)


@dataclass(frozen=True)
class Totals:
    """What the original network needs."""

    latency: float
    macs: float
    params: float


@dataclass(frozen=True)
class Selected:
    """A network for a goal.

    choice: the name of the candidate in each slot; widths: of the groups of channels that lose
    some. predicted_ms: its latency by the model.
    ratio: its measured latency relative to that of the original network. distance: of its outputs
    from the original's before the fine-tuning, and expected: by the model before it was assembled.
    rounds: how often the integer program was solved. assembled: the candidates of every network
    that was assembled, by number, with its distance.
    """

    goal: str
    choice: dict[str, str]
    predicted_ms: float
    ratio: float
    distance: float
    expected: float
    rounds: int = 0
    assembled: list[tuple[list[int], float]] = field(default_factory=list)
    widths: dict[str, int] = field(default_factory=dict)


class Selector:
    """Chooses networks for goals from scored candidates."""

    def __init__(
        self,
        subject: AdaptationSubject,
        kinds: Mapping[str, Kind],
        entries: Mapping[str, Sequence[ScreenedCandidate]],
        scores: Mapping[str, Mapping[str, float]],
        dependence: Mapping[tuple[str, str], float],
        totals: Totals,
        fits: Fits,
        options: AdaptOptions,
        clock: InterleavedTimer,
        scope: Scope,
        groups: ScoredGroups | None = None,
    ) -> None:
        self._subject, self._kinds, self._fits = subject, kinds, fits
        self._options, self._clock, self._totals = options, clock, totals
        self._scope, self._groups = scope, groups
        of_slot = by_slot(kinds)
        self.entries = {
            slot: [e for e in entries[of_slot[slot].name] if e.candidate.name in of]
            for slot, of in scores.items()
        }
        listed = {
            slot: [scores[slot][each.candidate.name] for each in of]
            for slot, of in self.entries.items()
        }
        self._costs = {
            name: [[float(each.cost(name)) for each in of] for of in self.entries.values()]
            for name in (LATENCY, MACS, PARAMS)
        }
        slots_ms = sum(of[0] for of in self._costs[LATENCY])
        place = {slot: number for number, slot in enumerate(listed)}
        if groups is not None:
            for name, costs in groups.choices.costs.items():
                self._costs[name] += [list(of) for of in costs]
        every = [*listed.values(), *(groups.scores if groups is not None else [])]
        self.interactions = Interactions(
            every,
            {(place[one], place[other]): c for (one, other), c in dependence.items()},
            alike=range(len(listed), len(listed) + groups.choices.count) if groups else (),
        )
        self.choices = self._corrected()
        originals = self.choices.assignment([0] * len(self.choices.counts)).costs
        self.model = NetworkLatency(totals.latency, originals[LATENCY])
        self._whole = {
            LATENCY: totals.latency,
            SLOTS: slots_ms,
            MACS: totals.macs,
            PARAMS: totals.params,
        }
        self._rest = {
            MACS: totals.macs - originals[MACS],
            PARAMS: totals.params - originals[PARAMS],
        }

    def select(
        self,
        goals: Sequence[Goal],
        refit: Sequence[Inputs],
        over: Callable[[], bool],
    ) -> Selected:
        """The network for limits on some resources; measured, and chosen again if that is off.

        Args:
            goals: the limits.
            refit: inputs for which the operators of the chosen network are fitted again.
            over: whether the time for this is over. One round is always made.

        Raises:
            OutOfReachError: no assignment keeps the limits.
        """
        name = name_of(goals)
        known = self._scope.get("network", name)
        if known is None:
            found = self._found(goals, refit, over)
            self._scope.put("network", name, dataclasses.asdict(found))
            return found
        found = Selected(**known)
        for choice, distance in found.assembled:
            # Those of earlier versions have no widths.
            rest = [0] * (len(self.choices.counts) - len(choice))
            self.interactions.learn([*choice, *rest], distance)
        self.choices = self._corrected()
        places = self._places(found.choice, found.widths)
        slots_ms = self.choices.assignment(places).costs[LATENCY]
        self.model.learn(slots_ms, found.ratio * self._totals.latency)
        return found

    def learn(self, widths: Widths, distance: float) -> None:
        """Take a network into account in which groups have about these widths, and which has no
        operators; distance: of its outputs from the original's."""
        if self._groups is None:
            return
        places = self._groups.choices.nearest(widths)
        self.interactions.learn([*[0] * len(self.entries), *places], distance)
        self.choices = self._corrected()

    def candidates(self, selected: Mapping[str, str]) -> dict[str, Candidate]:
        """The candidates of a choice by name."""
        return {slot: self.entry(slot, name).candidate for slot, name in selected.items()}

    def entry(self, slot: str, name: str) -> ScreenedCandidate:
        """The candidate of a slot with a name, and what it costs there."""
        return next(e for e in self.entries[slot] if e.candidate.name == name)

    def costs(self, choice: Mapping[str, str], widths: Widths) -> dict[str, float]:
        """MACs and parameters of the whole network, and its predicted latency."""
        costs = self.choices.assignment(self._places(choice, widths)).costs
        return {
            LATENCY: self.model.predicted(costs[LATENCY]),
            MACS: costs[MACS] + self._rest[MACS],
            PARAMS: costs[PARAMS] + self._rest[PARAMS],
        }

    def everywhere(self, goals: Sequence[Goal]) -> dict[str, str] | None:
        """The best choice of one operator for all slots that it is a candidate of.

        Other slots keep their layer. None where no operator keeps the limits so.
        """
        names = {e.candidate.name for of in self.entries.values() for e in of}
        found: tuple[float, dict[str, str]] | None = None
        limits = self._limits(goals)
        for name in sorted(names - {ORIGINAL, REMOVED}):
            places = [
                next((n for n, e in enumerate(of) if e.candidate.name == name), 0)
                for of in self.entries.values()
            ]
            one = self.choices.assignment([*places, *self._full])
            if all(one.costs[r] <= limit for r, limit in limits.items()) and (
                found is None or one.score < found[0]
            ):
                found = one.score, self._names(one)
        return None if found is None else found[1]

    def _limits(self, goals: Sequence[Goal]) -> dict[str, float]:
        limits: dict[str, float] = {}
        for goal in goals:
            limit = goal.limit(self._whole[goal.resource])
            if goal.resource in TIMES:
                limit = limit if goal.resource == SLOTS else self.model.slots(limit)
                limits[LATENCY] = min(limits.get(LATENCY, limit), limit)
            else:
                limits[goal.resource] = limit - self._rest[goal.resource]
        return limits

    def _found(
        self,
        goals: Sequence[Goal],
        refit: Sequence[Inputs],
        over: Callable[[], bool],
    ) -> Selected:
        best: Selected | None = None
        assembled_: dict[tuple[int, ...], float] = {}
        rounds = 0
        while rounds < _ROUNDS and not (best is not None and over()):
            fresh = self._several(goals, list(assembled_))
            if not fresh:  # all assignments within the limits were assembled
                break
            promised = self.interactions.predicted(fresh[0].choice)
            if best is not None and self._is_settled(best, promised, goals):
                break
            rounds += 1
            for one in fresh:
                assembled_[one.choice] = self._distance(one)
            nearest = min(fresh, key=lambda one: assembled_[one.choice])
            expected = self.interactions.predicted(nearest.choice)
            for one in fresh:
                self.interactions.learn(one.choice, assembled_[one.choice])
            self.choices = self._corrected()
            distance = assembled_[nearest.choice]
            if best is not None and self._is_settled(best, distance, goals):
                break
            timed = self._timed(nearest, goals, distance, expected)
            best = timed if best is None else self._better(best, timed, goals)
        assert best is not None
        if refit:
            net = self._network(best.choice, best.widths, refit)
            best = dataclasses.replace(best, distance=self._far(net))
        seen = [(list(choice), far) for choice, far in assembled_.items()]
        return dataclasses.replace(best, rounds=rounds, assembled=seen)

    def _is_settled(self, best: Selected, distance: float, goals: Sequence[Goal]) -> bool:
        """Whether another network of this distance is no better than the best one."""
        return self._keeps(best, goals) and distance >= (1.0 - _NEARER) * best.distance

    def _network(
        self, choice: Mapping[str, str], widths: Widths, refit: Sequence[Inputs] = ()
    ) -> nn.Module:
        return assembled(
            self._subject,
            self._kinds,
            self.candidates(choice),
            self._fits,
            refit=refit,
            narrow=self._narrow(widths, few=not refit),
        )

    def _narrow(self, widths: Widths, *, few: bool) -> Narrow:
        """What gives a network these widths; few: fitted to few samples. None for no widths."""
        if not widths:
            return None
        assert self._groups is not None
        channels = self._groups.channels
        return lambda net: channels.fitted(widths, net, channels.few if few else None)

    def _formats(self, choice: Mapping[str, str]) -> dict[str, str]:
        """The number format of each slot."""
        return {slot: self.entry(slot, name).format for slot, name in choice.items()}

    def _far(self, net: nn.Module) -> float:
        """The distance of the outputs of a network from the original's."""
        return self._subject.quality(net, _MORE * self._options.score_images).divergence

    def _distance(self, one: Assignment) -> float:
        found: float = self._scope.once(
            "assembled",
            self._key(one),
            lambda: self._far(self._network(self._names(one), self._widths(one))),
        )
        return found

    def _timed(
        self,
        one: Assignment,
        goals: Sequence[Goal],
        distance: float,
        expected: float,
    ) -> Selected:
        names, widths = self._names(one), self._widths(one)
        ratio: float = self._scope.once(
            "timed",
            self._key(one),
            lambda: self._clock.ratio(self._network(names, widths), self._formats(names)),
        )
        predicted = self.model.predicted(one.costs[LATENCY])
        self.model.learn(one.costs[LATENCY], ratio * self._totals.latency)
        return Selected(name_of(goals), names, predicted, ratio, distance, expected, widths=widths)

    def _corrected(self) -> Choices:
        """The integer program with scores that take into account what was seen."""
        scores, pairs = self.interactions.scores, self.interactions.pairs
        if self._groups is None:
            return Choices(scores, self._costs, pairs)
        choices, begin = self._groups.choices, len(self.entries)
        place = {slot: number for number, slot in enumerate(self.entries)}
        shared = {
            name: {(begin + i, begin + j): of for (i, j), of in together.items()}
            for name, together in choices.shared.items()
        }
        exclusive = [
            (place[slot], begin + number)
            for number, slots in enumerate(choices.slots)
            for slot in slots
            if slot in place
        ]
        exclusive += [(begin + i, begin + j) for i, j in choices.exclusive]
        return Choices(scores, self._costs, pairs, shared=shared, exclusive=exclusive)

    def _places(self, choice: Mapping[str, str], widths: Widths) -> list[int]:
        places = [
            next(n for n, e in enumerate(of) if e.candidate.name == choice[slot])
            for slot, of in self.entries.items()
        ]
        if self._groups is not None:
            places += self._groups.choices.places_of(widths)
        return places

    @property
    def _full(self) -> list[int]:
        """Of each group all channels."""
        return [0] * (len(self.choices.counts) - len(self.entries))

    def _several(
        self, goals: Sequence[Goal], other_than: Sequence[tuple[int, ...]]
    ) -> list[Assignment]:
        try:
            return self.choices.several(self._limits(goals), _ASSEMBLED, other_than=other_than)
        except UserError as error:
            raise OutOfReachError(name_of(goals), self._nearest(goals)) from error

    def _nearest(self, goals: Sequence[Goal]) -> list[str]:
        """The least of each resource that is possible, alone and with the other goals."""
        lines = [self._least(goal, {}) for goal in goals]
        limits = self._limits(goals)
        for goal in goals if len(goals) > 1 else ():
            others = {name: limit for name, limit in limits.items() if name != goal.cost}
            with contextlib.suppress(UserError):  # the other goals exclude each other
                lines.append(f"{self._least(goal, others)}, with the other goals")
        return lines

    def _least(self, goal: Goal, limits: Mapping[str, float]) -> str:
        resource = goal.resource
        least = self.choices.cheapest(goal.cost, limits).costs[goal.cost]
        if resource == LATENCY:
            amount = self.model.predicted(least)
        else:
            amount = least + self._rest.get(resource, 0.0)
        total = self._whole[resource]
        unit = " ms" if resource in TIMES else ""
        return (
            f"{resource}: the least possible is {amount / total:.2f}x "
            f"({amount:.4g}{unit} of {total:.4g}{unit})"
        )

    def _keeps(self, found: Selected, goals: Sequence[Goal]) -> bool:
        """Whether a network keeps the goal, within the noise of a measurement."""
        return self._excess(found, goals) <= _OFF / 2

    def _excess(self, found: Selected, goals: Sequence[Goal]) -> float:
        """By what share of the original's latency a network is above the goal."""
        wanted = [goal.limit(self._totals.latency) for goal in goals if goal.resource == LATENCY]
        if not wanted:
            return 0.0
        return max(found.ratio - min(wanted) / self._totals.latency, 0.0)

    def _better(self, first: Selected, second: Selected, goals: Sequence[Goal]) -> Selected:
        """The nearest to the original of those that keep the goal, or else to the goal."""
        kept = [one for one in (first, second) if self._keeps(one, goals)]
        if kept:
            return min(kept, key=lambda one: one.distance)
        return min(first, second, key=lambda one: self._excess(one, goals))

    def _names(self, one: Assignment) -> dict[str, str]:
        return {
            slot: of[place].candidate.name
            for (slot, of), place in zip(self.entries.items(), one.choice, strict=False)
        }

    def _widths(self, one: Assignment) -> dict[str, int]:
        """The widths of groups that lose channels."""
        if self._groups is None:
            return {}
        return self._groups.choices.widths_of(one.choice[len(self.entries) :])

    def _key(self, one: Assignment) -> str:
        """Findings of networks with all channels are those of earlier versions, too."""
        count = len(self.entries)
        choice = one.choice if any(one.choice[count:]) else one.choice[:count]
        return " ".join(map(str, choice))


def name_of(goals: Sequence[Goal]) -> str:
    """The name of a network: `0.5x` for a latency, else with the resource, as in `macs 0.5x`."""
    return ", ".join(
        goal.text if goal.resource == LATENCY else f"{goal.resource} {goal.text}" for goal in goals
    )
