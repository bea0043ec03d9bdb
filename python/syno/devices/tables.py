"""Devices as a table."""

from __future__ import annotations

from collections.abc import Sequence

from syno._util.tables import Table
from syno.devices.client import TrackedDevice, own_versions


def devices_table(devices: Sequence[TrackedDevice]) -> Table:
    """Each device, and whether this machine can use it."""
    here = str(own_versions()["tvm"])

    def remark(device: TrackedDevice) -> str:
        if not device.tvm:
            return "a server of TVM's own, which does not say its version"
        return "" if device.tvm == here else f"another version of TVM than here ({here or 'none'})"

    return Table.of(
        devices,
        ("key", lambda device: device.key),
        ("state", lambda device: "free" if device.free else "in use"),
        ("address", lambda device: device.address),
        ("device~", lambda device: device.name),
        ("machine", lambda device: device.machine),
        ("cores>", lambda device: str(device.cores or "")),
        ("tvm", lambda device: device.tvm),
        ("syno?", lambda device: device.syno),
        ("remark~", remark),
    ).without_empty()
