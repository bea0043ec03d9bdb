"""What asks a tracker: which devices there are, and for a session on one of them."""

from __future__ import annotations

import platform
import socket
from dataclasses import dataclass
from importlib import metadata

from syno._util.checks import shown
from syno._util.errors import UserError
from syno._util.json_types import Json, JsonObject
from syno._util.printable import printable
from syno.devices import wire
from syno.devices.address import MOST_PORT, UNREACHABLE, Address, reason_of

ANSWER_S = 10.0
_SERVER = "server:"
# The name of what our servers say of themselves, beside what TVM's protocol asks for.
DETAILS = "syno"


@dataclass(frozen=True)
class TrackedDevice:
    """A device at a tracker.

    key: by which it is asked for; address: of its server, as the tracker knows it; free: whether
    nobody uses it. name: of its processor; machine: its instruction set; cores; tvm, syno:
    versions; target: of its processor, as TVM writes it. What a server of TVM's own does not say is
    empty.
    """

    key: str
    address: str
    free: bool
    name: str = ""
    machine: str = ""
    cores: int = 0
    tvm: str = ""
    syno: str = ""
    target: str = ""


@dataclass(frozen=True)
class Lent:
    """A session that the tracker lends: where it is, and the key that opens it once."""

    address: Address
    match_key: str


def own_versions() -> JsonObject:
    """The versions of this machine that matter to a device, and its instruction set."""
    found: JsonObject = {"machine": platform.machine()}
    for name, package in (("tvm", "apache-tvm"), ("syno", "syno")):
        try:
            found[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found


def devices_at(
    tracker: Address, secret: bytes | None = None, *, timeout: float = ANSWER_S
) -> list[TrackedDevice]:
    """Return the devices at a tracker, by key.

    Args:
        tracker: its address.
        secret: that of the tracker; None for a tracker without one.
        timeout: seconds after which a tracker that does not answer is an error.

    Raises:
        UserError: no tracker answers there, or it has another secret.
    """
    with wire.Connection(tracker, secret, timeout) as connection:
        reply = connection.ask(wire.SUMMARY)
    match reply:
        case [_, {"server_info": list(servers)}]:
            pass
        case _:
            raise UserError(f"the tracker at {tracker} gave no list of devices: {shown(reply)}")
    found = [_device(each) for each in servers if isinstance(each, dict)]
    return sorted(found, key=lambda each: (each.key, each.address))


def check_device(
    tracker: Address, key: str, secret: bytes | None = None, *, timeout: float = ANSWER_S
) -> list[TrackedDevice]:
    """The devices with a key.

    Raises:
        UserError: there is none, or one of them has another version of TVM than this machine.
    """
    every = devices_at(tracker, secret, timeout=timeout)
    found = [each for each in every if each.key == key]
    if not found:
        known = ", ".join(dict.fromkeys(each.key for each in every)) or "no device"
        raise UserError(
            f"the tracker at {tracker} has no device '{key}'\n"
            f"  expected: one of its keys      got: {known}\n"
            f"  what to do: `syno device serve --key {key} --tracker {tracker}` on that device"
        )
    here = str(own_versions()["tvm"])
    for each in found:
        if each.tvm and each.tvm != here:
            raise UserError(
                f"the device '{key}' at {each.address} has another version of TVM\n"
                f"  expected: {here or 'none'}, as on this machine      got: {each.tvm}\n"
                "  what to do: install the same version of syno[tvm] on both"
            )
    return found


def borrow(
    tracker: Address,
    key: str,
    secret: bytes | None = None,
    *,
    wait: float,
    timeout: float = ANSWER_S,
) -> Lent:
    """Ask for a session on a device, for which one may have to wait.

    Args:
        wait: seconds after which a device that others use is an error.
        timeout: seconds for the tracker's and the server's answers.

    Raises:
        UserError: none became free in time, or its server cannot be reached from here.
    """
    with wire.Connection(tracker, secret, timeout) as connection:
        try:
            reply = connection.ask(wire.REQUEST, key, "", 1, timeout=wait)
        except UserError as error:
            raise UserError(
                f"no device '{key}' became free in {wait:g} s at the tracker {tracker}\n"
                "  what to do: `syno device list` shows who is there; start another "
                "`syno device serve`, or wait"
            ) from error
    match reply:
        case [wire.SUCCESS, [str(host), int(port), str(match_key)]] if 0 < port <= MOST_PORT:
            lent = Lent(Address(host, port), match_key)
        case _:
            raise UserError(f"the tracker at {tracker} lends no device: {shown(reply)}")
    try:
        # TVM connects without a limit of time: whether anything is there is seen first.
        socket.create_connection((lent.address.host, lent.address.port), timeout).close()
    except UNREACHABLE as error:
        raise UserError(
            f"the device '{key}' at {lent.address} cannot be reached: {reason_of(error)}\n"
            "  what to do: start its server with --host and an address that this machine reaches"
        ) from error
    return lent


def _device(info: JsonObject) -> TrackedDevice:
    address = info.get("addr")
    details = info.get(DETAILS)
    known = details if isinstance(details, dict) else {}
    return TrackedDevice(
        key=_text(info.get("key")).removeprefix(_SERVER),
        address=_text(":".join(map(str, address))) if isinstance(address, list) else "",
        free=not known.get("busy", False),
        name=_text(known.get("name")),
        machine=_text(known.get("machine")),
        cores=_count(known.get("cores")),
        tvm=_text(known.get("tvm")),
        syno=_text(known.get("syno")),
        target=_text(known.get("target")),
    )


def _text(value: Json | None) -> str:
    return printable(value, line=True) if isinstance(value, str) else ""


def _count(value: Json | None) -> int:
    return value if isinstance(value, int) else 0
