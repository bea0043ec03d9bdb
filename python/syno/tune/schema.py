"""Checks JSON documents against the part of JSON Schema that the schema of a grid uses."""

from __future__ import annotations

from collections.abc import Mapping

from syno._util import checks
from syno._util.errors import UserError, nearest
from syno._util.json_types import Json

_KINDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "object": ("an object", (dict,)),
    "array": ("a list", (list,)),
    "string": ("a text", (str,)),
    "integer": ("an integer", (int,)),
    "boolean": ("true or false", (bool,)),
}
Schema = Mapping[str, "Json"]


def check(value: object, schema: Schema, where: str) -> None:
    """UserError for a value that the schema does not allow; `where` names its place.

    Known are type, enum, properties, additionalProperties, required, items, minItems, minLength,
    minimum and maximum.
    """
    if "enum" in schema:
        _check_choice(value, schema["enum"], where)
        return
    words, kinds = _KINDS[str(schema["type"])]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise UserError(
            f"{where} is not {words}\n  expected: {words}      got: {checks.shown(value)}"
        )
    if isinstance(value, dict):
        _check_object(value, schema, where)
    elif isinstance(value, list):
        _check_least(len(value), schema, "minItems", f"the number of entries of {where}")
        items = schema["items"]
        assert isinstance(items, Mapping)
        for number, each in enumerate(value):
            check(each, items, f"{where}[{number}]")
    elif isinstance(value, str):
        _check_least(len(value), schema, "minLength", f"the length of {where}")
        _check_text(value, where)
    elif isinstance(value, int) and not isinstance(value, bool):
        _check_least(value, schema, "minimum", where)
        most = schema.get("maximum")
        if isinstance(most, int) and value > most:
            raise UserError(f"{where} is too large\n  expected: at most {most}      got: {value}")


def _check_text(value: str, where: str) -> None:
    """UserError for characters that no name and no path of a file may have."""
    checks.text(where, value)
    if "\0" in value:
        raise UserError(f"{where} holds a NUL character\n  got: {checks.shown(value)}")


def _check_choice(value: object, choices: Json, where: str) -> None:
    assert isinstance(choices, list)
    if value in choices:
        return
    known = ", ".join(str(each) for each in choices)
    hint = nearest(value, [str(each) for each in choices]) if isinstance(value, str) else ""
    raise UserError(
        f"{where} has an unknown value{hint}\n"
        f"  expected: one of {known}      got: {checks.shown(value)}"
    )


def _check_object(value: Mapping[str, object], schema: Schema, where: str) -> None:
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    required = schema.get("required", [])
    assert isinstance(known, Mapping) and isinstance(required, list)
    for name in required:
        if name not in value:
            raise UserError(f"{where} has no '{name}'\n  expected: the field '{name}'")
    for name, each in value.items():
        _check_text(name, f"a field's name of {where}")
        of_field = known.get(name, others)
        if not isinstance(of_field, Mapping):
            raise UserError(
                f"{where} has the unknown field '{checks.short(name)}'"
                f"{nearest(name, list(known))}\n"
                f"  expected: {', '.join(known)}"
            )
        check(each, of_field, f"{where}.{checks.short(name)}")


def _check_least(value: int, schema: Schema, name: str, where: str) -> None:
    least = schema.get(name)
    if isinstance(least, int) and value < least:
        raise UserError(f"{where} is too small\n  expected: at least {least}      got: {value}")
