"""`syno device`: devices that other machines lend for tuning."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.options import Options, group, option
from syno.cli import framework, output

if TYPE_CHECKING:
    from syno.devices import Address

_HOST, _PORT = "127.0.0.1", 9190


@dataclass(frozen=True, kw_only=True)
class _Secret(Options):
    secret_file: Path | None = option(
        "File with the secret that trackers, servers and tuners share.",
        None,
        names="--secret",
        metavar="FILE",
    )

    def read(self) -> bytes | None:
        """The secret."""
        from syno.devices import read_secret

        return None if self.secret_file is None else read_secret(self.secret_file)


@dataclass(frozen=True, kw_only=True)
class _Exposure(Options):
    host: str = option(
        "Address of this machine to listen at; 127.0.0.1 is reached from this machine alone.",
        _HOST,
        metavar="HOST",
    )
    trusted_network: bool = option(
        "Do without a secret for other users and machines: whoever reaches it can run code here.",
        False,
    )


@framework.group("device")
def command() -> None:
    """Lend this machine as a device for tuning, and list devices."""


@dataclass(frozen=True, kw_only=True)
class _TrackerArguments(Options):
    exposure: _Exposure = group(_Exposure)
    port: int = option("Port of TCP; 0 takes a free one.", _PORT, minimum=0, maximum=65535)
    secret: _Secret = group(_Secret)


@framework.command("device tracker", _TrackerArguments)
def tracker_command(given: _TrackerArguments) -> int:
    """Run the tracker, at which servers offer devices and `syno tune` asks for them.

    It runs until it is interrupted. It speaks the protocol of TVM's tracker; servers of TVM's own
    can use it while it has no secret.
    """
    from syno.devices import Tracker

    exposure = given.exposure
    tracker = Tracker(
        exposure.host,
        given.port,
        given.secret.read(),
        trusted_network=exposure.trusted_network,
    )
    output.say(f"the tracker listens at {tracker.address}")
    with tracker, contextlib.suppress(KeyboardInterrupt):
        tracker.serve_forever()
    return framework.OK


@dataclass(frozen=True, kw_only=True)
class _ServeArguments(Options):
    key: str = option("Key by which the device is asked for.", "cpu", metavar="KEY")
    tracker: str = option("Address of the tracker.", f"{_HOST}:{_PORT}", metavar="HOST:PORT")
    exposure: _Exposure = group(_Exposure)
    port: int = option("Port of TCP; 0 takes a free one.", 0, minimum=0, maximum=65535)
    address: str | None = option(
        "Address that the tracker tells others.", None, metavar="HOST", unset="as it sees it"
    )
    session_seconds: float = option(
        "Longest session in seconds.", 600.0, minimum=0, above=True, metavar="SECONDS"
    )
    secret: _Secret = group(_Secret)


@framework.command("device serve", _ServeArguments)
def serve_command(given: _ServeArguments) -> int:
    """Lend this machine to `syno tune` on other machines, through a tracker.

    It runs until it is interrupted, and serves one session at a time. A session can run any code
    as this user, and nothing is encrypted: use a network that is trusted, or a tunnel.
    """
    from syno.devices.server import DeviceServer

    exposure = given.exposure
    server = DeviceServer(
        given.key,
        _address(given.tracker),
        secret=given.secret.read(),
        host=exposure.host,
        port=given.port,
        address=given.address,
        session_seconds=given.session_seconds,
        trusted_network=exposure.trusted_network,
        told=output.say,
    )
    output.say(f"the device '{given.key}' is offered at {given.tracker}; it is {server.address}")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()
    return framework.OK


@dataclass(frozen=True, kw_only=True)
class _ListArguments(Options):
    tracker: str = option("Address of the tracker.", f"{_HOST}:{_PORT}", metavar="HOST:PORT")
    secret: _Secret = group(_Secret)
    timeout: float = option(
        "Seconds for its answer.", 10.0, minimum=0, above=True, metavar="SECONDS"
    )
    as_json: bool = output.as_json()


@framework.command("device list", _ListArguments)
def list_command(given: _ListArguments) -> int:
    """List the devices at a tracker, with their versions.

    The exit code is 1 if there is none.
    """
    from syno.devices import devices_at
    from syno.devices.tables import devices_table

    found = devices_at(_address(given.tracker), given.secret.read(), timeout=given.timeout)
    if given.as_json:
        output.print_json([dataclasses.asdict(each) for each in found])
    elif found:
        output.show(devices_table(found))
    else:
        output.say(f"the tracker at {given.tracker} has no device\n  next: syno device serve")
    return framework.OK if found else framework.NEGATIVE


def _address(text: str) -> Address:
    from syno.devices import parse_address

    return parse_address(text)
