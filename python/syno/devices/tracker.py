"""The tracker: servers of devices report to it, and it lends them, one session at a time.

It speaks the protocol of TVM's tracker, so that TVM's own servers and tuners can use it, too, while
it has no secret. With a secret, a peer that does not prove it learns nothing; without one, only
processes of the tracker's own user are answered, unless the network is trusted.

Each connection has a thread, and what goes wrong in one ends that connection alone.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import socketserver
import threading
from collections import defaultdict
from dataclasses import dataclass, field

from syno._util.json_types import Json, JsonObject
from syno.devices import peers, wire
from syno.devices.address import MOST_PORT, UNREACHABLE, Address, cannot_listen, check_exposed

# Seconds in which a new peer has to prove who it is, and in which a message that has begun must be
# there, or a reply be taken.
BEGIN_S = 5.0
MESSAGE_S = 10.0
# Seconds between two looks whether a peer that waits for a device is still there.
_LOOK_S = 0.5
MOST_PEERS = 512
MOST_OFFERS = 64
MOST_KEYS = 512
# Peers that have not proven who they are, and the bytes of each of their messages.
MOST_STRANGERS = 64
MOST_BYTES_OF_STRANGERS = 1024
# Bytes of what a server says of itself, as JSON, and characters of a key or an address.
MOST_INFO = 1024
MOST_TEXT = 256
_MOST_PRIORITY = 2**31
_REQUESTS = (wire.PING, wire.SUMMARY, wire.PENDING, wire.UPDATE, wire.PUT, wire.REQUEST)


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


class _Connections:
    """The open connections. Of too many strangers, the oldest one is ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._strangers: dict[socket.socket, None] = {}
        self._known: set[socket.socket] = set()

    def enter(self, sock: socket.socket) -> None:
        """A connection that has not proven who is there."""
        with self._lock:
            if len(self._strangers) >= MOST_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                _end(oldest)
            self._strangers[sock] = None

    def know(self, sock: socket.socket) -> bool:
        """It has proven it; False if it was ended meanwhile, or there are too many."""
        with self._lock:
            if sock not in self._strangers or len(self._known) >= MOST_PEERS:
                return False
            del self._strangers[sock]
            self._known.add(sock)
            return True

    def leave(self, sock: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            self._strangers.pop(sock, None)
            self._known.discard(sock)

    def end(self) -> None:
        """End all connections."""
        with self._lock:
            for sock in (*self._strangers, *self._known):
                _end(sock)


class _Desk:
    """What is offered and who waits, by the key of the device; shared by all connections."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._offers: dict[str, list[_Offer]] = defaultdict(list)
        self._waiting: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._numbers = itertools.count()
        self._peers: set[_Peer] = set()

    def enter(self, peer: _Peer) -> None:
        """A peer that may ask."""
        with self._changed:
            self._peers.add(peer)

    def describe(self, peer: _Peer, info: JsonObject) -> bool:
        """What a server says of itself, beside what it said; False if that is too long."""
        found = {**peer.info, **info}
        match found.get("addr"):
            case [None, port]:
                found["addr"] = [peer.host, port]
        if len(json.dumps(found)) > MOST_INFO:
            return False
        peer.info = found
        return True

    def put(self, key: str, offer: _Offer) -> bool:
        """Offer a session; False for a peer that offers too many, and for too many keys."""
        with self._changed:
            full = key not in self._offers and len(self._offers) >= MOST_KEYS
            if full or len(offer.peer.pending) >= MOST_OFFERS:
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
                while not (self._offers.get(key) and min(waiting) == place):
                    self._changed.wait(_LOOK_S)
                    if _is_gone(sock):
                        return None
                offer = self._offers[key].pop(0)
                offer.peer.pending.discard(offer.match_key)
                return offer
            finally:
                waiting.remove(place)
                self._forget_empty()
                self._changed.notify_all()

    def leave(self, peer: _Peer) -> None:
        """Forget a peer and its offers."""
        with self._changed:
            self._peers.discard(peer)
            for offers in self._offers.values():
                offers[:] = [offer for offer in offers if offer.peer is not peer]
            self._forget_empty()

    def pending(self, peer: _Peer) -> list[Json]:
        """The keys of a server that were not lent."""
        with self._changed:
            return list(peer.pending)

    def summary(self) -> JsonObject:
        """Servers, and how many sessions are free and wanted, by key."""
        with self._changed:
            keys = sorted({*self._offers, *self._waiting})
            queues: JsonObject = {
                key: {
                    "free": len(self._offers.get(key, ())),
                    "pending": len(self._waiting.get(key, ())),
                }
                for key in keys
            }
            servers = [dict(p.info) for p in self._peers if _is_server(p)]
        return {"queue_info": queues, "server_info": servers}  # type: ignore[dict-item]

    def _forget_empty(self) -> None:
        """Keys that nobody offers or wants take no memory."""
        for lists in (self._offers, self._waiting):
            for key in [key for key, entries in lists.items() if not entries]:
                del lists[key]  # type: ignore[attr-defined]


class _Handler(socketserver.BaseRequestHandler):
    server: Tracker

    def handle(self) -> None:
        sock: socket.socket = self.request
        peer = _Peer(str(self.client_address[0]))
        self.server.connections.enter(sock)
        try:
            # A peer that leaves, sends nonsense or does not know the secret: its connection ends.
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._begins(sock) and self.server.connections.know(sock):
                    self.server.desk.enter(peer)
                    while self._answer(sock, peer, _next(sock)):
                        pass
        finally:
            self.server.connections.leave(sock)
            self.server.desk.leave(peer)

    def _begins(self, sock: socket.socket) -> bool:
        """Whether the peer speaks the protocol, and may ask."""
        deadline = wire.Deadline(BEGIN_S)
        if wire.receive_int(sock, deadline) != wire.MAGIC:
            return False
        sock.sendall(wire.MAGIC.to_bytes(4, "little"))
        if self.server.secret is not None:
            return self._proves(sock, self.server.secret, deadline)
        if self.server.trusted_network or peers.is_own(sock):
            return True
        wire.receive(sock, deadline, MOST_BYTES_OF_STRANGERS)
        wire.send(sock, wire.FAIL, deadline)
        return False

    def _proves(self, sock: socket.socket, secret: bytes, deadline: wire.Deadline) -> bool:
        """Whether the peer knows the secret."""
        match wire.receive(sock, deadline, MOST_BYTES_OF_STRANGERS):
            case [wire.HELLO, str(theirs)]:
                mine = wire.nonce()
            case _:
                wire.send(sock, wire.FAIL, deadline)
                return False
        ours = wire.proof(secret, "tracker", theirs, mine)
        wire.send(sock, [wire.SUCCESS, mine, ours], deadline)
        match wire.receive(sock, deadline, MOST_BYTES_OF_STRANGERS):
            case [wire.PROOF, str(given)]:
                known = wire.same(wire.proof(secret, "peer", theirs, mine), given)
            case _:
                known = False
        wire.send(sock, wire.SUCCESS if known else wire.FAIL, deadline)
        return known

    def _answer(self, sock: socket.socket, peer: _Peer, message: Json) -> bool:
        """Answer a request; False ends the connection."""
        desk = self.server.desk
        reply: Json
        match message:
            case [wire.PING, *_]:
                reply = wire.SUCCESS
            case [wire.SUMMARY, *_]:
                reply = [wire.SUCCESS, desk.summary()]
            case [wire.PENDING, *_]:
                reply = desk.pending(peer)
            case [wire.UPDATE, dict(info), *_]:
                reply = wire.SUCCESS if desk.describe(peer, info) else wire.FAIL
            case [wire.PUT, str(key), [int(port), str(match_key)], *rest]:
                host = rest[0] if rest and isinstance(rest[0], str) and rest[0] else peer.host
                offer = _Offer(peer, host, port, match_key)
                sound = 0 < port <= MOST_PORT and _are_short(key, host, match_key)
                reply = wire.SUCCESS if sound and desk.put(key, offer) else wire.FAIL
            case [wire.REQUEST, str(key), _, int(priority), *_] if (
                _are_short(key) and abs(priority) < _MOST_PRIORITY
            ):
                taken = desk.take(key, priority, sock)
                if taken is None:
                    return False
                reply = [wire.SUCCESS, [taken.host, taken.port, taken.match_key]]
            case [int(code), *_] if code not in _REQUESTS:
                reply = wire.FAIL
            case _:
                return False
        wire.send(sock, reply, wire.Deadline(MESSAGE_S))
        return True


class Tracker(socketserver.ThreadingTCPServer):
    """A tracker at a host and port; port 0 takes a free one. `serve_forever` runs it.

    secret: what peers must know; without one, peers must be processes of this user, unless
    trusted_network says that whoever reaches the address may use the devices.

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
        self.secret, self.trusted_network = secret, trusted_network
        self.desk, self.connections = _Desk(), _Connections()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except UNREACHABLE as error:
            raise cannot_listen(Address(host, port), error) from error

    def server_close(self) -> None:
        """Stop listening, and end the connections, so that servers look for another tracker."""
        super().server_close()
        self.connections.end()

    @property
    def address(self) -> Address:
        """Where it listens."""
        host, port = self.server_address[:2]
        return Address(str(host), int(port))


def _next(sock: socket.socket) -> Json:
    """The next message of a peer, which may be silent as long as it likes before it begins."""
    sock.settimeout(None)
    sock.recv(1, socket.MSG_PEEK)
    return wire.receive(sock, wire.Deadline(MESSAGE_S))


def _are_short(*texts: str) -> bool:
    return all(0 < len(text) <= MOST_TEXT and text.isascii() for text in texts)


def _is_server(peer: _Peer) -> bool:
    return str(peer.info.get("key", "")).startswith("server:")


def _is_gone(sock: socket.socket) -> bool:
    """Whether a peer that waits for a reply has closed its connection."""
    sock.settimeout(0)
    try:
        return not sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False


def _end(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the peer has left already
        sock.shutdown(socket.SHUT_RDWR)
