"""Rejections by reason, as a tree from the specification to repeated keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from syno import _core


class Rejections(TypedDict):
    """A node of the tree: rejections for one reason (with its `doc`), or of the `parts` below."""

    name: str
    count: int
    share: float
    doc: NotRequired[str]
    parts: NotRequired[list[Rejections]]


def rejection_tree(rejections: Mapping[str, int]) -> Rejections:
    """Return the numbers of rejections as a tree of plain values.

    Groups are in the order in which a search checks them; within a group, the largest number is
    first. Each node has name, count and share (of all rejections), and each leaf has a doc.
    """
    total = sum(rejections.values())
    groups: dict[str, dict[str, list[Rejections]]] = {g: {} for g in _core.reason_groups()}
    for reason, count in rejections.items():
        info = _core.reason_info(reason)
        leaf = _node(reason, count, total)
        leaf["doc"] = info["doc"]
        groups[info["group"]].setdefault(info["subgroup"], []).append(leaf)
    made = []
    for group, parts in groups.items():
        if not parts:
            continue
        parts = {name: sorted(p, key=lambda leaf: -leaf["count"]) for name, p in parts.items()}
        inner = [_parent(name, leaves, total) for name, leaves in parts.items() if name]
        inner.sort(key=lambda node: -node["count"])
        made.append(_parent(group, [*inner, *parts.get("", [])], total))
    return {"name": "rejections", "count": total, "share": 1.0 if total else 0.0, "parts": made}


def _node(name: str, count: int, total: int) -> Rejections:
    return {"name": name, "count": count, "share": round(count / total, 6)}


def _parent(name: str, parts: list[Rejections], total: int) -> Rejections:
    node = _node(name, sum(part["count"] for part in parts), total)
    node["parts"] = parts
    return node
