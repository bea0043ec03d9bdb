"""Messages over pipes that may end or hold anything."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from syno.runs import framing
from syno.runs.framing import Frames, GarbledError, packed

MESSAGES = [(b"a", b""), (b"b", b"x" * 300_000), (b"a", b"end")]


@pytest.mark.parametrize("connected", [os.pipe, socket.socketpair])
def test_messages_arrive_whole_and_then_the_end(connected):
    ours, theirs = connected()

    def close(end: int | socket.socket) -> None:
        os.close(end) if isinstance(end, int) else end.close()

    def send() -> None:
        for message in MESSAGES:
            framing.write(theirs, *message)
        close(theirs)

    thread = threading.Thread(target=send)
    thread.start()
    assert [framing.read(ours) for _ in MESSAGES] == MESSAGES
    with pytest.raises(EOFError):
        framing.read(ours)
    thread.join()
    close(ours)


def test_a_wait_ends_when_the_caller_says_so(monkeypatch):
    monkeypatch.setattr(framing, "_WAKE_MS", 1.0)
    ours, theirs = socket.socketpair()
    parts = []

    def enough() -> None:
        raise TimeoutError

    with ours, theirs:
        theirs.send(packed(b"a", b"1234")[:-1])
        with pytest.raises(TimeoutError):
            framing.read(ours, heard=lambda: parts.append(1), waited=enough)
        assert parts
        with pytest.raises(TimeoutError):
            framing.send(ours, b"a", b"x" * (1 << 24), heard=lambda: None, waited=enough)


def test_a_message_that_is_too_long_is_not_read():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        framing.write(theirs, b"a", b"12345")
        with pytest.raises(GarbledError, match=r"b'a' of 5 bytes"):
            framing.read(ours, most=4)


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_frames_come_out_of_any_pieces(size):
    stream = b"".join(packed(*message) for message in MESSAGES)
    frames = Frames((b"a", b"b"), 1 << 20)
    found = [m for at in range(0, len(stream), size) for m in frames.add(stream[at : at + size])]
    assert found == MESSAGES


@pytest.mark.parametrize("wrong", [packed(b"z", b"1"), packed(b"a", b"x" * 99), b"\xff" * 20])
def test_frames_before_what_is_none_are_kept(wrong):
    frames = Frames((b"a",), 10)
    found = []
    with pytest.raises(GarbledError):
        for message in frames.add(packed(b"a", b"1") + wrong):
            found.append(message)
    assert found == [(b"a", b"1")]
