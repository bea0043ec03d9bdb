"""Search methods that learn from results. Their core is in C++ (`src/syno/search/`)."""

from __future__ import annotations

from abc import abstractmethod

from syno import _core
from syno._util import checks
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.store.records import OK
from syno.study.members import Members
from syno.study.methods.history import History, HistoryEntry, Moment

# A call of the core: the number of a proposal and its key, or the key of an answer and its value,
# None for a failure.
_Call = tuple[int, str] | tuple[str, float | None]


class LearningMethod:
    """A method whose core keeps what it has learned, for speed.

    The core is a function of the calls that it received. The calls follow from the history: a
    proposal at its place, and an answer where it arrived among the proposals. So a history that
    continues the one before adds calls, and any other history makes a new core. Either way the next
    proposal depends on the history alone.

    Args:
        members: the operators of the space.
        seed: of the random numbers.
    """

    foresees = False

    # Whether the core depends on the order of answers among the proposals. Otherwise, a value that
    # changes later, as ranks at the rungs of a ladder do, is replaced without a new core.
    is_ordered = False

    def __init__(self, members: Members, seed: int) -> None:
        checks.whole("'seed'", seed, least=0)
        self._members = members
        self._seed = seed
        self._core: _core.SearchMethod | None = None
        self._calls: list[_Call] = []
        self._answers: dict[str, float | None] = {}  # of the calls, the last one of each key
        self._moment: Moment | None = None  # of the history that the calls lead to

    @abstractmethod
    def make_core(self) -> _core.SearchMethod:
        """Make the core before its first call."""

    def before_proposal(self, core: _core.SearchMethod, history: History) -> None:
        """Set what a proposal depends on beside the calls; nothing unless a subclass does."""

    def propose(self, history: History) -> Operator | None:
        """Select an operator whose key was not proposed yet."""
        core = self._fed(history)
        self.before_proposal(core, history)
        found = core.propose(history.ask)
        return None if found is None else self._members[found].operator

    def _fed(self, history: History) -> _core.SearchMethod:
        """Return the core after the calls that lead to a history."""
        now, before = history.moment, self._moment
        self._moment = None  # until all calls are made
        continues = now is not None and now.follows(before) and not self.is_ordered
        if self._core is not None and before is not None and now is not None and continues:
            self._feed(self._core, self._later_calls(history, before, now))
            self._moment = now
            return self._core
        wanted, done = calls(history), len(self._calls)
        if not self.is_ordered:
            wanted = _proposals_first(wanted, self._calls)
        if self._core is None or wanted[:done] != self._calls:
            self._core, self._calls, done = self.make_core(), [], 0
            self._answers = {}
        self._feed(self._core, wanted[done:])
        self._moment = now
        return self._core

    def _feed(self, core: _core.SearchMethod, wanted: list[_Call]) -> None:
        for call in wanted:
            self._call(core, call)
            self._calls.append(call)
            if isinstance(call[0], str):
                self._answers[call[0]] = call[1]

    def _later_calls(self, history: History, before: Moment, now: Moment) -> list[_Call]:
        """List what `_proposals_first` appends for a history that continues the one before."""
        places = range(before.entries, now.entries)
        found: list[_Call] = [(entry.ask, entry.key) for entry in history.entries[places.start :]]
        for place in (*sorted(now.changed(before)), *places):
            entry = history.entries[place]
            if entry.status is None:
                continue
            value = _value(entry)
            if entry.key not in self._answers or self._answers[entry.key] != value:
                found.append((entry.key, value))
        return found

    def _call(self, core: _core.SearchMethod, call: _Call) -> None:
        first, second = call
        key = second if isinstance(first, int) else first
        assert isinstance(key, str)
        place = self._members.place(key)
        if place is None:  # an operator of the user that is not in the space
            return
        if isinstance(first, int):
            core.insert(first, place)
        elif second is None:
            core.fail(place)
        else:
            assert isinstance(second, float)
            core.answer(place, second)


def calls(history: History) -> list[_Call]:
    """List the calls of a core that lead to the state of a history."""
    told: dict[int, list[HistoryEntry]] = {}
    for place, entry in enumerate(history.entries, start=1):
        if entry.status is not None:
            at = place if entry.told is None else min(max(entry.told, place), len(history.entries))
            told.setdefault(at, []).append(entry)
    found: list[_Call] = []
    for place, entry in enumerate(history.entries, start=1):
        found.append((entry.ask, entry.key))
        for each in told.get(place, ()):
            found.append((each.key, _value(each)))
    return found


def _value(entry: HistoryEntry) -> float | None:
    return float(entry.value) if entry.status == OK and entry.value is not None else None


def _proposals_first(wanted: list[_Call], done: list[_Call]) -> list[_Call]:
    """Append to the calls that were made those that are missing, in an order that keeps them.

    The result leads to the same state if the order of answers is of no importance.
    """
    values = {call[0]: call[1] for call in done if isinstance(call[0], str)}
    made = sum(isinstance(call[0], int) for call in done)
    proposals = [call for call in wanted if isinstance(call[0], int)]
    if proposals[:made] != [call for call in done if isinstance(call[0], int)]:
        return proposals + [call for call in wanted if isinstance(call[0], str)]
    missing = [
        call
        for call in wanted
        if isinstance(call[0], str) and (call[0] not in values or values[call[0]] != call[1])
    ]
    return [*done, *proposals[made:], *missing]


def positive(name: str, value: float, *, zero: bool = True) -> float:
    """Check a number that must not be negative, or must be above 0."""
    checks.number(f"'{name}'", value)
    if value < 0 or (value == 0 and not zero):
        raise UserError(f"{name} must be {'at least' if zero else 'above'} 0, got {value:g}")
    return value
