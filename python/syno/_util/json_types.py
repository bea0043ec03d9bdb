"""The types of JSON documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

# A value that `json.dump` writes. The containers are read-only here, so that a dict of integers
# is one, too; a document with known fields is a TypedDict or a dataclass.
Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]
