"""The tracker: servers of devices report to it, and it lends them, one session at a time.

It speaks the protocol of TVM's tracker, so that TVM's own servers and tuners can use it, too, while
it has no secret. With a secret, a peer that does not prove it learns nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import socketserver
import threading
from collections import defaultdict
from dataclasses import dataclass, field

from syno._util.errors import UserError
from syno._util.json_types import Json, JsonObject
from syno.devices import wire
from syno.devices.address import Address, check_exposed

# Seconds in which a new peer has to prove who it is.
_BEGIN_S = 10.0
# Seconds between two looks whether a peer that waits for a device is still there.
_LOOK_S = 0.5
_MOST_PEERS = 512
_MOST_OFFERS = 64


@dataclass(frozen=True)
class _Offer:
    """A session that a server offers; the match key opens it, once."""

    peer: _Peer
    host: str
    port: int
    match_key: str


@dataclass(eq=False)
class _Peer:
    """Who is connected. info: what a server says of itself; pending: its keys not lent yet."""

    host: str
    info: JsonObject = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)


class _Desk:
    """What is offered and who waits, by the key of the device; shared by all connections."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._offers: dict[str, list[_Offer]] = defaultdict(list)
        self._waiting: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._numbers = itertools.count()
        self.peers: set[_Peer] = set()

    def put(self, key: str, offer: _Offer) -> bool:
        """Offer a session; False for a peer that offers too many."""
        with self._changed:
            if len(offer.peer.pending) >= _MOST_OFFERS:
                return False
            offer.peer.pending.add(offer.match_key)
            self._offers[key].append(offer)
            self._changed.notify_all()
            return True

    def take(self, key: str, priority: int, sock: socket.socket) -> _Offer | None:
        """The first offer, when all who came before have one; None if the peer went away."""
        place = (-priority, next(self._numbers))
        with self._changed:
            waiting = self._waiting[key]
            waiting.append(place)
            try:
                while not (self._offers[key] and min(waiting) == place):
                    self._changed.wait(_LOOK_S)
                    if _is_gone(sock):
                        return None
                offer = self._offers[key].pop(0)
                offer.peer.pending.discard(offer.match_key)
                return offer
            finally:
                waiting.remove(place)
                self._changed.notify_all()

    def leave(self, peer: _Peer) -> None:
        """Forget a peer and its offers."""
        with self._changed:
            self.peers.discard(peer)
            for key, offers in self._offers.items():
                self._offers[key] = [offer for offer in offers if offer.peer is not peer]

    def pending(self, peer: _Peer) -> list[Json]:
        """The keys of a server that were not lent."""
        with self._changed:
            return list(peer.pending)

    def summary(self) -> JsonObject:
        """Servers, and how many sessions are free and wanted, by key."""
        with self._changed:
            keys = sorted({*self._offers, *self._waiting})
            queues: JsonObject = {
                key: {"free": len(self._offers[key]), "pending": len(self._waiting[key])}
                for key in keys
            }
            servers = [dict(p.info) for p in self.peers if _is_server(p)]
        return {"queue_info": queues, "server_info": servers}  # type: ignore[dict-item]


class _Handler(socketserver.BaseRequestHandler):
    server: Tracker

    def handle(self) -> None:
        sock: socket.socket = self.request
        peer = _Peer(str(self.client_address[0]))
        desk = self.server.desk
        sock.settimeout(_BEGIN_S)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # A peer that leaves, sends nonsense or does not know the secret: its connection ends.
        with contextlib.suppress(OSError, ValueError, TypeError, IndexError):
            if len(desk.peers) >= _MOST_PEERS or wire.receive_int(sock) != wire.MAGIC:
                return
            sock.sendall(wire.MAGIC.to_bytes(4, "little"))
            desk.peers.add(peer)
            self.server.sockets.add(sock)
            if self.server.secret is None or self._proves(sock, self.server.secret):
                sock.settimeout(None)
                while self._answer(sock, peer, wire.receive(sock)):
                    pass
        self.server.sockets.discard(sock)
        desk.leave(peer)

    def _proves(self, sock: socket.socket, secret: bytes) -> bool:
        """Whether the peer knows the secret."""
        first = wire.receive(sock)
        if not (isinstance(first, list) and first[0] == wire.HELLO and isinstance(first[1], str)):
            wire.send(sock, wire.FAIL)
            return False
        theirs, mine = first[1], wire.nonce()
        wire.send(sock, [wire.SUCCESS, mine, wire.proof(secret, "tracker", theirs, mine)])
        second = wire.receive(sock)
        known = (
            isinstance(second, list)
            and second[0] == wire.PROOF
            and wire.same(wire.proof(secret, "peer", theirs, mine), second[1])
        )
        wire.send(sock, wire.SUCCESS if known else wire.FAIL)
        return known

    def _answer(self, sock: socket.socket, peer: _Peer, message: Json) -> bool:
        """Answer a request; False ends the connection."""
        if not isinstance(message, list):
            return False
        desk, code = self.server.desk, message[0]
        if code == wire.PING:
            wire.send(sock, wire.SUCCESS)
        elif code == wire.SUMMARY:
            wire.send(sock, [wire.SUCCESS, desk.summary()])
        elif code == wire.PENDING:
            wire.send(sock, desk.pending(peer))
        elif code == wire.UPDATE:
            peer.info = _info(message[1], peer)
            wire.send(sock, wire.SUCCESS)
        elif code == wire.PUT:
            (port, match_key), named = message[2], message[3] if len(message) > 3 else None  # type: ignore[misc]
            offer = _Offer(peer, str(named or peer.host), int(port), str(match_key))  # type: ignore[arg-type]
            done = desk.put(str(message[1]), offer)
            wire.send(sock, wire.SUCCESS if done else wire.FAIL)
        elif code == wire.REQUEST:
            taken = desk.take(str(message[1]), int(message[3]), sock)  # type: ignore[arg-type]
            if taken is None:
                return False
            wire.send(sock, [wire.SUCCESS, [taken.host, taken.port, taken.match_key]])
        else:
            wire.send(sock, wire.FAIL)
        return True


class Tracker(socketserver.ThreadingTCPServer):
    """A tracker at a host and port; port 0 takes a free one. `serve_forever` runs it.

    Raises:
        UserError: it cannot listen there, or others could reach it without a secret.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(
        self, host: str, port: int, secret: bytes | None = None, *, trusted_network: bool = False
    ) -> None:
        check_exposed(host, secret, trusted_network)
        self.secret = secret
        self.desk = _Desk()
        self.sockets: set[socket.socket] = set()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise UserError(
                f"cannot listen at {Address(host, port)}: {error.strerror or error}\n"
                "  what to do: choose another --port, or --host with an address of this machine"
            ) from error

    def server_close(self) -> None:
        """Stop listening, and end the connections, so that servers look for another tracker."""
        super().server_close()
        for sock in list(self.sockets):
            with contextlib.suppress(OSError):  # the peer has left already
                sock.shutdown(socket.SHUT_RDWR)

    @property
    def address(self) -> Address:
        """Where it listens."""
        host, port = self.server_address[:2]
        return Address(str(host), int(port))


def _info(given: Json, peer: _Peer) -> JsonObject:
    if not isinstance(given, dict):
        raise TypeError("a server describes itself by an object")
    found = {**peer.info, **given}
    address = found.get("addr")
    if isinstance(address, list) and len(address) == 2 and address[0] is None:
        found["addr"] = [peer.host, address[1]]
    return found


def _is_server(peer: _Peer) -> bool:
    return str(peer.info.get("key", "")).startswith("server:")


def _is_gone(sock: socket.socket) -> bool:
    """Whether a peer that waits for a reply has closed its connection."""
    readable, _, _ = select.select([sock], [], [], 0)
    return bool(readable) and not sock.recv(1, socket.MSG_PEEK)
