"""Enumerations as plain values."""

from __future__ import annotations

import json

from syno._util.json_types import JsonObject
from syno.space.space import Space


def enumeration_json(space: Space, before: Space | None, seconds: float) -> JsonObject:
    """Return the results and the settings of an enumeration as plain values.

    Args:
        space: the result of the enumeration.
        before: the space that was continued, or None.
        seconds: the wall-clock time of the enumeration.
    """
    specification = space.specification
    counts = space.counts()
    return {
        "specification": {"key": specification.key, "fields": json.loads(specification.to_json())},
        "rules": space.rules,
        "rules_off": list(space.rules_off),
        "rules_added": list(space.rules_added),
        **counts,
        "complete_depth": space.complete_depth,
        "depth_limit": space.depth_limit,
        "exhausted": space.exhausted,
        "ended": space.ended,
        "resumed_from": None if before is None else before.complete_depth,
        "seconds": round(seconds, 3),
        "nodes_per_s": round(counts["visited"] / seconds) if seconds > 0 else 0,
        "by_depth": space.by_depth(),
        "by_primitives": space.by_primitives(),
        "signature": space.signature(),
    }
