"""The tracker and its protocol: secrets, lending, and peers that misbehave."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from syno import UserError
from syno._util.json_types import Json
from syno.devices import Address, Tracker, devices_at, parse_address, read_secret, wire
from syno.devices.client import DETAILS, borrow, check_device, own_versions
from syno.devices.tables import devices_table

SECRET = b"0123456789abcdef"


@contextmanager
def tracker(secret: bytes | None = None) -> Iterator[Address]:
    with Tracker("127.0.0.1", 0, secret) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield running.address
        finally:
            running.shutdown()
            thread.join()


@contextmanager
def device(
    address: Address, key: str = "box", secret: bytes | None = None, **details: Json
) -> Iterator[tuple[wire.Connection, int]]:
    """What a server says to the tracker; nobody answers at its port but a listening socket."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with wire.Connection(address, secret, 60) as connection:
            info: Json = {"key": f"server:{key}", "addr": [None, port], DETAILS: details}
            assert connection.ask(wire.UPDATE, info) == wire.SUCCESS
            yield connection, port


def offer(connection: wire.Connection, port: int, match_key: str, key: str = "box") -> None:
    assert connection.ask(wire.PUT, key, [port, match_key], None) == wire.SUCCESS


def refusal(address: Address, secret: bytes | None = None, timeout: float = 60) -> str:
    with pytest.raises(UserError) as caught:
        devices_at(address, secret, timeout=timeout)
    return str(caught.value)


def test_devices_are_listed_with_what_they_say_of_themselves() -> None:
    with tracker() as address, device(address, "b", name="CPU\x1b[2J", cores=4, tvm="0.27"):
        with device(address, "a", busy=True):
            first, second = devices_at(address)
        assert (first.key, first.free, first.tvm) == ("a", False, "")
        assert (second.key, second.free, second.cores) == ("b", True, 4)
        assert "\x1b" not in second.name
        assert [each.key for each in devices_at(address)] == ["b"]
        assert "another version of TVM" in devices_table([second]).rows[0][-1]


def test_a_session_is_lent_once_in_the_order_of_requests() -> None:
    with tracker() as address, device(address) as (connection, port):
        with pytest.raises(UserError, match=r"no device 'box' became free in 0\.2 s"):
            borrow(address, "box", wait=0.2)
        offer(connection, port, "box:1")
        offer(connection, port, "box:2")
        assert sorted(connection.ask(wire.PENDING)) == ["box:1", "box:2"]  # type: ignore[arg-type, type-var]
        assert borrow(address, "box", wait=5).match_key == "box:1"
        assert connection.ask(wire.PENDING) == ["box:2"]
        assert borrow(address, "box", wait=5).match_key == "box:2"


def test_one_who_waits_gets_what_is_offered_later() -> None:
    found: list[str] = []
    with tracker() as address, device(address) as (connection, port):
        waiting = threading.Thread(
            target=lambda: found.append(borrow(address, "box", wait=20).match_key)
        )
        waiting.start()
        offer(connection, port, "box:7")
        waiting.join(20)
    assert found == ["box:7"]


def test_what_a_server_offered_is_forgotten_when_it_leaves() -> None:
    with tracker() as address:
        with device(address) as (connection, port):
            offer(connection, port, "box:1")
        with pytest.raises(UserError, match="became free"):
            borrow(address, "box", wait=0.3)


def test_a_device_that_cannot_be_reached_is_named() -> None:
    with tracker() as address, device(address) as (connection, _):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        offer(connection, port, "box:1")
        with pytest.raises(UserError, match=r"cannot be reached.*\n.*--host"):
            borrow(address, "box", wait=5)


def test_only_who_knows_the_secret_learns_anything() -> None:
    with tracker(SECRET) as address, device(address, secret=SECRET):
        assert [each.key for each in devices_at(address, SECRET)] == ["box"]
        assert "has another secret" in refusal(address, b"another secret 12")
        assert "asks for a secret" in refusal(address)
        for code in (wire.SUMMARY, wire.PENDING, wire.PUT, wire.REQUEST, wire.PROOF):
            with socket.create_connection((address.host, address.port), 5) as sock:
                sock.sendall(struct.pack("<i", wire.MAGIC))
                assert wire.receive_int(sock) == wire.MAGIC
                wire.send(sock, [code, "box", "", 1])
                assert wire.receive(sock) == wire.FAIL
                assert sock.recv(1) == b""
    with tracker() as address:
        assert "knows no secret" in refusal(address, SECRET)


def test_a_proof_cannot_be_used_again() -> None:
    with tracker(SECRET) as address:
        seen: list[Json] = []
        for _ in range(2):
            with socket.create_connection((address.host, address.port), 5) as sock:
                sock.sendall(struct.pack("<i", wire.MAGIC))
                wire.receive_int(sock)
                wire.send(sock, [wire.HELLO, "1"])
                _, theirs, _ = wire.receive(sock)  # type: ignore[misc]
                mine = seen[0] if seen else wire.proof(SECRET, "peer", "1", str(theirs))
                seen.append(mine)
                wire.send(sock, [wire.PROOF, mine])
                expected = wire.SUCCESS if len(seen) == 1 else wire.FAIL
                assert wire.receive(sock) == expected


@pytest.mark.parametrize(
    "content",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        struct.pack("<i", wire.MAGIC) + struct.pack("<i", 1 << 30),
        struct.pack("<i", wire.MAGIC) + struct.pack("<i", -1),
        struct.pack("<i", wire.MAGIC) + struct.pack("<i", 4) + b"\xff\xff\xff\xff",
        struct.pack("<i", wire.MAGIC) + struct.pack("<i", 4) + b"null",
        struct.pack("<i", wire.MAGIC) + struct.pack("<i", 3) + b"[3]",
        struct.pack("<i", wire.MAGIC) + struct.pack("<i", 2) + b"[]",
    ],
)
def test_nonsense_ends_that_connection_alone(content: bytes) -> None:
    with tracker() as address, device(address):
        with socket.create_connection((address.host, address.port), 5) as sock:
            sock.sendall(content)
            # A tracker that closes before it has read everything resets the connection.
            with suppress(ConnectionError):
                while sock.recv(1024):
                    pass
        assert len(devices_at(address)) == 1


def test_what_is_no_tracker_is_said_in_time() -> None:
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        host, port = silent.getsockname()[:2]
        assert "is no tracker" in refusal(Address(host, port), timeout=0.2)
    assert "syno device tracker" in refusal(Address("127.0.0.1", port))


def test_a_device_with_another_version_of_tvm_is_refused() -> None:
    here = str(own_versions()["tvm"])
    with tracker() as address:
        with pytest.raises(UserError, match=r"no device 'box'.*\n.*got: no device"):
            check_device(address, "box")
        with device(address, "box", tvm="0.1.0"), device(address, "same", tvm=here):
            assert len(check_device(address, "same")) == 1
            with pytest.raises(UserError, match=r"another version of TVM\n.*got: 0\.1\.0"):
                check_device(address, "box")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3"])
def test_nobody_listens_for_strangers_without_a_secret(host: str) -> None:
    with pytest.raises(UserError, match=r"anybody who reaches.*\n.*--secret FILE"):
        Tracker(host, 0)


@pytest.mark.parametrize("text", ["", "host:0", "host:65536", "a b", "host:port", ":1", "a:1:2"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is no address"):
        parse_address(text)


def test_addresses() -> None:
    assert parse_address("box") == Address("box", 9190)
    assert parse_address("10.0.0.1:1") == Address("10.0.0.1", 1)
    assert str(parse_address("[::1]:9000")) == "[::1]:9000"


def test_a_secret_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    with pytest.raises(UserError, match="cannot read the secret"):
        read_secret(path)
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o644)
    with pytest.raises(UserError, match="chmod 600"):
        read_secret(path)
    path.chmod(0o600)
    assert read_secret(path) == SECRET
    path.write_bytes(b"short")
    with pytest.raises(UserError, match="unexpected length"):
        read_secret(path)
