"""Values from outside: checked where they enter, with messages that stay short whatever they hold.

A library function of the extension takes what fits its types: UTF-8 and integers of 64 bits. What
is out of range is rejected here with a message that names the argument.
"""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex, TypeGuard, cast

from syno._util.errors import UserError
from syno._util.printable import printable

LEAST, MOST = -(2**63), 2**63 - 1  # the integers that the extension takes
MOST_INT = 2**31 - 1  # where it takes an int, such as a number of threads
MOST_COUNTED = 1_000_000_000  # evaluations: a century of them at three seconds each
_LONGEST = 200  # characters of a value that a message repeats
_MOST_BITS = 10_000  # Python writes no integer of more than 4300 digits in decimals


def shown(value: object) -> str:
    """`value` as a message repeats it: its repr, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of about {math.ceil(value.bit_length() * math.log10(2))} digits"
    try:
        text = repr(value)
    except (ValueError, RecursionError, MemoryError):
        return f"a {type(value).__name__} that is too large to print"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def short(name: str) -> str:
    """A name as a message repeats it."""
    name = printable(name, line=True)
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}... ({len(name)} characters)"


def text(what: str, value: object) -> str:
    """`value`, a string that UTF-8 can hold. UserError with `what`, such as "a rule's id"."""
    if not isinstance(value, str):
        raise UserError(f"{what} is not a string\n  expected: a string      got: {shown(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"{what} holds a character that is none: half of a surrogate pair, number "
                f"{error.start + 1}\n"
                f"  expected: Unicode text      got: {value[error.start]!a}"
            ) from None
    return value


def names(what: str, value: object) -> tuple[str, ...]:
    """`value`, some names, as a tuple. UserError with `what`, an argument's name."""
    return tuple(text(f"a name of '{what}'", name) for name in listed(what, value, "names"))


def listed(what: str, value: object, of: str = "values") -> tuple[Any, ...]:
    """`value`, some values, as a tuple; a text and a tensor of one number are none. UserError with
    `what`, an argument's name."""
    try:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise TypeError
        return tuple(value)
    except TypeError:
        raise UserError(
            f"'{what}' is no list\n  expected: a list of {of}      got: {shown(value)}"
        ) from None


def is_whole(value: object, least: int = LEAST, most: int = MOST) -> TypeGuard[int]:
    """Whether `value` is an `int` from `least` to `most`; True and False are none.

    For values that are stored as they are; an argument of a function goes through `whole`.
    """
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def as_whole(value: object) -> int | None:
    """`value` as an `int`; None for what is no integer. Integers of numpy and torch count."""
    if isinstance(value, bool):
        return None
    try:
        # To ask first whether it has __index__ takes twenty times as long.
        return int(operator.index(cast(SupportsIndex, value)))
    except TypeError:
        return None


def whole(
    what: str, value: object, least: int = LEAST, most: int = MOST, *, hint: str | None = None
) -> int:
    """`value`, an integer from `least` to `most`; numpy's integers count. UserError with `what`.

    hint: what to do about it, for the last line of the message.
    """
    found = as_whole(value)
    if found is None or not least <= found <= most:
        from_, to = _bound(least), _bound(most)
        bound = f"most {to}" if found is not None and found > most else f"least {from_}"
        raise UserError(
            f"{what} is an integer of at {bound}, got {shown(value)}\n"
            f"  expected: an integer from {from_} to {to}      got: {shown(value)}"
            + (f"\n  hint: {hint}" if hint else "")
        )
    return found


def _bound(value: int) -> str:
    return {LEAST: "-2^63", MOST: "2^63 - 1", MOST_INT: "2^31 - 1"}.get(value, str(value))


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether `value` is an `int` or a `float`; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(what: str, value: object) -> float:
    """`value` as a float. UserError with `what` for what is no number, or beyond a float."""
    try:
        if isinstance(value, bool) or not isinstance(value, (SupportsFloat, SupportsIndex)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"{what} is a number, got {shown(value)}\n"
            f"  expected: a number below 10^308      got: {shown(value)}"
        ) from None


def fields(what: str, value: object) -> dict[str, Any]:
    """`value`, a JSON object or a table of TOML, as a dict of its own. UserError with `what`."""
    if not isinstance(value, Mapping):
        raise UserError(f"{what} is not an object\n  expected: an object      got: {shown(value)}")
    for name in value:
        text(f"a field's name of {what}", name)
    return dict(value)


def field(what: str, content: Mapping[str, object], name: str) -> Any:
    """A field of an object. UserError when it is not there."""
    if name not in content:
        raise UserError(f"{what} has no field '{name}'\n  got: {shown(list(content))}")
    return content[name]


def parsed_numbers(name: str, text: str, what: str, example: str) -> tuple[int, ...]:
    """The numbers of `what` in a text, which commas separate; a large one is cut to nine digits.

    UserError that names the option `name`, with an example, for another text.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UserError(
            f"'{short(text)}' are no numbers of {what} ({name})\n"
            f"  expected: numbers with commas between them, such as {example}"
        )
    return tuple(int(part[:9]) for part in parts)


def parsed_json(
    document: str | bytes,
    hook: Callable[[list[tuple[str, object]]], object] | None = None,
    *,
    finite: bool = False,
) -> Any:
    """The content of a JSON document of a stranger. ValueError for anything else, also for one
    that is nested too deeply, where `json` raises RecursionError; `finite`: also for NaN, Infinity
    and numbers beyond a float, which Python reads."""
    numbers = {"parse_float": _finite, "parse_constant": _finite} if finite else {}
    try:
        return json.loads(document, object_pairs_hook=hook, **numbers)  # type: ignore[arg-type]
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _finite(number: str) -> float:
    found = float(number)
    if not math.isfinite(found):
        raise ValueError(f"the number {number} is beyond those of floating point")
    return found


def json_content(
    what: str,
    document: str | bytes,
    hook: Callable[[list[tuple[str, object]]], object] | None = None,
) -> Any:
    """The content of a JSON document. UserError with `what` and the place for anything else."""
    try:
        return parsed_json(document, hook)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{what} is not valid JSON: {error.msg}\n  in line {error.lineno}, column {error.colno}"
        ) from error
    except (ValueError, TypeError, MemoryError) as error:  # 5,000 digits; bytes that are no UTF-8
        raise UserError(f"{what} is not valid JSON: {error}") from error


@contextmanager
def from_file(what: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns what an operating system says about a path into a UserError, such as a name that is
    too long, one with a NUL byte, a folder that may not be read. what: "cannot read the recipe".
    """
    name = os.fspath(path)
    try:
        if "\0" in name:  # SQLite, for one, takes what is before it
            raise ValueError("a NUL character")
        os.fsencode(name)
        yield
    except UserError:
        raise
    except (OSError, ValueError) as error:
        found = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(
            f"{what} '{short(name)}'\n"
            f"  expected: a path of this system that may be used so      got: {found}"
        ) from error


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that no file can have is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; a name that no folder can have is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
