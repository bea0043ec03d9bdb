"""Messages of a tracker, in the protocol of TVM's own, with a proof that both know a secret.

A message is its length (4 bytes, little endian) and JSON. The peer that connects begins with a
number that names the protocol, and the tracker repeats it. Each request has a reply. What is
received has one deadline as a whole, so that a peer that sends a byte now and then does not get
more time by it.

Where a tracker has a secret, the first two requests prove it: each side sends a random number, and
the digest of both numbers with the secret. TVM's own tracker and servers know no secret, and talk
to a tracker without one.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import struct
import time
from collections.abc import Callable

from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.devices import peers
from syno.devices.address import UNREACHABLE, Address, is_loopback, reason_of

MAGIC = 0x2F271
SUCCESS, FAIL = 0, -1
PING, STOP, PUT, REQUEST, UPDATE, SUMMARY, PENDING = range(1, 8)
# Not in TVM's protocol.
HELLO, PROOF = 64, 65
MOST_BYTES = 1 << 20
_INT = struct.Struct("<i")


class DisconnectedError(OSError):
    """The peer closed the connection, or sent what is no message."""


class Deadline:
    """The moment until which a peer must have sent or taken something; without seconds, any time.

    clock: gives seconds.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    def left(self) -> float | None:
        """The seconds that are left. TimeoutError if there are none."""
        if self._end is None:
            return None
        found = self._end - self._clock()
        if found <= 0:
            raise TimeoutError("the peer takes too long")
        return found


_ANY_TIME = Deadline(None)


def send(sock: socket.socket, value: Json, deadline: Deadline = _ANY_TIME) -> None:
    """Send one message."""
    content = json.dumps(value).encode()
    sock.settimeout(deadline.left())  # for all of it, as Python's `sendall` counts
    sock.sendall(_INT.pack(len(content)) + content)


def receive(sock: socket.socket, deadline: Deadline = _ANY_TIME, most: int = MOST_BYTES) -> Json:
    """Receive one message of at most so many bytes. DisconnectedError where there is none."""
    size = receive_int(sock, deadline)
    if not 0 < size <= most:
        raise DisconnectedError(f"a message of {size} bytes")
    try:
        return parsed_json(exactly(sock, size, deadline).decode(), finite=True)  # type: ignore[no-any-return]
    except ValueError as error:
        raise DisconnectedError("a message that is not JSON") from error


def receive_int(sock: socket.socket, deadline: Deadline = _ANY_TIME) -> int:
    """Receive four bytes as a number."""
    return int(_INT.unpack(exactly(sock, _INT.size, deadline))[0])


def exactly(sock: socket.socket, size: int, deadline: Deadline = _ANY_TIME) -> bytes:
    """Receive so many bytes."""
    found = bytearray()
    while len(found) < size:
        sock.settimeout(deadline.left())
        part = sock.recv(min(size - len(found), 1 << 16))
        if not part:
            raise DisconnectedError("the connection was closed")
        found += part
    return bytes(found)


def nonce() -> str:
    """A random number that is used once."""
    return secrets.token_hex(16)


def proof(secret: bytes, who: str, asked: str, answered: str) -> str:
    """What only a peer with the secret can say after these two random numbers."""
    return hmac.digest(secret, f"syno device {who} {asked} {answered}".encode(), "sha256").hex()


def same(first: str, second: object) -> bool:
    """Whether two proofs are equal, in a time that says nothing of them."""
    return isinstance(second, str) and hmac.compare_digest(first.encode(), second.encode())


class Connection:
    """A connection to a tracker.

    Raises:
        UserError: there is no tracker, it does not answer in time, or it has another secret.
    """

    def __init__(self, address: Address, secret: bytes | None, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        try:
            self.sock = socket.create_connection((address.host, address.port), timeout)
        except UNREACHABLE as error:
            raise UserError(
                f"no tracker answers at {address}: {reason_of(error)}\n"
                "  what to do: start one with `syno device tracker`, or give its address with "
                "--tracker HOST:PORT"
            ) from error
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._begin(secret)
        except BaseException:
            self.close()
            raise

    def ask(self, *request: Json, timeout: float | None = None) -> Json:
        """The reply to a request. UserError where none comes."""
        seconds = self._timeout if timeout is None else timeout
        deadline = Deadline(seconds)
        try:
            send(self.sock, list(request), deadline)
            return receive(self.sock, deadline)
        except TimeoutError as error:
            raise UserError(
                f"the tracker at {self._address} did not answer in {seconds:g} s\n"
                "  what to do: `syno device list` shows whether it and its devices are there"
            ) from error
        except OSError as error:
            raise UserError(f"the tracker at {self._address} left: {error}") from error

    def close(self) -> None:
        """End the connection."""
        self.sock.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, secret: bytes | None) -> None:
        deadline = Deadline(self._timeout)
        try:
            self.sock.sendall(_INT.pack(MAGIC))
            found = receive_int(self.sock, deadline)
        except OSError as error:
            raise self._stranger() from error
        if found != MAGIC:
            raise self._stranger()
        if secret is not None:
            self._prove(secret)
            return
        if is_loopback(self._address.host) and peers.is_stranger(self.sock):
            raise UserError(
                f"the tracker at {self._address} belongs to another user of this machine\n"
                "  what to do: start one of your own with another --port, or share a secret with "
                "that user: --secret FILE"
            )
        if self.ask(PING) != SUCCESS:
            raise UserError(
                f"the tracker at {self._address} asks for a secret, or belongs to another user\n"
                "  what to do: give --secret FILE with the secret that the tracker was started with"
            )

    def _prove(self, secret: bytes) -> None:
        mine = nonce()
        try:
            reply = self.ask(HELLO, mine)
        except UserError as error:
            raise self._open() from error
        if reply == FAIL:
            raise self._open()
        if not (isinstance(reply, list) and len(reply) == 3 and isinstance(reply[1], str)):
            raise self._stranger()
        theirs = reply[1]
        known = same(proof(secret, "tracker", mine, theirs), reply[2])
        if not known or self.ask(PROOF, proof(secret, "peer", mine, theirs)) != SUCCESS:
            raise UserError(
                f"the tracker at {self._address} has another secret\n"
                "  what to do: give --secret the same content on all machines"
            )

    def _open(self) -> UserError:
        return UserError(
            f"the tracker at {self._address} knows no secret\n"
            "  what to do: start it with `syno device tracker --secret FILE`; the tracker of TVM "
            "itself has none"
        )

    def _stranger(self) -> UserError:
        return UserError(
            f"what answers at {self._address} is no tracker\n"
            "  what to do: give the address of `syno device tracker` with --tracker HOST:PORT"
        )
