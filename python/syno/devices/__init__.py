"""Devices that other machines lend: a tracker, servers, and what asks them."""

from syno.devices.address import Address, parse_address, read_secret
from syno.devices.client import TrackedDevice, devices_at
from syno.devices.tracker import Tracker

__all__ = ["Address", "TrackedDevice", "Tracker", "devices_at", "parse_address", "read_secret"]
