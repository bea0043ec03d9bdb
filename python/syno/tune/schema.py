"""What is wrong with a JSON document by its schema, in Syno's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from syno._util import checks
from syno._util.errors import UserError, nearest
from syno._util.json_types import Json

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_KINDS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "integer": "an integer",
    "boolean": "true or false",
}
# Limits: what they are of, in words, and in which direction a value may break them.
_LIMITS = {
    "minItems": ("the number of entries of ", "small", "least"),
    "minLength": ("the length of ", "small", "least"),
    "minimum": ("", "small", "least"),
    "maximum": ("", "large", "most"),
}
Schema = Mapping[str, "Json"]


def check(value: object, schema: Schema, where: str) -> None:
    """UserError for a value that the schema does not allow; `where` names its place."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    # In JSON Schema, 64.0 is an integer, too.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, each: isinstance(each, int) and not isinstance(each, bool)
    )
    validator = extend(Draft202012Validator, type_checker=types)
    for error in validator(schema).iter_errors(value):
        raise UserError(_message(error, where))
    _check_texts(value, where)


def _message(error: ValidationError, where: str) -> str:
    for part in error.absolute_path:
        if isinstance(part, str):
            _check_text(part, f"a field's name of {where}")
        where += f".{checks.short(part)}" if isinstance(part, str) else f"[{part}]"
    value, limit = error.instance, error.validator_value
    if error.validator in _LIMITS:
        of, size, direction = _LIMITS[error.validator]
        got = value if isinstance(value, int) else len(value)
        return f"{of}{where} is too {size}\n  expected: at {direction} {limit}      got: {got}"
    if error.validator == "required":
        name = next(each for each in limit if each not in value)
        return f"{where} has no '{name}'\n  expected: the field '{name}'"
    if error.validator == "additionalProperties":
        return _unknown_field(value, error.schema["properties"], where)
    if error.validator == "enum":
        known = [str(each) for each in limit]
        words, expected = "has an unknown value", f"one of {', '.join(known)}"
        words += nearest(value, known) if isinstance(value, str) else ""
    else:
        assert error.validator == "type"
        expected = _KINDS[limit]
        words = f"is not {expected}"
    return f"{where} {words}\n  expected: {expected}      got: {checks.shown(value)}"


def _unknown_field(value: Mapping[str, object], known: Schema, where: str) -> str:
    name = next(each for each in value if each not in known)
    _check_text(name, f"a field's name of {where}")
    return (
        f"{where} has the unknown field '{checks.short(name)}'{nearest(name, list(known))}\n"
        f"  expected: {', '.join(known)}"
    )


def _check_texts(value: object, where: str) -> None:
    """UserError for characters that no name and no path of a file may have."""
    if isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check_texts(each, f"{where}[{number}]")
    elif isinstance(value, Mapping):
        for name, each in value.items():
            _check_text(name, f"a field's name of {where}")
            _check_texts(each, f"{where}.{checks.short(name)}")


def _check_text(value: str, where: str) -> None:
    checks.text(where, value)
    if "\0" in value:
        raise UserError(f"{where} holds a NUL character\n  got: {checks.shown(value)}")
