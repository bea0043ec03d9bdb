"""The operators that a user enqueued and that a study has not proposed yet."""

from __future__ import annotations

from collections import deque

from syno.store import StudyState

# The kind of the event of an operator that the user proposes.
ENQUEUED = "enqueued"


class WaitingList:
    """What the log of a study says of enqueued operators; the caller keeps the state up."""

    def __init__(self, state: StudyState) -> None:
        self._state = state
        self._left: deque[tuple[str, str]] = deque()  # key and text
        self._events = 0  # those that were looked at

    def first(self) -> str | None:
        """Return the text of the first operator whose key was not proposed; None if there is none.

        A key that was proposed stays so, and its operator leaves the list.
        """
        for event in self._state.events[self._events :]:
            if event.kind == ENQUEUED:
                self._left.append((event.data["key"], event.data["text"]))
        self._events = self._state.seen
        while self._left and self._state.has_key(self._left[0][0]):
            self._left.popleft()
        return self._left[0][1] if self._left else None
