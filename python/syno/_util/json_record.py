"""Data classes from JSON: each field is there and has its type, or a UserError names it."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from syno._util import checks
from syno._util.errors import InternalError, UserError

T = TypeVar("T")
Check = Callable[[Any], bool]


def json_record(kind: type[T], what: str, content: object, *, infinite: Sequence[str] = ()) -> T:
    """A data class from a JSON object; lists become tuples where the class has tuples.

    Args:
        kind: the data class. Its fields are texts, integers, numbers, truth values, None, and
            tuples, lists and mappings of them.
        what: the object in words.
        content: the object.
        infinite: fields whose numbers may be infinite or none (NaN).

    Raises:
        UserError: a field is missing, unknown, or of another type.
    """
    given = checks.fields(what, content)
    known = _fields(kind)  # type: ignore[arg-type]
    required = [name for name, (_, _, is_required) in known.items() if is_required]
    if not set(required) <= given.keys() <= known.keys():
        raise UserError(
            f"{what} has other fields\n"
            f"  expected: {', '.join(known)}      got: {checks.shown(list(given))}"
        )
    for name, value in given.items():
        check, hint, _ = known[name]
        if not (check(value) and (name in infinite or _is_finite(value))):
            raise UserError(
                f"'{name}' of {what} is of another type\n"
                f"  expected: {hint}      got: {checks.shown(value)}"
            )
        if isinstance(value, list) and "tuple" in hint:
            given[name] = tuple(value)
    return kind(**given)


@functools.cache
def _fields(kind: type) -> dict[str, tuple[Check, str, bool]]:
    """For each field its check, its type in words, and whether it has no default."""
    hints = typing.get_type_hints(kind)
    found = {}
    for each in dataclasses.fields(kind):
        required = each.default is each.default_factory is dataclasses.MISSING
        words = str(each.type) if isinstance(each.type, str) else each.type.__name__
        found[each.name] = (_check(hints[each.name]), words, required)
    return found


def _check(hint: Any) -> Check:
    if hint is Any or hint is object:
        return lambda _: True
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        checks_ = [_check(each) for each in arguments]
        return lambda value: any(check(value) for check in checks_)
    if origin in (tuple, list, Sequence):
        one = _check(arguments[0])
        return lambda value: isinstance(value, list) and all(map(one, value))
    if origin in (dict, Mapping):
        value_check = _check(arguments[1])
        return lambda value: isinstance(value, dict) and all(map(value_check, value.values()))
    raise InternalError(f"no JSON of the type {hint} is read")


_PLAIN: dict[Any, Check] = {
    str: lambda value: isinstance(value, str),
    int: checks.is_whole,
    float: checks.is_number,
    bool: lambda value: isinstance(value, bool),
    type(None): lambda value: value is None,
}


def _is_finite(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_finite, value))
    if isinstance(value, int):
        return isinstance(value, bool) or checks.is_whole(value)
    return not isinstance(value, float) or math.isfinite(value)
