"""Who is at the other end of a connection on this machine, as the kernel knows it."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

# Linux lists the connections of this machine here, each end with the user who owns it.
TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_ESTABLISHED = "01"
_LOCAL, _REMOTE, _STATE, _USER = 1, 2, 3, 7
# The kernel gives the list in parts, and connections that come and go between two parts may hide
# another one.
_ATTEMPTS = 2
_ROOT = 0


def are_known() -> bool:
    """Whether this system says who owns a connection."""
    return TABLES[socket.AF_INET].is_file()


def user_of(sock: socket.socket) -> int | None:
    """The user of the process at the other end of a connection; None where that is unknown.

    It is unknown for another machine, and for a process that has closed its end.
    """
    table = TABLES.get(sock.family)
    if table is None:
        return None
    ends = (_entry(sock.getpeername()), _entry(sock.getsockname()))
    for _ in range(_ATTEMPTS):
        try:
            lines = table.read_text(encoding="ascii").splitlines()
        except OSError:
            return None
        for fields in map(str.split, lines[1:]):
            # A connection that its process has closed stays in the list as one of root.
            if (fields[_LOCAL], fields[_REMOTE], fields[_STATE]) == (*ends, _ESTABLISHED):
                return int(fields[_USER])
    return None


def is_own(sock: socket.socket) -> bool:
    """Whether a process of the user of this one is at the other end."""
    return user_of(sock) == os.geteuid()


def is_stranger(sock: socket.socket) -> bool:
    """Whether a process of a user who is neither that of this one nor root is at the other end."""
    return user_of(sock) not in {None, _ROOT, os.geteuid()}


def _entry(address: tuple[str, int]) -> str:
    """An address as the list of the kernel has it: words in the order of this machine."""
    host, port = address[:2]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host.partition("%")[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
