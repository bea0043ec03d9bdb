"""What a prediction knows of a device: its roofline and its vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.measure.roofline import Level, Roofline, measure_roofline
from syno.measure.schedule_costs import Machine
from syno.store.environment import capture_environment

_WHOLE = ("lanes", "threads")
# FLOP or bytes a second.
_LEAST_RATE, _MOST_RATE = 1e3, 1e21


@dataclass(frozen=True)
class Device:
    """A processor with a number of threads.

    name: as in the environment of results. lanes: floats of a vector. roofline: its peak and its
    bandwidths, with the number of threads.
    """

    name: str
    lanes: int
    roofline: Roofline

    @classmethod
    def here(cls, threads: int = 1) -> Device:
        """Describe this machine. Its roofline is measured, in one or two seconds.

        Raises:
            UserError: as in `measure_roofline`.
        """
        return cls(cls.name_here(), Machine.here(threads).lanes, measure_roofline(threads))

    @staticmethod
    def name_here() -> str:
        """Return the name of the processor of this machine."""
        return capture_environment(threads=1, rules="").device

    @property
    def threads(self) -> int:
        """The number of threads."""
        return self.roofline.threads

    def to_json(self) -> JsonObject:
        """Return the device as plain values; `from_json` reads it."""
        return {
            "name": self.name,
            "lanes": self.lanes,
            "threads": self.roofline.threads,
            "flops": self.roofline.flops,
            "levels": [[level.bytes, level.bytes_per_s] for level in self.roofline.levels],
        }

    @classmethod
    def from_json(cls, content: object) -> Device:
        """Read what `to_json` returns.

        Raises:
            UserError: for anything else.
        """
        try:
            if not isinstance(content, Mapping):
                raise TypeError("it is no object")
            whole = {name: checks.whole(f"'{name}'", content[name], 1) for name in _WHOLE}
            levels = tuple(
                Level(checks.whole("the size of a level", size, 1), _rate(rate))
                for size, rate in content["levels"]
            )
            roofline = Roofline(whole["threads"], _rate(content["flops"]), levels)
            found = cls(str(content["name"]), whole["lanes"], roofline)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise UserError(f"the description of a device is damaged: {error}") from None
        if not levels:
            raise UserError("the description of a device is damaged: it has no bandwidths")
        return found


def _rate(value: object) -> float:
    rate = checks.number("a rate", value)
    if not _LEAST_RATE < rate < _MOST_RATE:
        raise ValueError(f"the rate {rate:g} is none of a processor")
    return rate
