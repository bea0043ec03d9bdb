"""Peers of a tracker that drip, flood, lie or are somebody else: only their connection ends."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from marks import slow_but
from syno import UserError
from syno._util.json_types import Json
from syno.devices import Address, Tracker, devices_at, peers, wire
from syno.devices import tracker as tracker_module
from syno.devices.client import borrow

from .test_tracker import SECRET, device, offer, refusal, tracker

MAGIC = struct.pack("<i", wire.MAGIC)
# Longer than any deadline of these tests by far: a peer that is still there then is not ended.
FOR_EVER_S = 60.0


@pytest.fixture
def own_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody is this user, without a look into the list of the kernel for each connection."""
    monkeypatch.setattr(peers, "user_of", lambda _: os.geteuid())


@contextmanager
def connected(address: Address) -> Iterator[socket.socket]:
    with socket.create_connection((address.host, address.port), FOR_EVER_S) as sock:
        yield sock


def framed(content: bytes) -> bytes:
    return struct.pack("<i", len(content)) + content


def ends(sock: socket.socket) -> bool:
    """Whether the tracker ends the connection."""
    sock.settimeout(FOR_EVER_S)
    with suppress(ConnectionError):
        while sock.recv(1 << 16):
            pass
    return True


def said_last(sock: socket.socket, content: bytes) -> None:
    """Send what the tracker answers, or not, and wait for the end."""
    with suppress(OSError):  # it may have ended the connection already
        sock.sendall(content)
        sock.shutdown(socket.SHUT_WR)
    assert ends(sock)


class Clock:
    """Time that passes as a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Dripping:
    """A socket that gives one byte in each second of a clock."""

    def __init__(self, clock: Clock, content: bytes) -> None:
        self._clock, self._bytes = clock, iter(content)
        self._timeout = float("inf")

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = float("inf") if seconds is None else seconds

    def recv(self, _: int) -> bytes:
        if self._timeout < 1:
            self._clock.now += self._timeout
            raise TimeoutError
        self._clock.now += 1
        return bytes([next(self._bytes)])


def test_a_message_has_one_deadline_however_it_drips() -> None:
    clock = Clock()
    message = framed(b'["a long message"]')
    sock = Dripping(clock, message)
    with pytest.raises(TimeoutError):
        wire.receive(sock, wire.Deadline(5.5, clock))  # type: ignore[arg-type]
    assert clock.now == 5.5
    whole = Dripping(Clock(), message)
    assert wire.receive(whole, wire.Deadline(100, clock)) == ["a long message"]  # type: ignore[arg-type]


@pytest.mark.parametrize("secret", [None, SECRET])
def test_a_stranger_that_drips_is_ended_at_the_deadline(
    secret: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hello = MAGIC + framed(json.dumps([wire.HELLO, "1" * 900]).encode())
    content = hello if secret else MAGIC[:1] * 1000
    with tracker(secret) as address:
        with monkeypatch.context() as patch:
            patch.setattr(tracker_module, "BEGIN_S", 0.3)
            with connected(address) as sock, pytest.raises(OSError):
                for byte in content[: len(content) - 2]:
                    sock.sendall(bytes([byte]))
                    time.sleep(0.05)
        assert devices_at(address, secret) == []


def test_a_message_that_has_begun_has_a_deadline_and_a_peer_between_messages_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tracker() as address, device(address) as (connection, _), device(address, "other"):
        with monkeypatch.context() as patch:
            patch.setattr(tracker_module, "MESSAGE_S", 0.2)
            connection.sock.sendall(framed(b"x" * 100)[:50])
            assert ends(connection.sock)
        assert [each.key for each in devices_at(address)] == ["other"]


@pytest.mark.parametrize("length", [1025, 1 << 20])
def test_a_stranger_says_at_most_one_kibibyte(length: int) -> None:
    with tracker(SECRET) as address, connected(address) as sock:
        sock.sendall(MAGIC + struct.pack("<i", length))  # and no content: it is not waited for
        assert ends(sock)
    with tracker(SECRET) as address, connected(address) as sock:
        content = json.dumps([wire.HELLO, "1" * 1000]).encode()
        sock.sendall(MAGIC + framed(content.ljust(1024)))
        assert wire.receive_int(sock) == wire.MAGIC
        assert wire.receive(sock)[0] == wire.SUCCESS  # type: ignore[index]


def test_a_message_has_at_most_one_mebibyte() -> None:
    with tracker() as address:
        with device(address) as (connection, _):
            ping = json.dumps([wire.PING]).encode()
            connection.sock.sendall(framed(ping.ljust(1 << 20)))
            assert wire.receive(connection.sock) == wire.SUCCESS
        with device(address) as (connection, _):
            connection.sock.sendall(struct.pack("<i", (1 << 20) + 1))
            assert ends(connection.sock)


def test_of_too_many_strangers_the_oldest_is_ended() -> None:
    with tracker(SECRET) as address, ExitStack() as stack:
        silent = [stack.enter_context(connected(address)) for _ in range(65)]
        assert ends(silent[0])
        # One who knows the secret gets in though all places are taken.
        assert devices_at(address, SECRET) == []
        silent[-1].settimeout(0.05)
        with pytest.raises(TimeoutError):
            silent[-1].recv(1)


def test_there_are_at_most_512_peers(own_user: None) -> None:
    def ask(sock: socket.socket) -> Json:
        sock.sendall(MAGIC + framed(json.dumps([wire.PING]).encode()))
        wire.receive_int(sock)
        return wire.receive(sock)

    with tracker() as address, ExitStack() as stack:
        for _ in range(512):
            assert ask(stack.enter_context(connected(address))) == wire.SUCCESS
        with connected(address) as sock, pytest.raises(OSError):
            ask(sock)


def test_a_peer_has_at_most_64_offers_of_which_each_is_short() -> None:
    with tracker() as address, device(address) as (connection, port):
        for number in range(64):
            offer(connection, port, f"box:{number}")
        assert connection.ask(wire.PUT, "box", [port, "box:64"], None) == wire.FAIL
    with tracker() as address, device(address) as (connection, port):
        long = "k" * 257
        for key, host, match_key, number in (
            (long, None, "m", port),
            ("box", long, "m", port),
            ("box", None, long, port),
            ("box", None, "m", 70_000),
            ("k\n\ud800", None, "m", port),
        ):
            assert connection.ask(wire.PUT, key, [number, match_key], host) == wire.FAIL
        assert connection.ask(wire.UPDATE, {"more": "x" * 1024}) == wire.FAIL
        assert connection.ask(wire.PENDING) == []


def test_keys_that_nobody_offers_any_more_are_forgotten(own_user: None) -> None:
    with tracker() as address:
        for number in range(600):
            with device(address, f"k{number}") as (connection, port):
                offer(connection, port, "m", f"k{number}")
        with wire.Connection(address, None, 5) as connection:
            _, found = connection.ask(wire.SUMMARY)  # type: ignore[misc]
        assert len(found["queue_info"]) <= 1  # type: ignore[index, arg-type, call-overload]


# Each in every place of every request: what JSON can say and no honest peer does.
HOSTILE = (
    b"1e400",
    b"-1e400",
    b"NaN",
    b"1e308",
    b"-1",
    b"1.5",
    b"true",
    b"null",
    b'""',
    b'"\\ud800"',
    b"[]",
    b"{}",
    b'{"key": 1e400}',
    b'{"addr": [null, null, null]}',
    b"1" * 30,
    b"9" * 5000,
    b"[" * 3000 + b"]" * 3000,
    b'"' + b"x" * 5000 + b'"',
)
REQUESTS = {
    wire.PUT: (b'"box"', b'[1, "box:1"]', b"null"),
    wire.REQUEST: (b'"box"', b'""', b"1"),
    wire.UPDATE: (b'{"key": "server:box"}',),
    wire.PING: (),
    wire.SUMMARY: (),
    wire.PENDING: (),
}


def hostile_messages() -> Iterator[bytes]:
    yield from HOSTILE
    for code, arguments in REQUESTS.items():
        for count in range(len(arguments)):
            yield b"[" + b", ".join([b"%d" % code, *arguments[:count]]) + b"]"
        for place, value in itertools.product(range(len(arguments) + 1), HOSTILE):
            given = [b"%d" % code, *arguments]
            given[place] = value
            yield b"[" + b", ".join(given) + b"]"


@pytest.mark.parametrize("secret", slow_but([None, SECRET], SECRET))
def test_no_message_disables_the_tracker(
    secret: bytes | None,
    own_user: None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tracker_module, "_LOOK_S", 0.01)
    messages = list(hostile_messages())
    assert len(messages) > 150
    # Often enough to take all places, if they were not given back.
    beyond = b'[%d, "box", "", 1e400]' % wire.REQUEST
    enough = [*messages, *itertools.repeat(beyond, 520)]
    with tracker(secret) as address, device(address, secret=secret) as (_, port):
        for message in enough:
            with connected(address) as sock:
                said_last(sock, MAGIC + framed(message))
        with device(address, secret=secret) as (connection, port):
            offer(connection, port, "box:after")
            for known in messages:
                with suppress(UserError), wire.Connection(address, secret, 5) as other:
                    said_last(other.sock, framed(known))
            assert len(devices_at(address, secret)) == 2
    assert "Traceback" not in capfd.readouterr().err


def test_an_error_of_the_tracker_itself_ends_that_connection_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = threading.Event()
    pending = tracker_module._Desk.pending

    def maybe(desk: tracker_module._Desk, peer: tracker_module._Peer) -> list[Json]:
        if broken.is_set():
            raise ArithmeticError("a bug")
        return pending(desk, peer)

    monkeypatch.setattr(tracker_module._Desk, "pending", maybe)
    with Tracker("127.0.0.1", 0) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        with device(running.address, "kept"), device(running.address) as (connection, _):
            broken.set()
            with pytest.raises(UserError, match="left"):
                connection.ask(wire.PENDING)
            assert [each.key for each in devices_at(running.address)] == ["kept"]
        running.shutdown()
    assert "a bug" in capfd.readouterr().err


@pytest.mark.parametrize(
    "lent",
    [
        [0, ["127.0.0.1", 1e9, "m"]],
        [0, ["127.0.0.1", 70_000, "m"]],
        [0, ["127.0.0.1", 0, "m"]],
        [0, ["a" * 64 + ".x", 1, "m"]],
        [0, ["a\0b", 1, "m"]],
        [0, []],
        [0],
        [],
        {},
        0,
        "x" * 5000,
    ],
)
def test_what_a_tracker_lends_is_checked(lent: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire.Connection, "ask", lambda *_, **__: lent)
    monkeypatch.setattr(wire.Connection, "_begin", lambda *_: None)
    with tracker() as address:
        with pytest.raises(UserError, match=r"lends no device|cannot be reached"):
            borrow(address, "box", wait=1)
        with pytest.raises(UserError, match="gave no list of devices"):
            devices_at(address)


def test_without_a_secret_another_user_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with tracker() as address, device(address):
        assert len(devices_at(address)) == 1
        monkeypatch.setattr(peers, "user_of", lambda _: None)  # left, or of another machine
        assert "belongs to another user" in refusal(address)
        monkeypatch.setattr(peers, "user_of", lambda _: os.geteuid() + 1)
        assert "belongs to another user of this machine" in refusal(address)
    with tracker(SECRET) as address:
        assert devices_at(address, SECRET) == []
    with Tracker("127.0.0.1", 0, trusted_network=True) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setattr(peers, "user_of", lambda _: None)
        assert devices_at(running.address) == []
        running.shutdown()


_AS_ANOTHER = """
import os, socket, struct, sys
os.setuid(65534)
sock = socket.socket()
sock.settimeout(60)
sock.connect(("127.0.0.1", int(sys.argv[1])))
sock.sendall(bytes.fromhex(sys.argv[2]))
found = b""
while part := sock.recv(1024):
    found += part
print(found.hex())
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user"
)
def test_the_kernel_says_which_user_connects() -> None:
    asked = MAGIC + framed(json.dumps([wire.SUMMARY]).encode())
    with tracker() as address, device(address, "hidden"):
        command = [sys.executable, "-c", _AS_ANOTHER, str(address.port), asked.hex()]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert bytes.fromhex(found) == MAGIC + framed(b"%d" % wire.FAIL)


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", "INET"), ("::1", "INET6")])
def test_the_user_of_a_connection(host: str, family: str) -> None:
    if not peers.are_known():
        pytest.skip("this system has no /proc/net/tcp")
    with ExitStack() as stack:
        kind = getattr(socket, f"AF_{family}")
        try:
            listening = stack.enter_context(socket.create_server((host, 0), family=kind))
        except OSError:
            pytest.skip("this machine has no IPv6")
        there = socket.create_connection(listening.getsockname()[:2])
        here = stack.enter_context(contextlib.closing(listening.accept()[0]))
        assert peers.user_of(here) == peers.user_of(there) == os.geteuid()
        assert peers.is_own(here)
        assert not peers.is_stranger(there)
        there.close()  # the kernel lists what is left of it as one of root
        assert peers.user_of(here) is None


def test_a_system_that_does_not_know_its_users_needs_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "are_known", lambda: False)
    with pytest.raises(UserError, match=r"any user of this machine.*\n.*--secret FILE"):
        Tracker("127.0.0.1", 0)
    Tracker("127.0.0.1", 0, SECRET).server_close()
    Tracker("127.0.0.1", 0, trusted_network=True).server_close()
