"""The two exceptions of Syno, a user's mistake and a bug, and what a message suggests."""

import difflib
from collections.abc import Iterable

from syno._core import InternalError, UserError

_LONGEST = 100


def nearest(name: str, known: Iterable[str]) -> str:
    """A line that names what is like `name`, or nothing; nothing, too, where `name` is known."""
    if len(name) > _LONGEST:  # nothing is like it, and to see that takes the product of the lengths
        return ""
    names = list(dict.fromkeys(known))
    if name in names:
        return ""
    found = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    return f"\n  did you mean: {', '.join(found)}?" if found else ""


def first_line(error: BaseException) -> str:
    """The first line of an error's message; the name of its class where there is no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


__all__ = ["InternalError", "UserError", "first_line", "nearest"]
