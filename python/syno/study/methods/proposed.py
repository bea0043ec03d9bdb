"""Which operators a study has proposed, kept from one history to the next.

`UniformSampling` and others sample from those that are left.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from syno.study.methods.history import History, Moment


class Proposed:
    """The operators of a list that histories have proposed.

    A history that continues the one before (`History.moment`) costs as much as its new entries, and
    any other history as much as all of its entries.

    Args:
        keys: of the operators, which are distinct.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._place = {key: place for place, key in enumerate(keys)}
        self._used: list[int] = []  # places, ascending
        self._moment: Moment | None = None
        self.keys: set[str] = set()  # all that were proposed, in the list or not

    def follow(self, history: History) -> None:
        """Take the entries of a history, instead of those of the history before."""
        now, before = history.moment, self._moment
        if now is not None and before is not None and now.follows(before):
            self._add(now.keys(before))
        else:
            self.keys, self._used = set(), []
            self._add([entry.key for entry in history.entries])
        self._moment = now

    def _add(self, keys: Sequence[str]) -> None:
        new = [key for key in dict.fromkeys(keys) if key not in self.keys]
        self.keys.update(new)
        places = [self._place[key] for key in new if key in self._place]
        if len(places) > 1:
            self._used = sorted(self._used + places)
        elif places:
            insort(self._used, places[0])

    @property
    def left(self) -> int:
        """The number of operators of the list that were not proposed."""
        return len(self._place) - len(self._used)

    def unused(self, number: int) -> int:
        """Return the place of an operator that was not proposed.

        Args:
            number: which of them in the order of the list, from 0 to `left` - 1.
        """
        # Before the used place with index i, there are used[i] - i unused ones.
        low, high = 0, len(self._used)
        while low < high:
            middle = (low + high) // 2
            if self._used[middle] - middle <= number:
                low = middle + 1
            else:
                high = middle
        return number + low
