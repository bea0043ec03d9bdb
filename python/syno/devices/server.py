"""The server of a device: it offers sessions at a tracker, one at a time, each in a process.

A session is TVM's: it may write files in a folder of its own, load code and run it, as this user.
Who opens it has the match key, 128 random bits that the tracker gives to one peer, once. Without
a secret it must also be a process of this user, unless the network is trusted.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess

from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno._util.threads import usable_cores
from syno.devices import peers, tvm_session, wire
from syno.devices.address import (
    LOOPBACK,
    UNREACHABLE,
    Address,
    cannot_listen,
    check_exposed,
    check_key,
)
from syno.devices.client import DETAILS, own_versions
from syno.devices.door import MAGIC, Door
from syno.runs import processes
from syno.store.environment import capture_environment

_OPENED, _MISMATCH = MAGIC, MAGIC + 2
_INT = struct.Struct("<i")
# Seconds: between two looks at the tracker, until a key that was lent and not used is made anew,
# for answers, for the end of a process, between attempts to find a tracker.
_PING_S = 1.0
_UNUSED_S = 30.0
_ANSWER_S = 5.0
_END_S = 5.0
_AGAIN_S = 2.0
_TIMEOUT = "-timeout="
Told = Callable[[str], None]


class DeviceServer:
    """A server of one device; `serve` runs it.

    key: by which the device is asked for; tracker, secret: where it is offered; host, port: where
    it listens, port 0 for any; address: what the tracker tells others, by default as the tracker
    sees it; session_seconds: after which a session is ended in any case; trusted_network: whoever
    reaches it may run code here, without a secret; told: gets a line for each event.

    Raises:
        UserError: TVM is missing, the tracker cannot be used, or nothing can listen there.
    """

    def __init__(
        self,
        key: str,
        tracker: Address,
        *,
        secret: bytes | None = None,
        host: str = LOOPBACK,
        port: int = 0,
        address: str | None = None,
        session_seconds: float = 600.0,
        trusted_network: bool = False,
        told: Told = lambda _: None,
    ) -> None:
        check_exposed(host, secret, trusted_network)
        self.key = check_key(key)
        self._tracker_address, self._secret = tracker, secret
        self._own_user_only = secret is None and not trusted_network
        self._named, self._most_s, self._told = address, session_seconds, told
        self._details = {**own_versions(), "cores": usable_cores()}
        self._details["name"] = capture_environment(threads=1, rules="").device
        tvm_session.load()
        self._details["target"] = tvm_session.own_target()
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, port), family=family)
        except UNREACHABLE as error:
            raise cannot_listen(Address(host, port), error) from error
        self.address = Address(host, int(self._socket.getsockname()[1]))
        try:
            self._tracker: wire.Connection | None = self._connected()
        except UserError:
            self._socket.close()
            raise

    def serve(self) -> None:
        """Offer sessions until this process is interrupted. A tracker that leaves is waited for."""
        try:
            while True:
                try:
                    self._once()
                except UserError as error:
                    self._leave()
                    self._told(str(error).partition("\n")[0])
                    self._wait_for_tracker()
        finally:
            self._leave()
            self._socket.close()

    def _once(self) -> None:
        sock, limit = self._accepted()
        with sock:
            self._report(busy=True)
            self._told("a session begins")
            self._told(f"the session {self._session(sock, limit)}")
        self._report(busy=False)

    def _connected(self) -> wire.Connection:
        connection = wire.Connection(self._tracker_address, self._secret, _ANSWER_S)
        self._tracker = connection
        self._report(busy=False)
        return connection

    def _wait_for_tracker(self) -> None:
        while self._tracker is None:
            time.sleep(_AGAIN_S)
            with contextlib.suppress(UserError):
                self._tracker = self._connected()
                self._told(f"offered at the tracker {self._tracker_address}")

    def _leave(self) -> None:
        if self._tracker is not None:
            self._tracker.close()
        self._tracker = None

    def _report(self, *, busy: bool) -> None:
        info: JsonObject = {
            "key": f"server:{self.key}",
            "addr": [self._named, self.address.port],
            DETAILS: {**self._details, "busy": busy},
        }
        self._ask(wire.UPDATE, info)

    def _ask(self, code: int, *rest: object) -> object:
        assert self._tracker is not None
        reply = self._tracker.ask(code, *rest)  # type: ignore[arg-type]
        if reply == wire.FAIL:
            raise UserError(f"the tracker at {self._tracker_address} refuses this server")
        return reply

    def _accepted(self) -> tuple[socket.socket, float]:
        """The connection of a client with the right key, and the seconds of its session."""
        match_key = self._offer()
        lent_at: float | None = None
        looked = time.monotonic()
        with Door(self._socket) as door:
            while True:
                visitor = door.next(_PING_S)
                if visitor is not None:
                    sock, said = visitor
                    limit = self._opened(sock, said, match_key)
                    if limit is not None:
                        return sock, limit
                    sock.close()
                now = time.monotonic()
                if now - looked < _PING_S:
                    continue
                looked = now
                pending = self._ask(wire.PENDING)
                waits = isinstance(pending, list) and match_key in pending
                lent_at = None if waits else lent_at or now
                if lent_at is not None and now - lent_at > _UNUSED_S:
                    match_key, lent_at = self._offer(), None

    def _offer(self) -> str:
        # TVM's tracker takes the key of the device from what stands before the last colon.
        match_key = f"{self.key}:{wire.nonce()}"
        self._ask(wire.PUT, self.key, [self.address.port, match_key], self._named)
        return match_key

    def _opened(self, sock: socket.socket, said: str, match_key: str) -> float | None:
        """The seconds of the session of a client; None for one that may not begin one."""
        asked, *options = said.split() or [""]
        if self._own_user_only and not peers.is_own(sock):
            self._told("refused a client of another user: it needs a secret")
            return None
        sock.settimeout(_ANSWER_S)
        try:
            if not wire.same(f"client:{match_key}", asked):
                sock.sendall(_INT.pack(_MISMATCH))
                self._told("refused a client with another key")
                return None
            limits = [float(o.removeprefix(_TIMEOUT)) for o in options if o.startswith(_TIMEOUT)]
            answer = f"server:{self.key}".encode()
            sock.sendall(_INT.pack(_OPENED) + _INT.pack(len(answer)) + answer)
        except (OSError, ValueError):  # it has left; a limit that is no number
            return None
        sock.settimeout(None)
        return min([self._most_s, *(limit for limit in limits if limit > 0)])

    def _session(self, sock: socket.socket, limit: float) -> str:
        """Run a session in a process of its own; how it ended."""
        # Forked: TVM takes seconds to load, and a search opens a session for each trial.
        context = multiprocessing.get_context("fork")
        with tempfile.TemporaryDirectory(
            prefix="syno-device-", ignore_cleanup_errors=True
        ) as folder:
            process = context.Process(target=_run, args=(sock, folder, os.getpid()), daemon=True)
            process.start()
            try:
                process.join(limit)
                late = process.is_alive()
            finally:
                _end(process)
        if late:
            return f"was ended after {limit:g} s"
        if process.exitcode:
            return f"ended with exit code {process.exitcode}"
        return "is over"


def _run(sock: socket.socket, folder: str, parent: int) -> None:
    os.setpgid(0, 0)
    processes.die_with(parent)
    os.chdir(folder)
    tvm_session.serve(sock.fileno(), folder)


def _end(process: BaseProcess) -> None:
    """End a session with the compilers that it started."""
    assert process.pid is not None
    processes.kill_group(process.pid)
    if process.is_alive():
        process.kill()
        process.join(_END_S)
