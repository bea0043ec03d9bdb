"""The JSON form of an operator, for programs that read and write operators without Syno.

    {"out": [dim...], "in": [dim...], "steps": [step...], "match": [name...]}

A dim is {"size": "s^-1*C_in", "unordered": false}, with "causal": true for a sequence. Output
iterators are o0, o1, ...; other coordinates may have any name on the way in and have the canonical
ones on the way out. `match` names the coordinate each input dimension is read at. Steps:

    {"op": "split", "in": [i, j], "out": c}
    {"op": "merge", "in": i, "block": B, "out": [q, m]}
    {"op": "shift", "in": i, "d": 1, "out": c}
    {"op": "expand", "in": i}
    {"op": "unfold", "in": [i, j], "out": c}
    {"op": "stride", "in": i, "S": S, "out": c}
    {"op": "reduce", "size": n, "out": r}
    {"op": "contract", "dims": [[name, role]...]}

with "causal": true for a window that ends at its position, and roles keep, drop and join.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypedDict, TypeGuard, TypeVar, cast

from syno import _core
from syno._util import checks
from syno._util.errors import UserError

_T = TypeVar("_T")


class DimForm(TypedDict, total=False):
    """A dimension; `causal` is there when it is true."""

    size: str
    unordered: bool
    causal: bool


StepForm = TypedDict(
    "StepForm",
    {
        "op": str,
        "in": str | list[str],
        "out": str | list[str],
        "block": str,
        "S": str,
        "size": str,
        "d": int,
        "causal": bool,
        "dims": list[list[str]],
    },
    total=False,
)
OperatorForm = TypedDict(
    "OperatorForm",
    {"out": list[DimForm], "in": list[DimForm], "steps": list[StepForm], "match": list[str]},
)

_QUOTED = re.compile(r"'(\w+)'")
_TOP = ("out", "in", "steps", "match")
_DIM = ("size", "unordered", "causal")
_ROLES = ("keep", "drop", "join")

# Fields of each step: (name, kind); kinds are what _Reader._field knows. "?" marks an optional one.
_STEPS: dict[str, dict[str, str]] = {
    "split": {"in": "pair", "out": "new"},
    "merge": {"in": "one", "block": "size", "out": "new pair"},
    "shift": {"in": "one", "d": "integer", "out": "new"},
    "expand": {"in": "one"},
    "unfold": {"in": "pair", "causal": "flag", "out": "new"},
    "stride": {"in": "one", "S": "size", "out": "new"},
    "reduce": {"size": "size", "out": "new"},
    "contract": {"dims": "roles"},
}
_SIZE_FIELD = {"merge": "block", "stride": "S", "reduce": "size"}
_MAX_SHIFT = 1_000_000


def to_data(core: _core.Operator) -> OperatorForm:
    """The JSON form of an operator as Python data, in canonical form."""
    return {
        "out": [_dim_data(dim) for dim in core.output],
        "in": [_dim_data(dim) for dim in core.input],
        "steps": [_step_data(step) for step in core.steps],
        "match": list(core.match),
    }


def from_data(data: Mapping[str, object] | str | bytes) -> _core.Operator:
    """Reads the JSON form, as text or as Python data. UserError says where it is malformed."""
    return _Reader(_parse(data) if isinstance(data, (str, bytes)) else data).read()


def _dim_data(dim: tuple[str, bool, bool]) -> DimForm:
    size, unordered, causal = dim
    found: DimForm = {"size": size, "unordered": unordered}
    return found | DimForm(causal=True) if causal else found


def _step_data(step: _core.Step) -> StepForm:
    data: dict[str, object] = {"op": step.op}
    for field, kind in _STEPS[step.op].items():
        if kind == "size":
            data[field] = step.size
        elif kind == "integer":
            data[field] = step.amount
        elif kind == "roles":
            data[field] = [list(dim) for dim in step.dims]
        elif kind == "flag":
            if step.causal:
                data[field] = True
        else:
            names = step.inputs if field == "in" else step.out
            data[field] = list(names) if "pair" in kind else names[0]
    return cast(StepForm, data)  # what the fields hold is what _STEPS says


def _parse(text: str | bytes) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UserError(f"the operator's JSON gives the field '{twice}' twice in one object")
        return fields

    return checks.json_content("the operator", text, unique)


def _kind(value: object) -> str:
    """What a value is in JSON's words, with the value where it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {checks.shown(value)}"
    if isinstance(value, str):
        return f'the string "{value}"' if len(value) <= 40 else "a long string"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, Sequence):
        return f"a list of {len(value)}"
    return f"a Python {type(value).__name__}"


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


class _Reader:
    """Reads one operator. Every method raises UserError with the place that `where` names."""

    def __init__(self, data: object) -> None:
        self._where = "the operator's JSON"
        self._data = data
        self._names: dict[str, int] = {}
        self._graph: _core.Graph | None = None

    def read(self) -> _core.Operator:
        fields = self._object(self._data, _TOP, _TOP)
        for field in _TOP:
            if not _is_list(fields[field]):
                self._fail(f"the field '{field}' is not a list", "a list", fields[field])
        output = self._dims("out", fields["out"])
        input_ = self._dims("in", fields["in"])
        steps = fields["steps"]
        sizes = [size for size, _, _ in [*output, *input_]]
        for number, step in enumerate(steps):
            sizes += self._check_step(number, step)
        variables = sorted({name for size in sizes for name in _core.size_names(size)})
        self._where = "'out' of the operator's JSON"
        self._graph = self._guarded(lambda: _core.Graph(variables, output))
        self._names = {f"o{d}": d for d in range(len(output))}
        for number, step in enumerate(steps):
            self._place(number, step["op"])
            self._apply(step)
        self._where = "'match' of the operator's JSON"
        match = [self._coordinate(name) for name in fields["match"]]
        graph = self._graph
        return self._guarded(lambda: _core.Operator(graph, input_, match))

    # Checks of form, before anything is built.

    def _dims(self, field: str, listed: Sequence[object]) -> list[tuple[str, bool, bool]]:
        dims = []
        for number, entry in enumerate(listed):
            self._where = f"dimension {number} of '{field}' of the operator's JSON"
            dim = self._object(entry, ("size",), _DIM)
            size = self._size("size", dim["size"])
            flags = [self._flag(dim, name) for name in ("unordered", "causal")]
            if all(flags):
                self._fail("a dimension cannot be unordered and causal at once")
            if size.strip() == "1":
                self._fail("a dimension of size 1 is not used: leave it out")
            dims.append((size, flags[0], flags[1]))
        return dims

    def _check_step(self, number: int, entry: object) -> list[str]:
        """Checks that a step has the fields of its op; returns the sizes in it."""
        self._where = f"step {number + 1} of the operator's JSON"
        step = self._object(entry, ("op",), None)
        op = step["op"]
        if not isinstance(op, str) or op not in _STEPS:
            self._fail("the step's 'op' is not known", f"one of {', '.join(_STEPS)}", op)
        self._place(number, op)
        fields = _STEPS[op]
        required = [field for field, kind in fields.items() if kind != "flag"]
        self._object(step, ("op", *required), ("op", *fields))
        return [
            self._size(field, step[field])
            for field, kind in fields.items()
            if self._check_field(field, kind, step.get(field)) and kind == "size"
        ]

    def _check_field(self, field: str, kind: str, value: object) -> bool:
        wanted = {
            "one": "the name of a coordinate",
            "new": "a name for the new coordinate",
            "pair": "a list of two names",
            "new pair": "a list of two names",
            "roles": "a list of [name, role] with role keep, drop or join",
            "integer": f"a non-zero integer within {_MAX_SHIFT}",
            "flag": "true or false",
            "size": 'a size string such as "k^2"',
        }[kind]
        good = {
            "one": isinstance(value, str),
            "new": isinstance(value, str) and value != "",
            "pair": _names(value, 2),
            "new pair": _names(value, 2) and all(value),
            "roles": _is_list(value)
            and len(value) > 0
            and all(_names(dim, 2) and dim[1] in _ROLES for dim in value),
            "integer": checks.is_whole(value, -_MAX_SHIFT, _MAX_SHIFT) and value != 0,
            "flag": value is None or isinstance(value, bool),
            "size": isinstance(value, str),
        }[kind]
        if not good:
            why, found = _wrong_entry(kind, value)
            self._fail(f"the field '{field}' is malformed{why}", wanted, found)
        return True

    def _object(
        self, value: object, required: Sequence[str], known: Sequence[str] | None
    ) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            self._fail("this is not an object", "an object", value)
        for field in required:
            if field not in value:
                has = ", ".join(map(str, value)) or "nothing"
                self._fail(f"the field '{field}' is missing", f"'{field}'", f"only {has}")
        for field in value:
            if known is not None and field not in known:
                self._fail(f"the field '{field}' is not known", ", ".join(known), f"'{field}'")
        return value

    def _size(self, field: str, value: object) -> str:
        self._check_field(field, "size", value)
        self._guarded(lambda: _core.size_names(checks.text("a size", value)))
        return str(value)

    def _flag(self, dim: Mapping[str, object], field: str) -> bool:
        value = dim.get(field, False)
        if not isinstance(value, bool):
            self._fail(f"the field '{field}' is malformed", "true or false", value)
        return value

    # Building.

    def _apply(self, step: Mapping[str, Any]) -> None:
        op = step["op"]
        fields = _STEPS[op]
        source = step.get("in", [])
        inputs = [
            self._coordinate(name) for name in ([source] if isinstance(source, str) else source)
        ]
        dims = [(self._coordinate(name), role) for name, role in step.get("dims", [])]
        size = step[_SIZE_FIELD[op]] if op in _SIZE_FIELD else ""
        graph = self._graph
        assert graph is not None
        made = self._guarded(
            lambda: graph.apply(
                op, inputs, size, step.get("d", 0), bool(step.get("causal", False)), dims
            )
        )
        names = step.get("out", [])
        for name, coordinate in zip(
            [names] if fields.get("out") == "new" else names, made, strict=True
        ):
            if name in self._names:
                self._fail(f"the coordinate '{name}' is made twice", "a new name", name)
            self._names[name] = coordinate

    def _coordinate(self, name: object) -> int:
        if not isinstance(name, str):
            self._fail("this is not the name of a coordinate", "a string", name)
        if name not in self._names:
            known = ", ".join(self._names) or "none"
            self._fail(f"unknown coordinate '{name}'", f"one of {known}", name)
        return self._names[name]

    def _guarded(self, build: Callable[[], _T]) -> _T:
        try:
            return build()
        except UserError as error:
            raise UserError(f"{self._own_names(str(error))}\n  in {self._where}") from None

    def _own_names(self, message: str) -> str:
        """`message` with the names of the data where it quotes those of the graph."""
        if self._graph is None:
            return message
        own = {self._graph.name(coordinate): name for name, coordinate in self._names.items()}
        return _QUOTED.sub(lambda found: f"'{own.get(found[1], found[1])}'", message)

    def _place(self, number: int, op: str) -> None:
        self._where = f"step {number + 1} ({op}) of the operator's JSON"

    def _fail(self, message: str, expected: str | None = None, got: object = None) -> NoReturn:
        text = f"{message}\n  in {self._where}"
        if expected is not None:
            found = got if isinstance(got, str) and got.startswith("only ") else _kind(got)
            text += f"\n  expected: {expected}      got: {found}"
        raise UserError(text)


def _names(value: object, count: int) -> TypeGuard[Sequence[str]]:
    return _is_list(value) and len(value) == count and all(isinstance(v, str) for v in value)


def _wrong_entry(kind: str, value: object) -> tuple[str, object]:
    """Which entry of a list is wrong, and why, with the entry; else no words and `value`."""
    if not _is_list(value):
        return "", value
    for number, entry in enumerate(value, 1):
        if kind in ("pair", "new pair") and len(value) == 2:
            if not isinstance(entry, str) or (kind == "new pair" and not entry):
                return f": entry {number} is not a name", entry
        elif kind == "roles":
            if not _is_list(entry) or len(entry) != 2:
                return f": entry {number} is not a pair of a name and a role", entry
            name, role = entry
            if not isinstance(name, str):
                return f": the name in entry {number} is not a string", name
            if not isinstance(role, str) or role not in _ROLES:
                return f": the role in entry {number} is not known", role
    return "", value
