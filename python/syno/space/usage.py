"""The constraints that an operator uses, and its rejection reasons, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno import _core

if TYPE_CHECKING:
    from syno._core import Explanation, LimitUse, Relaxation

_FLAGS = ("negative_shifts", "even_windows", "element_wise_weights")


def says_something(use: LimitUse) -> bool:
    """Return whether the use of a constraint is worth printing.

    Unused flags and unlimited costs are not.
    """
    if use["limit"] in _FLAGS:
        return bool(use["used"])
    return use["allowed"] != 0 or use["used"] != 0


def amount(use: LimitUse) -> str:
    """Describe how much of a constraint is used."""
    if use["limit"] in _FLAGS:
        allowed = "allowed" if use["allowed"] else "not allowed"
        return f"used, {allowed}"
    word = "of at least" if use["limit"].startswith("min_") else "of"
    if use["allowed"] == 0 and use["limit"].endswith(("_macs", "_params")):
        return f"{_number(use['used'])}, no limit"
    return f"{_number(use['used'])} {word} {_number(use['allowed'])}"


def obstacle_in_words(found: Explanation) -> str:
    """Describe the obstacle that kept a search from reaching an operator."""
    doc = _core.reason_info(found["obstacle_reason"])["doc"]
    return f"{found['obstacle']}: {doc}" if doc else found["obstacle"]


def changed(change: Relaxation) -> str:
    """Describe what a relaxation changes."""
    return {"budget": "budget of ", "limit": "", "rule": "rule "}[change["kind"]] + change["name"]


def relaxing_option(change: Relaxation) -> str:
    """Return the command-line option for a relaxation."""
    if change["kind"] == "rule":
        return f"--rule {change['name']}=off"
    if change["kind"] == "limit":
        return f"--{change['name'].replace('_', '-')} {change['to']}"
    return f"a variable '{change['name']}: {change['to']}'"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
