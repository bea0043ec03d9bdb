"""The types of JSON documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

# A value that `json.dump` writes. The containers are read-only here, so that a dict of integers
# is one, too; a document with known fields is a TypedDict or a dataclass.
Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]


def flattened(content: Mapping[str, object], before: str = "") -> dict[str, object]:
    """Return the values of nested objects by their path, such as `recipe.batch`."""
    flat: dict[str, object] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{before}{key}.")
        else:
            flat[before + key] = value
    return flat
