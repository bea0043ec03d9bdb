"""Goals of an adaptation: a share of what the original network needs, or an amount."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from syno._util import checks
from syno._util.errors import UserError
from syno.study.fronts import COSTS, LATENCY, MACS, PARAMS

SLOTS = "slots"
# Resources that are times.
TIMES = (LATENCY, SLOTS)
_TEXT = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(x|%|ms|us|k|m|g)?", re.IGNORECASE)
_UNITS = {
    LATENCY: {"ms": 1.0, "us": 1e-3},
    SLOTS: {"ms": 1.0, "us": 1e-3},
    MACS: {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9},
    PARAMS: {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9},
}


@dataclass(frozen=True)
class Goal:
    """A limit on a resource of the network: a share of the original's, or an amount.

    resource: `latency` in milliseconds, `slots` for that of the replaced layers alone, `macs` or
    `params`.
    """

    resource: str
    share: float | None = None
    amount: float | None = None

    @property
    def text(self) -> str:
        """`0.5x`, `1.2ms` or `40000000`."""
        if self.share is not None:
            return f"{self.share:g}x"
        return f"{self.amount:g}ms" if self.resource in TIMES else f"{self.amount:g}"

    @property
    def cost(self) -> str:
        """What is limited of a candidate in a slot, one of `COSTS`."""
        return LATENCY if self.resource in TIMES else self.resource

    def limit(self, original: float) -> float:
        """The limit as an amount, where the original network needs `original`."""
        if self.share is not None:
            return self.share * original
        assert self.amount is not None
        return self.amount


def goal(resource: str, value: object) -> Goal:
    """Read a goal: `0.5x` or `50%` of the original, or an amount, such as `1.2ms` or `40M`.

    A number is an amount: milliseconds, MACs or parameters.

    Raises:
        UserError: for another text, and for what is not above 0.
    """
    shown = f"'{resource}' of a goal: {checks.shown(value)}"
    number: float
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UserError(f"cannot read {shown}\n  expected: {_expected(resource)}")
    if isinstance(value, str):
        match = _TEXT.fullmatch(value.strip())
        unit = (match[2] or "").lower() if match else ""
        if match is None or (unit not in ("x", "%") and unit not in _UNITS[resource]):
            raise UserError(f"cannot read {shown}\n  expected: {_expected(resource)}")
        number = float(match[1])
        if unit in ("x", "%"):
            number = number / 100 if unit == "%" else number
            if not 0.0 < number <= 1.0:
                raise UserError(f"cannot read {shown}\n  expected: a share above 0x and at most 1x")
            return Goal(resource, share=number)
        number *= _UNITS[resource][unit]
    else:
        number = checks.number(f"'{resource}' of a goal", value)
    if not 0.0 < number < math.inf:
        raise UserError(f"cannot read {shown}\n  expected: an amount above 0")
    return Goal(resource, amount=number)


def _expected(resource: str) -> str:
    amount = "milliseconds, such as 1.2ms" if resource in TIMES else "an amount, such as 40M"
    return f"a share of the original's, such as 0.5x, or {amount}"


def limited_costs(goals: Iterable[Goal]) -> tuple[str, ...]:
    """What goals limit of the candidates, in the order of `COSTS`."""
    limited = {goal.cost for goal in goals}
    return tuple(cost for cost in COSTS if cost in limited)
