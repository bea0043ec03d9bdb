"""A network for each goal: chosen by the integer program, assembled, measured, chosen again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from syno._util.errors import UserError
from syno.adaptation.choice import Assignment, Choices
from syno.adaptation.pipeline.assembly import assembled
from syno.adaptation.pipeline.goals import LATENCY, MACS, PARAMS, Goal
from syno.adaptation.pipeline.journal import Journal
from syno.adaptation.pipeline.kinds import Kind
from syno.adaptation.pipeline.latency import Clock, LatencyModel
from syno.adaptation.pipeline.pool import Candidate
from syno.adaptation.pipeline.scores import interactions
from syno.adaptation.pipeline.screening import Entry, Fits
from syno.adaptation.pipeline.subject import Subject
from syno.options import AdaptOptions

# So many of the best assignments of a goal are assembled; the nearest to the original is taken.
_ASSEMBLED = 3
_MORE = 4
# The model of the latency is off if it misses by more than this share of the original's latency.
_OFF = 0.03

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Totals:
    """What the original network needs."""

    latency: float
    macs: float
    params: float


@dataclass(frozen=True)
class Selected:
    """A network for a goal.

    choice: the name of the candidate in each slot. predicted_ms: its latency by the model.
    ratio: its measured latency relative to that of the original network. distance: of its outputs
    from the original's before the fine-tuning.
    """

    goal: str
    choice: dict[str, str]
    predicted_ms: float
    ratio: float
    distance: float
    score: float


class Selector:
    """Chooses networks for goals from scored candidates."""

    def __init__(
        self,
        subject: Subject,
        kinds: Mapping[str, Kind],
        entries: Mapping[str, Sequence[Entry]],
        scores: Mapping[str, Mapping[str, float]],
        dependence: Mapping[tuple[str, str], float],
        totals: Totals,
        fits: Fits,
        options: AdaptOptions,
        clock: Clock,
    ) -> None:
        self._subject, self._kinds, self._fits = subject, kinds, fits
        self._options, self._clock, self._totals = options, clock, totals
        self.entries = {
            slot: list(entries[kind.name]) for kind in kinds.values() for slot in kind.slots
        }
        self.entries = {slot: self.entries[slot] for slot in scores}
        listed = {
            slot: [scores[slot][each.candidate.name] for each in of]
            for slot, of in self.entries.items()
        }
        costs = {
            LATENCY: [[each.latency_ms for each in of] for of in self.entries.values()],
            MACS: [[float(each.macs) for each in of] for of in self.entries.values()],
            PARAMS: [[float(each.params) for each in of] for of in self.entries.values()],
        }
        self.choices = Choices(list(listed.values()), costs, interactions(dependence, listed))
        originals = self.choices.assignment([0] * len(listed)).costs
        self.model = LatencyModel(totals.latency, originals[LATENCY])
        self._rest = {
            MACS: totals.macs - originals[MACS],
            PARAMS: totals.params - originals[PARAMS],
        }

    def select(
        self, goals: Sequence[Goal], journal: Journal, refit: Sequence[torch.Tensor]
    ) -> Selected:
        """The network for limits on some resources; measured, and chosen again if that is off.

        Raises UserError where no assignment keeps the limits.
        """
        name = name_of(goals)

        def find() -> dict[str, Any]:
            first = self._best(goals, refit)
            if not self._off(first, goals):
                return dataclasses.asdict(first)
            second = self._best(goals, refit)
            return dataclasses.asdict(self._better(first, second, goals))

        found = Selected(**journal.once("network", name, find))
        self._learn(found)
        return found

    def candidates(self, selected: Mapping[str, str]) -> dict[str, Candidate]:
        """The candidates of a choice by name."""
        return {
            slot: next(e.candidate for e in self.entries[slot] if e.candidate.name == name)
            for slot, name in selected.items()
        }

    def costs(self, choice: Mapping[str, str]) -> dict[str, float]:
        """MACs and parameters of the whole network with a choice, and its predicted latency."""
        places = [
            next(n for n, e in enumerate(of) if e.candidate.name == choice[slot])
            for slot, of in self.entries.items()
        ]
        costs = self.choices.assignment(places).costs
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
        for name in sorted(names - {"original", "removed"}):
            places = [
                next((n for n, e in enumerate(of) if e.candidate.name == name), 0)
                for of in self.entries.values()
            ]
            one = self.choices.assignment(places)
            if all(one.costs[r] <= limit for r, limit in limits.items()) and (
                found is None or one.score < found[0]
            ):
                found = one.score, self._names(one)
        return None if found is None else found[1]

    def _limits(self, goals: Sequence[Goal]) -> dict[str, float]:
        limits = {}
        for goal in goals:
            limit = goal.limit(getattr(self._totals, goal.resource))
            if goal.resource == LATENCY:
                limits[LATENCY] = self.model.slots(limit)
            else:
                limits[goal.resource] = limit - self._rest[goal.resource]
        return limits

    def _best(self, goals: Sequence[Goal], refit: Sequence[torch.Tensor]) -> Selected:
        found: tuple[float, Assignment, nn.Module] | None = None
        for one in self._several(goals):
            choice = self.candidates(self._names(one))
            net = assembled(self._subject, self._kinds, choice, self._fits)
            distance = self._subject.quality(net, _MORE * self._options.score_images).divergence
            if found is None or distance < found[0]:
                found = distance, one, net
        assert found is not None
        distance, one, net = found
        if refit:
            choice = self.candidates(self._names(one))
            net = assembled(self._subject, self._kinds, choice, self._fits, refit=refit)
            distance = self._subject.quality(net, _MORE * self._options.score_images).divergence
        ratio = self._clock.ratios({"network": net})["network"]
        predicted = self.model.predicted(one.costs[LATENCY])
        self.model.learn(one.costs[LATENCY], ratio * self._totals.latency)
        return Selected(name_of(goals), self._names(one), predicted, ratio, distance, one.score)

    def _several(self, goals: Sequence[Goal]) -> list[Assignment]:
        try:
            return self.choices.several(self._limits(goals), _ASSEMBLED)
        except UserError as error:
            raise UserError(
                f"the goal {name_of(goals)} is out of reach\n{self._nearest(goals)}"
            ) from error

    def _nearest(self, goals: Sequence[Goal]) -> str:
        lines = []
        for goal in goals:
            least = self.choices.cheapest(goal.resource).costs[goal.resource]
            if goal.resource == LATENCY:
                amount = self.model.predicted(least)
            else:
                amount = least + self._rest[goal.resource]
            total = getattr(self._totals, goal.resource)
            unit = " ms" if goal.resource == LATENCY else ""
            lines.append(
                f"  {goal.resource}: the least possible is {amount / total:.2f}x "
                f"({amount:.4g}{unit} of {total:.4g}{unit})"
            )
        return "\n".join(
            [*lines, "  what to do: a weaker goal, or more candidates (samples, keep)"]
        )

    def _off(self, found: Selected, goals: Sequence[Goal]) -> bool:
        measured = found.ratio * self._totals.latency
        return (
            abs(found.predicted_ms - measured) > _OFF * self._totals.latency
            or self._excess(found, goals) > 0.0
        )

    def _excess(self, found: Selected, goals: Sequence[Goal]) -> float:
        """By what share of the original's latency a network is above the goal."""
        wanted = [goal.limit(self._totals.latency) for goal in goals if goal.resource == LATENCY]
        if not wanted:
            return 0.0
        return max(found.ratio - min(wanted) / self._totals.latency, 0.0)

    def _better(self, first: Selected, second: Selected, goals: Sequence[Goal]) -> Selected:
        """The one that keeps the goal, within the noise of a measurement; else the nearer one."""
        kept = [one for one in (first, second) if self._excess(one, goals) <= _OFF / 2]
        if kept:
            return min(kept, key=lambda one: one.distance)
        return min(first, second, key=lambda one: self._excess(one, goals))

    def _learn(self, found: Selected) -> None:
        places = [
            next(n for n, e in enumerate(of) if e.candidate.name == found.choice[slot])
            for slot, of in self.entries.items()
        ]
        slots_ms = self.choices.assignment(places).costs[LATENCY]
        self.model.learn(slots_ms, found.ratio * self._totals.latency)

    def _names(self, one: Assignment) -> dict[str, str]:
        return {
            slot: of[place].candidate.name
            for (slot, of), place in zip(self.entries.items(), one.choice, strict=True)
        }


def name_of(goals: Sequence[Goal]) -> str:
    """The name of a network: `0.5x` for a latency, else with the resource, as in `macs 0.5x`."""
    return ", ".join(
        goal.text if goal.resource == LATENCY else f"{goal.resource} {goal.text}" for goal in goals
    )
