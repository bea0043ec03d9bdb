"""Options as frozen dataclasses: each field is declared once, with its range and its meaning.

The declaration defines the name in Python, the check of the value, and the help on the command
line. A limit that C++ uses is declared in C++: `described` creates a field from its descriptor.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, ClassVar, ParamSpec, TypeVar, cast

from syno._util import checks
from syno._util.errors import UserError

T = TypeVar("T")
Arguments = ParamSpec("Arguments")
Descriptor = Mapping[str, object]  # name, type, default, minimum and doc, as C++ has them

REQUIRED = object()  # the default of an option that has none


@dataclass(frozen=True)
class Option:
    """One option: its type and range, and its form on the command line.

    Args:
        doc: the help text.
        name: the name of the field.
        kind: `int`, `float`, `bool`, `str`, `Path`, or another type, which is not checked here.
        default: the default value; `REQUIRED` if there is none.
        optional: whether None is allowed.
        many: whether the value is a tuple of values.
        minimum, maximum: the range; `above`: whether the minimum itself is excluded.
        choices: the allowed texts.
        unset: the meaning of None, in a few words.
        names: the names on the command line, such as "-o/--out"; "" for the name of the field, and
            "OP" for a positional argument.
        former: an earlier name on the command line, which is accepted but not shown.
        metavar: the placeholder of the value in the help.
        parse: converts a text to a value.
        gather: converts all given values to the value of the field.
        shown: whether the command line has the option.
        section: the heading of the option in the help.
    """

    doc: str
    name: str = ""
    kind: str = "str"
    default: object = REQUIRED
    optional: bool = False
    many: bool = False
    minimum: float | None = None
    maximum: float | None = None
    above: bool = False
    choices: tuple[str, ...] = ()
    unset: str = ""
    names: str = ""
    former: str = ""
    metavar: str = ""
    parse: Callable[[str], object] | None = None
    gather: Callable[[Sequence[object]], object] | None = None
    shown: bool = True
    section: str = ""

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is REQUIRED

    @cached_property
    def flag(self) -> str:
        """The name on the command line."""
        return self.names or f"--{self.name.replace('_', '-')}"

    def checked(self, value: object) -> object:
        """Return the value in the form of the field; raise a UserError that names the option."""
        if value is None and self.optional:
            return None
        if self.many:
            if isinstance(value, str):
                return checks.names(self.name, value)
            return checks.listed(self.name, value)
        what = f"'{self.name}'"
        if self.kind == "int":
            least = checks.LEAST if self.minimum is None else int(self.minimum)
            most = checks.MOST if self.maximum is None else int(self.maximum)
            return checks.whole(what, value, least, most)
        if self.kind == "float":
            return self._checked_number(what, value)
        if self.kind == "bool" and not isinstance(value, bool):
            raise UserError(f"{what} is True or False      got: {checks.shown(value)}")
        if self.choices and not (isinstance(value, str) and value in self.choices):
            known = ", ".join(self.choices)
            raise UserError(f"{what} is one of {known}      got: {checks.shown(value)}")
        return value

    def _checked_number(self, what: str, value: object) -> float:
        number = checks.number(what, value)
        low, high = self.minimum, self.maximum
        too_small = low is not None and (number <= low if self.above else number < low)
        if math.isnan(number) or too_small or (high is not None and number > high):
            bounds = [] if low is None else [f"{'above' if self.above else 'at least'} {low:g}"]
            bounds += [] if high is None else [f"at most {high:g}"]
            raise UserError(
                f"{what} is a number {' and '.join(bounds)}, got {number:g}\n"
                f"  expected: {' and '.join(bounds) or 'a number'}      got: {number:g}"
            )
        return number


def option(
    doc: str,
    default: T,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: bool = False,
    choices: Sequence[str] = (),
    unset: str = "",
    names: str = "",
    former: str = "",
    metavar: str = "",
    parse: Callable[[str], object] | None = None,
    gather: Callable[[Sequence[object]], object] | None = None,
    shown: bool = True,
) -> T:
    """Declare a field of `Options`; the annotation defines its type and name."""
    declared = Option(
        doc,
        default=default,
        minimum=minimum,
        maximum=maximum,
        above=above,
        choices=tuple(choices),
        unset=unset,
        names=names,
        former=former,
        metavar=metavar,
        parse=parse,
        gather=gather,
        shown=shown,
    )
    return field(default=default, metadata={"option": declared})


def required(doc: str, *, names: str = "", metavar: str = "") -> Any:
    """Declare a field without a default; `names` without dashes makes it an argument."""
    return field(metadata={"option": Option(doc, names=names, metavar=metavar)})


def described(descriptors: Sequence[Descriptor], name: str, default: T, **more: object) -> T:
    """Declare a field from a descriptor of C++; `own` returns the default of a descriptor."""
    found = next(each for each in descriptors if each["name"] == name)
    words = str(found["doc"])
    doc, least = f"{words[0].upper()}{words[1:]}.", cast(float, found["minimum"])
    made = Option(doc, default=default, minimum=least)
    made = dataclasses.replace(made, **more)  # type: ignore[arg-type]
    return field(default=default, metadata={"option": made})


def own(descriptors: Sequence[Descriptor], name: str) -> int:
    """Return the default of an integer option that C++ describes."""
    return cast(int, next(each["default"] for each in descriptors if each["name"] == name))


def group(kind: type[T], *only: str, without: Sequence[str] = ()) -> T:
    """Declare a field that holds other options: all options of `kind`, or the named ones."""
    metadata = {"group": kind, "only": only, "without": tuple(without)}
    return field(default_factory=kind, metadata=metadata)


def mapping(descriptors: Callable[[], Sequence[Descriptor]]) -> Mapping[str, int | float | bool]:
    """Declare a field for options that C++ describes; it holds the given ones by name."""
    return cast(
        Mapping[str, "int | float | bool"],
        field(default_factory=dict, metadata={"mapping": descriptors}),
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options that belong together; they are checked when the object is created."""

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in declared(type(self)):
            value = getattr(self, each.name)
            checked = each.checked(value)
            if checked is not value:
                object.__setattr__(self, each.name, checked)

    def refuse(self, why: str, *names: str) -> None:
        """Raise a UserError if one of the named options does not have its default."""
        for each in declared(type(self)):
            value = getattr(self, each.name)
            if each.name in names and value != each.default:
                raise UserError(
                    f"'{each.name}' of {type(self).__name__} has no effect here: {why}\n"
                    f"  expected: {each.name} left out      got: {checks.shown(value)}"
                )


def declared(kind: type) -> list[Option]:
    """Return the options that a class declares itself, in order."""
    return [
        _typed(each.metadata["option"], each.name, str(each.type), kind)
        for each in dataclasses.fields(kind)
        if "option" in each.metadata
    ]


def _typed(found: Option, name: str, annotation: str, owner: type) -> Option:
    many = re.fullmatch(r"tuple\[(.+), \.\.\.\]", annotation)
    kind = many[1] if many else annotation.removesuffix(" | None")
    section = found.section or getattr(owner, "section", "")
    optional = annotation.endswith("| None")
    return dataclasses.replace(
        found, name=name, kind=kind, many=bool(many), optional=optional, section=section
    )


def of_descriptor(found: Descriptor, section: str) -> Option:
    """Return the option of a descriptor; its value is None if it is not given."""
    default = found["default"]
    is_flag = isinstance(default, bool)
    return Option(
        str(found["doc"]),
        name=str(found["name"]),
        kind=str(found["type"]),
        default=None,
        optional=True,
        minimum=cast("float | None", found["minimum"]),
        unset=("yes" if default else "no") if is_flag else str(default),
        metavar="yes|no" if is_flag else str(found["type"]).upper(),
        section=section,
    )


def grouped(
    **groups: type[Options],
) -> Callable[[Callable[Arguments, T]], Callable[Arguments, T]]:
    """Refuse unknown arguments of a function, and name the group of options that has them."""

    def decorate(function: Callable[Arguments, T]) -> Callable[Arguments, T]:
        code = function.__code__  # type: ignore[attr-defined]
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

        @wraps(function)
        def checked(*given: Arguments.args, **named: Arguments.kwargs) -> T:
            for name in named:
                if name not in known:
                    _refuse_argument(f"syno.{function.__name__}", name, groups, known)
            return function(*given, **named)

        return checked

    return decorate


def _refuse_argument(
    function: str, name: str, groups: Mapping[str, type[Options]], known: Sequence[str]
) -> None:
    for argument, kind in groups.items():
        if name in {each.name for each in dataclasses.fields(kind)}:
            raise UserError(
                f"{function} has no argument '{name}'\n"
                f"  what to do: {argument}=syno.{kind.__name__}({name}=...)"
            )
    raise UserError(f"{function} has no argument '{name}'\n  expected: one of {', '.join(known)}")


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def memory_size(text: str) -> int:
    """Parse an amount of memory, such as `500M` or `2G`; return it in bytes."""
    found = re.fullmatch(r"(\d{1,18})\s*([kmg]?)b?", text.strip().lower())
    if found is None or int(found[1]) == 0 or int(found[1]) >= 2**32:
        raise UserError(
            f"'{checks.short(text)}' is not an amount of memory\n"
            "  expected: a number of bytes, optionally with a unit, such as 500M or 2G"
        )
    return int(found[1]) * _UNITS[found[2]]


def disk_size(text: str) -> int:
    """Parse an amount as `memory_size` does, or 0 for none."""
    return 0 if text.strip() == "0" else memory_size(text)


def pair(words: str, expected: str) -> Callable[[str], tuple[int, int]]:
    """Return a parser of two numbers with a colon between them, such as `0:0`."""

    def parse(text: str) -> tuple[int, int]:
        first, colon, second = text.partition(":")
        parts = [part.strip() for part in (first, second)]
        if not colon or not all(part.isdecimal() and len(part) <= 9 for part in parts):
            raise UserError(f"'{text}' is {words}\n  expected: {expected}")
        return int(parts[0]), int(parts[1])

    return parse
