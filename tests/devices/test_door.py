"""The door of a device server: nobody who stands there makes another one wait."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from syno.devices import door as door_module
from syno.devices.door import BEGIN_S, MAGIC, MOST_KEY, Door

from .test_misbehaviour import Clock, ends

KEY = "client:box:0123"


def said(key: str = KEY) -> bytes:
    return struct.pack("<ii", MAGIC, len(key)) + key.encode()


@contextmanager
def door() -> Iterator[tuple[Door, socket.socket, Clock]]:
    clock = Clock()
    with (
        socket.create_server(("127.0.0.1", 0), backlog=128) as listening,
        Door(listening, clock) as found,
    ):
        yield found, listening, clock


def connected(stack: ExitStack, listening: socket.socket) -> socket.socket:
    return stack.enter_context(socket.create_connection(listening.getsockname()))


def admitted(door: Door, steps: int = 400) -> str | None:
    """The key of the next client; None if nobody says one in so many looks."""
    for _ in range(steps):
        found = door.next(0.01)
        if found is not None:
            found[0].close()
            return found[1]
    return None


def test_a_client_gets_in_beside_those_who_say_nothing_or_half_of_it() -> None:
    with ExitStack() as stack, door() as (found, listening, _):
        for part in (b"", said()[:1], said()[:8], said()[:-1]):
            connected(stack, listening).sendall(part)
        assert admitted(found, 20) is None
        connected(stack, listening).sendall(said())
        # The time stands still: nobody was waited for.
        assert admitted(found) == KEY


def test_who_drips_has_one_deadline() -> None:
    with ExitStack() as stack, door() as (found, listening, clock):
        slow = connected(stack, listening)
        with suppress(ConnectionError):
            for byte in said():
                slow.sendall(bytes([byte]))
                assert admitted(found, 2) is None
                clock.now += 1.0
        assert clock.now > BEGIN_S
        assert ends(slow)
        assert not found._visitors


def test_of_too_many_the_first_is_sent_away() -> None:
    with ExitStack() as stack, door() as (found, listening, _):
        silent = [connected(stack, listening) for _ in range(65)]
        while len(found._visitors) < 64:
            found.next(0.01)
        assert admitted(found, 5) is None
        assert ends(silent[0])
        connected(stack, listening).sendall(said())
        assert admitted(found) == KEY
        assert len(found._visitors) <= 64


@pytest.mark.parametrize(
    "content",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        struct.pack("<ii", MAGIC, 0),
        struct.pack("<ii", MAGIC, -1),
        struct.pack("<ii", MAGIC, 1025),
        struct.pack("<ii", MAGIC, 1 << 30),
        struct.pack("<ii", MAGIC, 4) + b"\xff\xff\xff\xff",
        struct.pack("<ii", MAGIC + 1, 4) + b"abcd",
    ],
)
def test_what_is_not_the_protocol_is_sent_away(content: bytes) -> None:
    with ExitStack() as stack, door() as (found, listening, _):
        strange = connected(stack, listening)
        strange.sendall(content)
        while not found._visitors:
            found.next(0.01)
        assert admitted(found, 5) is None
        assert ends(strange)


def test_a_key_of_one_kibibyte_is_the_longest() -> None:
    assert MOST_KEY == 1024
    assert door_module.MOST_VISITORS == 64
    with ExitStack() as stack, door() as (found, listening, _):
        connected(stack, listening).sendall(said("k" * 1024))
        assert admitted(found) == "k" * 1024


def test_who_leaves_is_forgotten() -> None:
    with ExitStack() as stack, door() as (found, listening, _):
        connected(stack, listening).close()
        connected(stack, listening).sendall(said())
        assert admitted(found) == KEY
        assert not found._visitors
