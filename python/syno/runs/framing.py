"""Messages over a pipe or a socket: one byte what a message is, 8 bytes its length, its content.

Both ends are processes of this machine. What the other end sends may be anything: it may have died,
or its memory may be corrupted.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Collection, Iterator

Message = tuple[bytes, bytes]
Waited = Callable[[], object]
_HEADER = struct.Struct("=cQ")
_CHUNK = 1 << 20
# How long a wait may keep a signal from being seen: a wait does not end by a signal that came right
# before it, or to another thread. Only between waits does Python see Ctrl-C.
_WAKE_MS = 500.0


class GarbledError(Exception):
    """What was received is no message, or too long; the text says what."""


def _nothing() -> None:
    pass


def packed(kind: bytes, content: bytes = b"") -> bytes:
    """One message as it goes over a pipe."""
    return _HEADER.pack(kind, len(content)) + content


def write(end: int | socket.socket, kind: bytes, content: bytes) -> None:
    """Write one message, as long as it takes."""
    data = memoryview(packed(kind, content))
    descriptor = end if isinstance(end, int) else end.fileno()
    while data:
        data = data[os.write(descriptor, data) :]


def send(end: socket.socket, kind: bytes, content: bytes, *, heard: Waited, waited: Waited) -> None:
    """Write one message to a process that may not read.

    Args:
        end: the socket.
        kind, content: the message.
        heard: is called after each part that was taken.
        waited: is called now and then while nothing is taken; it raises what ends the wait.
    """
    poll = select.poll()
    poll.register(end, select.POLLOUT)
    data = memoryview(packed(kind, content))
    while data:
        if poll.poll(_WAKE_MS):
            with contextlib.suppress(BlockingIOError):
                data = data[end.send(data, socket.MSG_DONTWAIT) :]
                heard()
                continue
        waited()


def read(
    end: int | socket.socket,
    *,
    most: int = sys.maxsize,
    heard: Waited = _nothing,
    waited: Waited = _nothing,
) -> Message:
    """Read the next message.

    Args:
        end: a descriptor, or a socket.
        most: bytes that the content may have.
        heard: is called after each part.
        waited: is called now and then while nothing comes; it may raise what ends the wait.

    Raises:
        EOFError: the other side has gone.
        GarbledError: the content is too long.
    """
    kind, length = _HEADER.unpack(_exactly(end, _HEADER.size, heard, waited))
    if length > most:
        raise GarbledError(f"{kind!r} of {length:,} bytes")
    return kind, _exactly(end, length, heard, waited)


def _exactly(end: int | socket.socket, count: int, heard: Waited, waited: Waited) -> bytes:
    descriptor = end if isinstance(end, int) else end.fileno()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    parts = bytearray()
    while len(parts) < count:
        if not poll.poll(_WAKE_MS):
            waited()
            continue
        part = os.read(descriptor, min(count - len(parts), _CHUNK))
        if not part:
            raise EOFError
        parts += part
        heard()
    return bytes(parts)


class Frames:
    """Messages out of a stream of bytes that arrives in pieces.

    Args:
        kinds: what messages may be.
        most: bytes that the content of one may have.
    """

    def __init__(self, kinds: Collection[bytes], most: int) -> None:
        self._kinds, self._most = kinds, most
        self._buffer = bytearray()

    def add(self, data: bytes) -> Iterator[Message]:
        """Return the messages that are complete now.

        Raises:
            GarbledError: for what is no message, after the messages before it.
        """
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._buffer)
            if kind not in self._kinds or length > self._most:
                raise GarbledError(f"{kind!r} of {length:,} bytes")
            end = _HEADER.size + length
            if len(self._buffer) < end:
                break
            content = bytes(self._buffer[_HEADER.size : end])
            del self._buffer[:end]
            yield kind, content
