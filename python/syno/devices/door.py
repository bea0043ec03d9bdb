"""The door of a device server: it listens to all who connect at once, and waits for none of them.

A client of TVM begins with a number that names the protocol, the length of a key, and the key. It
has one deadline for all of it. If too many are at the door, the one that came first is sent away:
a client with the right key says it within milliseconds.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

MAGIC = 0xFF271
BEGIN_S = 5.0
MOST_KEY = 1024
MOST_VISITORS = 64
_HEAD = struct.Struct("<ii")


@dataclass(eq=False)
class _Visitor:
    """Who has connected. until: when it must have said its key; said: what it has."""

    sock: socket.socket
    until: float
    said: bytearray = field(default_factory=bytearray)

    def lacking(self) -> int:
        """Bytes of what it says that are not there. ValueError for what is no such beginning."""
        if len(self.said) < _HEAD.size:
            return _HEAD.size - len(self.said)
        magic, size = _HEAD.unpack_from(self.said)
        if magic != MAGIC or not 0 < size <= MOST_KEY:
            raise ValueError("not the protocol of TVM")
        return int(size) - (len(self.said) - _HEAD.size)


class Door:
    """Where clients connect; `listening` is a socket, which stays open.

    clock: gives seconds.
    """

    def __init__(
        self, listening: socket.socket, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._listening, self._clock = listening, clock
        self._visitors: list[_Visitor] = []
        self._selector = selectors.DefaultSelector()
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ)

    def next(self, seconds: float) -> tuple[socket.socket, str] | None:
        """A client that has said a key, with the key; None if none does so in these seconds.

        The client's socket is that of the caller. It may return None earlier.
        """
        ends = [visitor.until for visitor in self._visitors]
        wait = min(seconds, *(end - self._clock() for end in ends)) if ends else seconds
        for key, _ in self._selector.select(max(0.0, wait)):
            if key.data is None:
                self._admit()
            elif (said := self._heard(key.data)) is not None:
                return key.data.sock, said
        for visitor in [each for each in self._visitors if each.until <= self._clock()]:
            self._send_away(visitor)
        return None

    def close(self) -> None:
        """Send away all who have not said a key."""
        for visitor in list(self._visitors):
            self._send_away(visitor)
        self._selector.close()

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _admit(self) -> None:
        try:
            sock, _ = self._listening.accept()
        except OSError:  # it has left already
            return
        if len(self._visitors) >= MOST_VISITORS:
            self._send_away(self._visitors[0])
        sock.setblocking(False)
        visitor = _Visitor(sock, self._clock() + BEGIN_S)
        self._visitors.append(visitor)
        self._selector.register(sock, selectors.EVENT_READ, visitor)

    def _heard(self, visitor: _Visitor) -> str | None:
        """The key of a visitor, once it has said all of it."""
        if visitor not in self._visitors:  # sent away by another event of the same moment
            return None
        try:
            part = visitor.sock.recv(visitor.lacking())
            visitor.said += part
            if part and visitor.lacking():
                return None
            found = visitor.said[_HEAD.size :].decode() if part else ""
        except BlockingIOError:
            return None
        except (OSError, ValueError):
            found = ""
        if not found:
            self._send_away(visitor)
            return None
        self._forget(visitor)
        return found

    def _send_away(self, visitor: _Visitor) -> None:
        self._forget(visitor)
        with contextlib.suppress(OSError):
            visitor.sock.close()

    def _forget(self, visitor: _Visitor) -> None:
        self._visitors.remove(visitor)
        self._selector.unregister(visitor.sock)
