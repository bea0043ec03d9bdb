"""What an operator uses of a specification's limits, and what keeps it out, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno import _core

if TYPE_CHECKING:
    from syno._core import Explanation, LimitUse, Relaxation

_FLAGS = ("negative_shifts", "even_windows", "element_wise_weights")


def says_something(use: LimitUse) -> bool:
    """Flags that are not used, and windows of costs that are open, say nothing."""
    if use["limit"] in _FLAGS:
        return bool(use["used"])
    return use["allowed"] != 0 or use["used"] != 0


def amount(use: LimitUse) -> str:
    """What is used of a limit, in words."""
    if use["limit"] in _FLAGS:
        allowed = "allowed" if use["allowed"] else "not allowed"
        return f"used, {allowed}"
    word = "of at least" if use["limit"].startswith("min_") else "of"
    if use["allowed"] == 0 and use["limit"].endswith(("_macs", "_params")):
        return f"{_number(use['used'])}, no limit"
    return f"{_number(use['used'])} {word} {_number(use['allowed'])}"


def obstacle_in_words(found: Explanation) -> str:
    """The last thing that kept a search from an operator, with what it means."""
    doc = _core.reason_info(found["obstacle_reason"])["doc"]
    return f"{found['obstacle']}: {doc}" if doc else found["obstacle"]


def changed(change: Relaxation) -> str:
    """What a relaxation changes, in words."""
    return {"budget": "budget of ", "limit": "", "rule": "rule "}[change["kind"]] + change["name"]


def relaxing_option(change: Relaxation) -> str:
    """The option of the command line that makes the change."""
    if change["kind"] == "rule":
        return f"--rule {change['name']}=off"
    if change["kind"] == "limit":
        return f"--{change['name'].replace('_', '-')} {change['to']}"
    return f"a variable '{change['name']}: {change['to']}'"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
