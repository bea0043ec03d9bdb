"""Options as frozen dataclasses: each field is declared once, with its range and its meaning.

The declaration defines the name in Python, the check of the value, and the help on the command
line. A limit that C++ uses is declared in C++: `described` creates a field from its descriptor.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, TypeVar, cast

from syno._util import checks
from syno._util.errors import UserError

T = TypeVar("T")
Descriptor = Mapping[str, object]  # name, type, default, minimum and doc, as C++ has them

REQUIRED = object()  # the default of an option that has none
_DEFAULT = object()


@dataclass(frozen=True)
class Stored:
    """How a study stores an option (`syno._util.declaration.document`).

    Args:
        name: the name in the document; "" for that of the field.
        always: whether every document has it. Otherwise it is left out where it has the value that
            a document without it stands for, as in stores from before the option.
        absent: the value that None, or a document without the option, stands for. Default: that of
            the option.
    """

    name: str = ""
    always: bool = False
    absent: object = _DEFAULT


@dataclass(frozen=True)
class Option:
    """One option: its type and range, and its form on the command line.

    Args:
        doc: the help text.
        more: what the documentation of Python adds to it.
        name: the name of the field.
        kind: `int`, `float`, `bool`, `str`, `Path`, or another type, which is not checked here.
        default: the default value; `REQUIRED` if there is none.
        optional: whether None is allowed.
        many: whether the value is a tuple of values; `lone`: whether it may also be one text.
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
        stored: how a study stores it; None if it does not.
    """

    doc: str
    more: str = ""
    name: str = ""
    kind: str = "str"
    default: object = REQUIRED
    optional: bool = False
    many: bool = False
    lone: bool = False
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
    stored: Stored | None = None

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is REQUIRED

    @cached_property
    def flag(self) -> str:
        """The name on the command line."""
        return self.names or f"--{self.name.replace('_', '-')}"

    @property
    def stored_name(self) -> str:
        """The name in the document of a study."""
        return (self.stored and self.stored.name) or self.name

    @property
    def absent(self) -> object:
        """The value that a document without the option stands for."""
        stored = self.stored
        return self.default if stored is None or stored.absent is _DEFAULT else stored.absent

    def checked(self, value: object) -> object:
        """Return the value in the form of the field; raise a UserError that names the option."""
        if value is None and self.optional:
            return None
        if self.many:
            return self._checked_list(value)
        what = f"'{self.name}'"
        if self.kind == "int":
            least = checks.LEAST if self.minimum is None else int(self.minimum)
            most = checks.MOST if self.maximum is None else int(self.maximum)
            return checks.whole(what, value, least, most)
        if self.kind == "float":
            return self._checked_number(what, value)
        if self.kind == "bool" and not isinstance(value, bool):
            raise UserError(f"{what} is True or False      got: {checks.shown(value)}")
        return self._chosen(what, value)

    def _checked_list(self, value: object) -> object:
        what = f"'{self.name}'"
        if self.choices:
            return tuple(self._chosen(what, each) for each in checks.names(self.name, value))
        if self.lone and isinstance(value, str):
            return (checks.text(what, value),)
        if self.lone or isinstance(value, str):
            return checks.names(self.name, value)
        return checks.listed(self.name, value)

    def _chosen(self, what: str, value: object) -> object:
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
    more: str = "",
    stored: Stored | None = None,
) -> T:
    """Declare a field of `Options`; the annotation defines its type and name."""
    declared = Option(
        doc,
        more,
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
        stored=stored,
    )
    return field(default=default, metadata={"option": declared})


def argument(doc: str, default: T, *, unset: str = "") -> T:
    """Declare an argument of a Python function, which the command line does not have."""
    return option(doc, default, unset=unset, shown=False)


def needed(doc: str) -> dict[str, Option]:
    """Return the metadata of a `dataclasses.field` for an argument without a default."""
    return {"option": Option(doc, shown=False)}


def like(kind: type, name: str, **changes: Any) -> Any:
    """Declare a field as another class has it; changes: what differs, such as the default."""
    made = dataclasses.replace(next(e for e in declared(kind) if e.name == name), **changes)
    found = {"metadata": {"option": made}}
    return field(**found) if made.required else field(default=made.default, **found)  # type: ignore[call-overload]


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


def mapping(
    descriptors: Callable[[], Sequence[Descriptor]], doc: str = ""
) -> Mapping[str, int | float | bool]:
    """Declare a field for options that C++ describes; it holds the given ones by name."""
    return cast(
        Mapping[str, "int | float | bool"],
        field(default_factory=dict, metadata={"mapping": descriptors, "doc": doc}),
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options that belong together; they are checked when the object is created."""

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, kind in groups(type(self)).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, kind())
        for each in declared(type(self)):
            value = getattr(self, each.name)
            checked = each.checked(value)
            if checked is not value:
                object.__setattr__(self, each.name, checked)

    def keys(self) -> Iterator[str]:
        """The names of the options: `**options` passes them to a function."""
        return (each.name for each in dataclasses.fields(self))

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

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
    return _declared(cast(Hashable, kind))


@cache
def _declared(given: Hashable) -> list[Option]:
    kind = cast(type, given)
    return [
        _typed(each.metadata["option"], each.name, str(each.type), kind)
        for each in dataclasses.fields(kind)
        if "option" in each.metadata
    ]


def _typed(found: Option, name: str, annotation: str, owner: type) -> Option:
    lone = re.fullmatch(r"str \| Sequence\[(.+)\]", annotation)
    many = lone or re.fullmatch(r"tuple\[(.+), \.\.\.\]", annotation)
    kind = many[1] if many else annotation.removesuffix(" | None")
    section = found.section or getattr(owner, "section", "")
    optional = annotation.endswith("| None")
    made = dataclasses.replace(found, name=name, kind=kind, optional=optional, section=section)
    return dataclasses.replace(made, many=bool(many), lone=bool(lone))


def groups(kind: type) -> dict[str, type[Options]]:
    """Return the classes of the groups of options that a class has, by the names of the fields."""
    return {f.name: f.metadata["group"] for f in dataclasses.fields(kind) if "group" in f.metadata}


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


_MOST_DIGITS = 18  # of an option of a model


def model_numbers(pairs: Sequence[object]) -> dict[str, int | str]:
    """Parse options given as NAME=NUMBER, or weights=PATH."""
    found: dict[str, int | str] = {}
    for pair in map(str, pairs):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if name == "weights" and value:
            found[name] = value
        elif equals and value.isdecimal() and len(value) <= _MOST_DIGITS:
            found[name] = int(value)
        else:
            raise UserError(
                f"cannot read the model option '{pair}'\n"
                "  expected: NAME=NUMBER, such as width=16, or weights=PATH"
            )
    return found
