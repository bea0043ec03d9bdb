"""Data classes from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from syno import UserError
from syno._util.json_record import json_record


@dataclass(frozen=True)
class Row:
    name: str
    count: int
    seconds: float | None
    good: bool
    values: tuple[float, ...] = ()
    sizes: Mapping[str, int] | None = None


WHOLE = {"name": "a", "count": 1, "seconds": 1.5, "good": True, "values": [1, 0.5]}


def test_what_has_its_types_is_read() -> None:
    assert json_record(Row, "a row", WHOLE) == Row("a", 1, 1.5, True, (1, 0.5))
    found = json_record(Row, "a row", {**WHOLE, "seconds": None, "sizes": {"H": 2}, "good": False})
    assert (found.seconds, found.sizes, found.good) == (None, {"H": 2}, False)
    endless = {**WHOLE, "values": [float("nan")]}
    assert len(json_record(Row, "a row", endless, infinite=("values",)).values) == 1


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("name", (None, 1, [], True)),
        ("count", (None, "1", 1.0, True, 10**30)),
        ("seconds", ("1", True, [], float("nan"), float("inf"), 10**400)),
        ("good", (None, 0, 1, "true")),
        ("values", (None, 1, "12", [None], ["1"], [True], {}, [float("nan")])),
        ("sizes", (1, [], {"H": "2"}, {"H": 1.5})),
    ],
)
def test_another_type_is_named(name: str, values: tuple[object, ...]) -> None:
    for value in values:
        with pytest.raises(UserError, match=rf"'{name}' of a row is of another type\n"):
            json_record(Row, "a row", {**WHOLE, name: value})


def test_other_fields_are_named() -> None:
    for content in ({}, {**WHOLE, "more": 1}, {"name": "a"}):
        with pytest.raises(UserError, match=r"a row has other fields\n  expected: name, count"):
            json_record(Row, "a row", content)
    with pytest.raises(UserError, match="a row is not an object"):
        json_record(Row, "a row", [1])
