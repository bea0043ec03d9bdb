"""Addresses of trackers and servers, and the secret that they share."""

from __future__ import annotations

import ipaddress
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from syno._util.errors import UserError
from syno.devices import peers

LOOPBACK = "127.0.0.1"
TRACKER_PORT = 9190
# What an address that cannot be used raises; ValueError: a name that no machine can have.
UNREACHABLE = (OSError, ValueError)
MOST_PORT = 65535
# A key stands in a line of a table, and TVM splits it at colons and spaces.
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_LEAST_SECRET = 16
_MOST_SECRET = 4096
MAKE_SECRET = "(umask 077; openssl rand -hex 32 > secret)"


@dataclass(frozen=True)
class Address:
    """A machine and a port of TCP."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, what: str = "tracker") -> Address:
    """Read HOST, HOST:PORT or [HOST]:PORT; the port is by default that of a tracker.

    Raises:
        UserError: it is none of them.
    """
    found = re.fullmatch(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^\s:]+))(?::(?P<port>\d{1,5}))?", text)
    port = TRACKER_PORT if found is None or found["port"] is None else int(found["port"])
    if found is None or not 0 < port <= MOST_PORT:
        raise UserError(
            f"'{text}' is no address of a {what}\n  expected: HOST:PORT, such as "
            f"{LOOPBACK}:{TRACKER_PORT}      got: {text}"
        )
    return Address(found["six"] or found["host"], port)


def check_key(key: str) -> str:
    """The key of a device. UserError for one that cannot be used."""
    if _KEY.fullmatch(key) is None:
        raise UserError(
            f"'{key}' is no key of a device\n"
            "  expected: up to 64 letters, digits and _ . + -, such as jetson-orin-nano"
        )
    return key


def read_secret(path: Path) -> bytes:
    """Read a shared secret from a file that nobody else can read.

    Raises:
        UserError: the file is missing, too short or too long, or others can read it.
    """
    try:
        mode = path.stat().st_mode
        content = path.read_bytes()[: _MOST_SECRET + 1].strip()
    except OSError as error:
        raise UserError(
            f"cannot read the secret '{path}': {error.strerror}\n  what to do: {MAKE_SECRET}"
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(
            f"others can read or write the secret '{path}'\n  what to do: chmod 600 {path}"
        )
    if not _LEAST_SECRET <= len(content) <= _MOST_SECRET:
        raise UserError(
            f"the secret '{path}' has an unexpected length\n"
            f"  expected: {_LEAST_SECRET} to {_MOST_SECRET} bytes      got: {len(content)}\n"
            f"  what to do: {MAKE_SECRET}"
        )
    return content


def reason_of(error: Exception) -> str:
    """Why an address could not be used, in words."""
    return str(getattr(error, "strerror", None) or error)


def cannot_listen(address: Address, error: Exception) -> UserError:
    """The error of a server that cannot listen at an address."""
    return UserError(
        f"cannot listen at {address}: {reason_of(error)}\n"
        "  what to do: choose another --port, or --host with an address of this machine"
    )


def check_exposed(host: str, secret: bytes | None, trusted_network: bool) -> None:
    """UserError for a server that other machines or other users can reach without a secret."""
    if secret is not None or trusted_network:
        return
    if not is_loopback(host):
        raise UserError(
            f"anybody who reaches '{host}' could run code on this machine\n"
            "  what to do: give --secret FILE on all machines, or --trusted-network if every "
            "machine that reaches it may"
        )
    if not peers.are_known():
        raise UserError(
            "any user of this machine could run code as you: this system does not say which user "
            "connects\n"
            "  what to do: give --secret FILE, or --trusted-network if every user may; "
            f"{MAKE_SECRET}"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
