"""What a study may be called."""

from __future__ import annotations

from syno._util.checks import shown, text
from syno._util.errors import UserError
from syno._util.printable import is_printable, printable

_LONGEST = 200  # characters
_LONGEST_PART = 60


def automatic_name(*parts: str) -> str:
    """A name of parts, whatever is in them, which the store completes with a number."""
    return "-".join([*(printable(part, line=True)[:_LONGEST_PART] for part in parts), ""])


def check_name(name: str) -> None:
    """UserError unless a new study may have this name; studies that there are keep theirs."""
    text("the name of a study", name)
    expected = f"  expected: 1 to {_LONGEST} printable characters      got: {shown(name)}"
    if not name.strip():
        raise UserError(f"the name of a study is empty\n{expected}")
    if len(name) > _LONGEST:
        raise UserError(f"the name of a study has {len(name)} characters\n{expected}")
    if not is_printable(name):
        raise UserError(f"the name of a study holds control characters\n{expected}")
