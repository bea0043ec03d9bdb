"""Options as frozen dataclasses: each field is declared once, with its range and its meaning.

The declaration gives the name in Python, the check of the value, and what the command line shows. A
budget that C++ reads is declared there: `described` makes a field of its descriptor.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """One option: its type and range, and how the command line shows it.

    kind: `int`, `float`, `bool`, `str`, `Path`, or another type, which is not checked here.
    optional: whether None is a value; many: whether it is a tuple of values.
    minimum, maximum: the range; above: whether the minimum itself is too small.
    choices: the texts that are allowed. unset: what None means, in a word or two.
    names: on the command line, such as "-o/--out"; "" where the name of the field is taken, and
    "OP" for an argument without a name. metavar: what a value is called there.
    parse: makes a value of a text. gather: makes the value of the field of all that were given.
    shown: whether the command line has it at all. section: its heading in help.
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
        """The value as the field holds it. UserError that names the option."""
        if value is None and self.optional:
            return None
        if self.many:
            if isinstance(value, str):
                return checks.names(self.name, value)
            return tuple(cast(Iterable[object], value))
        what = f"'{self.name}'"
        if self.kind == "int":
            least = checks.LEAST if self.minimum is None else int(self.minimum)
            most = checks.MOST if self.maximum is None else int(self.maximum)
            return checks.whole(what, value, least, most)
        if self.kind == "float":
            return self._checked_number(what, value)
        if self.kind == "bool" and not isinstance(value, bool):
            raise UserError(f"{what} is True or False      got: {checks.shown(value)}")
        if self.choices and value not in self.choices:
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
    metavar: str = "",
    parse: Callable[[str], object] | None = None,
    gather: Callable[[Sequence[object]], object] | None = None,
    shown: bool = True,
) -> T:
    """Declare a field of `Options`; its type and name come from the annotation."""
    declared = Option(
        doc,
        default=default,
        minimum=minimum,
        maximum=maximum,
        above=above,
        choices=tuple(choices),
        unset=unset,
        names=names,
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
    """Declare a field that C++ describes; `own` takes the default of the descriptor."""
    found = next(each for each in descriptors if each["name"] == name)
    words = str(found["doc"])
    doc, least = f"{words[0].upper()}{words[1:]}.", cast(float, found["minimum"])
    made = Option(doc, default=default, minimum=least)
    made = dataclasses.replace(made, **more)  # type: ignore[arg-type]
    return field(default=default, metadata={"option": made})


def own(descriptors: Sequence[Descriptor], name: str) -> int:
    """The default of a whole number that C++ describes."""
    return cast(int, next(each["default"] for each in descriptors if each["name"] == name))


def group(kind: type[T], *only: str, without: Sequence[str] = ()) -> T:
    """Declare a field that holds other options: all of `kind`, or those named."""
    metadata = {"group": kind, "only": only, "without": tuple(without)}
    return field(default_factory=kind, metadata=metadata)


def mapping(descriptors: Callable[[], Sequence[Descriptor]]) -> Mapping[str, int | float | bool]:
    """Declare a field that holds the given ones of some options that C++ describes, by name."""
    return cast(
        Mapping[str, "int | float | bool"],
        field(default_factory=dict, metadata={"mapping": descriptors}),
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """Some options that belong together; they are checked when they are made."""

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in declared(type(self)):
            value = getattr(self, each.name)
            checked = each.checked(value)
            if checked is not value:
                object.__setattr__(self, each.name, checked)

    def refuse(self, why: str, *names: str) -> None:
        """UserError where one of the options has another value than its default."""
        for each in declared(type(self)):
            value = getattr(self, each.name)
            if each.name in names and value != each.default:
                raise UserError(
                    f"'{each.name}' of {type(self).__name__} has no effect here: {why}\n"
                    f"  expected: {each.name} left out      got: {checks.shown(value)}"
                )


def declared(kind: type) -> list[Option]:
    """The options of a class that are fields of its own, in their order."""
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
    """The option of a descriptor, None where it is not given."""
    default = found["default"]
    shown = {True: "yes", False: "no", None: "none"}.get(cast(bool, default), str(default))
    return Option(
        str(found["doc"]),
        name=str(found["name"]),
        kind=str(found["type"]),
        default=None,
        optional=True,
        minimum=cast("float | None", found["minimum"]),
        unset=shown if isinstance(default, bool) else str(default),
        metavar="yes|no" if isinstance(default, bool) else str(found["type"]).upper(),
        section=section,
    )


def grouped(
    **groups: type[Options],
) -> Callable[[Callable[Arguments, T]], Callable[Arguments, T]]:
    """Refuse unknown arguments of a function by naming the group of options that has them."""

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
    """An amount of memory in bytes, from a text such as `500M` or `2G`."""
    found = re.fullmatch(r"(\d{1,18})\s*([kmg]?)b?", text.strip().lower())
    if found is None or int(found[1]) == 0 or int(found[1]) >= 2**32:
        raise UserError(
            f"'{checks.short(text)}' is no amount of memory\n"
            "  expected: bytes, with a unit if you like, such as 500M or 2G"
        )
    return int(found[1]) * _UNITS[found[2]]


def pair(words: str, expected: str) -> Callable[[str], tuple[int, int]]:
    """What reads two numbers with a colon between them, such as `0:0`."""

    def parse(text: str) -> tuple[int, int]:
        first, colon, second = text.partition(":")
        parts = [part.strip() for part in (first, second)]
        if not colon or not all(part.isdecimal() and len(part) <= 9 for part in parts):
            raise UserError(f"'{text}' is {words}\n  expected: {expected}")
        return int(parts[0]), int(parts[1])

    return parse
