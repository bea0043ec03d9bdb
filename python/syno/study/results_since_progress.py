"""How many results of a study have improved nothing, counted as they arrive."""

from __future__ import annotations

from syno.store import Evaluation, StudyState
from syno.store.objectives import Advance, Objectives
from syno.store.records import BASELINE, OK

# By what results are ordered: when they ended, and the number of the proposal.
_Place = tuple[str, int]


class ResultsSinceProgress:
    """The number that `overview.since_progress` counts in the whole study.

    A result that ended after all others is added to what was counted. Otherwise, as after an answer
    was taken back, or at the first result of a higher rung, all results are counted again.

    Args:
        state: of the study; the caller keeps it up.
        objectives: of the study.
    """

    def __init__(self, state: StudyState, objectives: Objectives) -> None:
        self._state, self._objectives = state, objectives
        self._version = -1
        self._changes = 0  # those that were looked at
        self._own: dict[int, tuple[Evaluation, ...]] = {}  # that were counted, by proposal
        self._highest = 0
        self._baseline: Evaluation | None = None
        self._last: _Place = ("", -1)
        self._advance = Advance(objectives, None)

    def count(self) -> int:
        """Count the latest operators without progress."""
        if self._version != self._state.versions:
            self._version = self._state.versions
            self._update()
        return self._advance.stale

    def _update(self) -> None:
        changed = sorted(set(self._state.changed[self._changes :]))
        self._changes = len(self._state.changed)
        new: list[Evaluation] = []
        is_added = True
        for ask in changed:
            if self._state.proposal(ask).kind == BASELINE:
                continue
            every = self._state.evaluations_of(ask)
            before = self._own.get(ask, ())
            is_added = is_added and every[: len(before)] == before
            is_added = is_added and not any(self._is_higher(each) for each in every)
            new += [each for each in every[len(before) :] if self._counts(each)]
            self._own[ask] = every
        new.sort(key=_place)
        is_added = is_added and self._baseline == self._original()
        if is_added and (not new or _place(new[0]) > self._last):
            self._add(new)
        else:
            self._count_again()

    def _is_higher(self, each: Evaluation) -> bool:
        return _is_trained(each) and each.rung_index > self._highest

    def _counts(self, each: Evaluation) -> bool:
        return each.rung_index == self._highest and each.is_evaluated

    def _original(self) -> Evaluation | None:
        """The evaluation of the original network at the rung whose results are counted."""
        every = self._state.baselines
        return next((each for each in every if each.rung_index == self._highest), None)

    def _add(self, results: list[Evaluation]) -> None:
        for each in results:
            self._advance.add(each)
            self._last = _place(each)

    def _count_again(self) -> None:
        every = [e for e in self._state.evaluations if e.kind != BASELINE]
        self._highest = max((e.rung_index for e in every if _is_trained(e)), default=0)
        self._baseline = self._original()
        self._last, self._advance = ("", -1), Advance(self._objectives, self._baseline)
        self._add(sorted(filter(self._counts, every), key=_place))


def _place(evaluation: Evaluation) -> _Place:
    return evaluation.finished, evaluation.ask


def _is_trained(evaluation: Evaluation) -> bool:
    return evaluation.status == OK and evaluation.value is not None
