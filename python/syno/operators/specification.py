"""Specifications: the definition of the operators that a search may return."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from syno import _core
from syno._util import checks
from syno._util.checks import shown
from syno._util.errors import UserError

if TYPE_CHECKING:
    from syno._core import LimitDescriptor, SpecificationFields

_FIELDS = (
    "input",
    "output",
    "primary",
    "coefficient",
    "bindings",
    "multiplicities",
    "layer_macs",
    "passed_through",
    "symmetries",
    "limits",
)
Binding = Mapping[str, int]
_T = TypeVar("_T")
# The types of limits in words.
_TYPES = {"int": "an integer", "float": "a number", "bool": "true or false"}
# Changes that remove the constraints on the total costs: these apply only to the layers for which
# they were set.
NO_TOTALS = {"min_macs": 0, "max_macs": 0, "min_params": 0, "max_params": 0}


class Specification:
    """Shapes, variables with budgets, bindings and constraints of operators, as a value.

    Args:
        input, output: shapes, such as "[N, C_in: unordered, H, H]".
        primary: large variables with budgets, such as "C_in: 2"; they are never in a denominator.
        coefficient: small variables with values and budgets, such as "k=3: 2".
        bindings: sizes of the layers, such as {"C_in": 64, "C_out": 64, "H": 56}. Variables with a
            value may be omitted, and also those of passed-through dimensions only.
        multiplicities: number of layers of each binding; default 1.
        layer_macs: total MACs of the layers of each binding, which are their weights in `min_fit`.
        passed_through: pairs (output dimension, input dimension) that no primitive touches, such
            as the batch.
        symmetries: of the data (docs/specification.md), such as ["mirror 3"] for images whose
            width may be mirrored, and "exchange 2 3" for height and width. Dimensions are numbers
            from 0.
        limits: constraints such as max_depth=8; `Specification.limit_names()` lists them.

    Raises:
        UserError: an argument is malformed, or arguments contradict each other.
    """

    __slots__ = ("_core",)

    def __init__(
        self,
        input: str,
        output: str,
        primary: Sequence[str],
        coefficient: Sequence[str] = (),
        *,
        bindings: Iterable[Binding | str] = (),
        multiplicities: Sequence[int] | None = None,
        layer_macs: Sequence[float] | None = None,
        passed_through: Iterable[tuple[int, int]] = (),
        symmetries: Sequence[str] = (),
        **limits: float,
    ) -> None:
        self._core = _core.Specification(
            _text("input", input),
            _text("output", output),
            _texts("primary", primary),
            _texts("coefficient", coefficient),
            _entries("bindings", bindings, checked_binding),
            _entries("multiplicities", multiplicities, partial(_whole, "multiplicities")),
            _entries("layer_macs", layer_macs, partial(_number, "layer_macs")),
            _entries("passed_through", passed_through, _pair),
            _texts("symmetries", symmetries),
            {name: _limit(name, value) for name, value in limits.items()},
        )

    @classmethod
    def preset(cls, name: str, **changes: object) -> Specification:
        """Return a specification by name, such as "paper/resnet18".

        Args:
            name: the name of the preset.
            changes: arguments of the constructor that replace those of the preset. New bindings
                remove the multiplicities, layer_macs and constraints on MACs of the preset, which
                belong to its layers.

        Raises:
            UserError: the preset does not exist; the message lists the presets.
        """
        fields = _core.preset_source(_text("preset", name))
        if "bindings" in changes:
            fields["limits"] |= NO_TOTALS
        return cls._from_fields(fields, changes)

    @staticmethod
    def presets() -> dict[str, str]:
        """Return the descriptions of the presets by name."""
        return {name: _core.preset_doc(name) for name in _core.preset_names()}

    @staticmethod
    def limit_names() -> list[str]:
        """Return the names of the constraints."""
        return [descriptor["name"] for descriptor in _core.option_descriptors()]

    def changed_coefficients(self, given: Sequence[str]) -> list[str]:
        """Return the coefficients with other values for some, such as "g=4" or "g=4: 2".

        Args:
            given: the changes; a coefficient without a budget keeps its own.

        Raises:
            UserError: for an unknown coefficient, and for a text of another form.
        """
        found = {text.partition("=")[0].strip(): text for text in self._core.source["coefficient"]}
        for text in given:
            name, equals, rest = (part.strip() for part in text.partition("="))
            if not equals or name not in found:
                raise UserError(
                    f"there is no coefficient to change by '{checks.short(text)}'\n"
                    f"  expected: one of {', '.join(found.values())} with another value"
                )
            value, colon, budget = rest.partition(":")
            budget = budget if colon else found[name].partition(":")[2]
            found[name] = f"{name}={value.strip()}: {budget.strip()}"
        return list(found.values())

    def with_changes(self, **changes: object) -> Specification:
        """Return a copy with changes; new bindings remove multiplicities and layer_macs."""
        return self._from_fields(self._core.source, changes)

    @classmethod
    def _from_fields(
        cls, fields: SpecificationFields, changes: Mapping[str, object]
    ) -> Specification:
        merged: dict[str, Any] = {**fields, **fields["limits"]}
        del merged["limits"]
        if "bindings" in changes:
            merged |= {"multiplicities": None, "layer_macs": None}
        return cls(**merged | dict(changes))

    @property
    def input(self) -> str:
        """The input shape."""
        return str(self._core.source["input"])

    @property
    def output(self) -> str:
        """The output shape."""
        return str(self._core.source["output"])

    @property
    def primary(self) -> list[str]:
        """Large variables with budgets."""
        return list(self._core.source["primary"])

    @property
    def coefficient(self) -> list[str]:
        """Small variables with values and budgets."""
        return list(self._core.source["coefficient"])

    @property
    def variables(self) -> list[str]:
        """The names of all variables, in canonical order."""
        return self._core.variables

    @property
    def bindings(self) -> list[dict[str, int]]:
        """The sizes of the layers as given; `complete` adds default values."""
        return list(self._core.source["bindings"]) or ([{}] if self._core.full_bindings else [])

    @property
    def full_bindings(self) -> list[dict[str, int]]:
        """The sizes of the layers with the values of all variables."""
        return self._core.full_bindings

    @property
    def multiplicities(self) -> list[int]:
        """The number of layers of each binding."""
        return self._core.multiplicities

    @property
    def passed_through(self) -> list[tuple[int, int]]:
        """Pairs (output dimension, input dimension) that no primitive touches."""
        return list(self._core.source["passed_through"])

    @property
    def symmetries(self) -> list[str]:
        """Changes of input and output that the data does not notice, such as "mirror 3"."""
        return list(self._core.source["symmetries"])

    @property
    def limits(self) -> dict[str, float]:
        """All constraints by name."""
        return dict(self._core.source["limits"])

    @property
    def key(self) -> str:
        """Hash of the content, 32 hexadecimal digits."""
        return self._core.key

    @property
    def defaults(self) -> dict[str, int]:
        """Values of the variables that a binding may leave out."""
        return self._core.defaults

    def complete(self, binding: Binding | str) -> dict[str, int]:
        """Return `binding` with the default values of missing variables."""
        return self._core.defaults | checked_binding(binding)

    def to_json(self) -> str:
        """Return the content as JSON; `from_json` reads it."""
        fields: dict[str, object] = {**self._core.source}
        if not fields["symmetries"]:  # as files of earlier versions
            del fields["symmetries"]
        return json.dumps(fields, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Specification:
        """Read the result of `to_json`.

        Raises:
            UserError: the text is malformed.
        """
        fields = checks.json_content("the specification", text)
        if not isinstance(fields, dict):
            raise UserError("the specification's JSON is not an object")
        for name in ("input", "output", "primary"):
            if name not in fields:
                raise UserError(f"the specification's JSON has no field '{name}'")
        unknown = sorted(set(fields) - set(_FIELDS))
        if unknown:
            raise UserError(
                f"unknown field '{unknown[0]}' in the specification's JSON\n"
                f"  known fields: {', '.join(_FIELDS)}"
            )
        limits = fields.pop("limits", {})
        if not isinstance(limits, dict):
            raise UserError("the field 'limits' of the specification's JSON is not an object")
        for name in limits:
            _descriptor(name)
        try:
            return cls(**fields, **limits)
        except UserError as error:
            raise UserError(f"{error}\n  in the specification's JSON") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[object, ...]:
        return Specification.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        layers = sum(self.multiplicities)
        return (
            f'<Specification "{self._core.text}", '
            f"{len(self.full_bindings)} bindings of {layers} layers>"
        )


def read_specification(content: object) -> Specification:
    """Read a specification from what a store or a file of operators holds: its JSON, or the text of
    it."""
    return Specification.from_json(content if isinstance(content, str) else json.dumps(content))


def checked_binding(binding: Binding | str) -> dict[str, int]:
    """A binding as a dict of positive ints, from a mapping or "C_in=64, H=56".

    Raises UserError that names the variable which is wrong.
    """
    if isinstance(binding, str):
        return _core.parse_binding(checks.text("a binding", binding))
    if not isinstance(binding, Mapping):
        raise UserError(
            "a binding is a dict of sizes by variable\n"
            f'  expected: {{"C_in": 64, "H": 56}}      got: {shown(binding)}'
        )
    values = {}
    for name, value in binding.items():
        if not isinstance(name, str):
            raise UserError(f"a variable's name in a binding is a string, got {shown(name)}")
        checks.text("a variable's name in a binding", name)
        whole = checks.as_whole(value)
        if whole is None or not 1 <= whole <= checks.MOST:
            raise UserError(
                f"variable '{name}' cannot be bound to {shown(value)}\n"
                f"  expected: a positive integer      got: {shown(value)}"
            )
        values[name] = whole
    return values


def _text(name: str, value: object) -> str:
    return checks.text(f"'{name}'", value)


def _texts(name: str, value: object) -> list[str]:
    if isinstance(value, str):
        raise UserError(
            f"'{name}' is one string\n"
            f'  expected: a list of variables with budgets, such as ["H: 2"]      got: "{value}"'
        )
    return _entries(name, value, partial(_text, name))


def _entries(name: str, value: object, read: Callable[[Any], _T]) -> list[_T]:
    """What `read` makes of each entry of a list. UserError with the number of the entry."""
    found = []
    for number, item in enumerate(_iterable(name, value), 1):
        try:
            found.append(read(item))
        except UserError as error:
            raise UserError(f"{error}\n  in entry {number} of '{name}'") from None
    return found


def _iterable(name: str, value: object) -> list[object]:
    if value is None:
        return []
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise UserError(f"'{name}' is not a list\n  expected: a list      got: {shown(value)}")
    return list(checks.listed(name, value))


def _whole(name: str, value: object) -> int:
    if checks.as_whole(value) is None:
        raise UserError(
            f"'{name}' has {shown(value)}\n  expected: integers      got: {shown(value)}"
        )
    return checks.whole(f"an integer of '{name}'", value)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise UserError(
            f"'{name}' has {shown(value)}\n  expected: numbers      got: {shown(value)}"
        )
    return checks.number(f"a number of '{name}'", value)


def _pair(value: object) -> tuple[int, int]:
    items = _iterable("passed_through", value)
    if len(items) != 2:
        raise UserError(
            "'passed_through' holds pairs (output dimension, input dimension)\n"
            f"  expected: [(0, 0)]      got: {shown(value)}"
        )
    output, input_ = (_whole("passed_through", item) for item in items)
    for dim in (output, input_):
        checks.whole("a dimension of 'passed_through'", dim, -checks.MOST_INT, checks.MOST_INT)
    return output, input_


def _limit(name: str, value: object) -> float:
    descriptor = _descriptor(name)
    kind = descriptor["type"]
    if isinstance(value, bool) != (kind == "bool") or not isinstance(
        value, (bool, int, float, np.number)
    ):
        least = "" if kind == "bool" else f" of at least {descriptor['minimum']:g}"
        raise UserError(
            f"limit '{name}' cannot be {shown(value)}\n"
            f"  expected: {_TYPES[kind]}{least}      got: {shown(value)}"
        )
    return float(value) if kind == "bool" else checks.number(f"limit '{name}'", value)


def _descriptor(name: str) -> LimitDescriptor:
    """A limit's descriptor. UserError for a name that is no limit."""
    descriptors = {d["name"]: d for d in _core.option_descriptors()}
    if name not in descriptors:
        raise UserError(
            f"unknown argument or limit '{checks.short(name)}' of a specification\n"
            f"  known limits: {', '.join(descriptors)}"
        )
    return descriptors[name]
