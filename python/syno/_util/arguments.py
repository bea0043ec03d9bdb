"""Arguments of public functions, checked where a function begins.

    @checked(path=path, fold_weights=flag)
    def export(operator, path, *, fold_weights=False): ...

The function gets what the checks return. A check takes words for the argument and its value.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from syno._util import checks
from syno._util.errors import UserError

Check = Callable[[str, object], object]
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def checked(**of: Check) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator that checks the arguments of these names wherever they are given."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        names = list(inspect.signature(function).parameters)
        assert of.keys() <= set(names), f"{function.__name__} has no such argument"

        @functools.wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            # More arguments than names are an error of the call itself.
            given = [
                of[name](f"'{name}'", value) if name in of else value
                for name, value in zip(names, args, strict=False)
            ]
            named = {
                name: of[name](f"'{name}'", value) if name in of else value
                for name, value in kwargs.items()
            }
            every = (*given, *args[len(given) :])
            return cast(Callable[..., Result], function)(*every, **named)

        return call

    return decorate


def text(what: str, value: object) -> str:
    """`value`, a text that UTF-8 can hold."""
    return checks.text(what, value)


def texts(what: str, value: object) -> tuple[str, ...]:
    """`value`, some texts without NUL characters, as a tuple."""
    found = tuple(checks.text(f"a part of {what}", each) for each in items(what, value))
    if any("\0" in each for each in found):
        raise UserError(f"{what} holds a NUL character\n  got: {checks.shown(found)}")
    return found


def flag(what: str, value: object) -> bool:
    """`value`, True or False."""
    if not isinstance(value, bool):
        raise UserError(
            f"{what} is not a truth value\n"
            f"  expected: True or False      got: {checks.shown(value)}"
        )
    return value


def path(what: str, value: object) -> Path:
    """`value` as a path that a system can have: text without NUL, and not empty."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise UserError(
            f"{what} is not a path\n"
            f"  expected: a text or a pathlib.Path      got: {checks.shown(value)}"
        )
    name = checks.text(f"{what}, a path,", os.fspath(value))
    if not name or "\0" in name:
        raise UserError(
            f"{what} is not a path of this system\n"
            f"  expected: a text without NUL characters      got: {checks.short(name)!r}"
        )
    return Path(value)


def instance(kind: type, name: str = "") -> Check:
    """A check for objects of a class; name: in words, such as "an operator"."""
    known = name or f"a {kind.__name__}"

    def check(what: str, value: object) -> object:
        if not isinstance(value, kind):
            raise UserError(
                f"{what} is not {known}\n  expected: {known}      got: {type(value).__name__}"
            )
        return value

    return check


def real(what: str, value: object) -> float:
    """`value`, a number."""
    return checks.number(what, value)


def integer(least: int = checks.LEAST, most: int = checks.MOST) -> Check:
    """A check for integers in a range; those of numpy count."""
    return lambda what, value: checks.whole(what, value, least, most)


def optional(check: Check) -> Check:
    """A check that takes None as well."""
    return lambda what, value: None if value is None else check(what, value)


def items(what: str, value: object) -> tuple[object, ...]:
    """`value`, some values, as a tuple."""
    return checks.listed(what.strip("'"), value)


SEED = integer(0, checks.MOST)
