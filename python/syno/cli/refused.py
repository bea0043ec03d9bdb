"""What a search refused, by reason: a tree from the specification to repeated keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from syno import _core
from syno.cli import output
from syno.report import format as fmt

if TYPE_CHECKING:
    from rich.tree import Tree


def tree(rejections: Mapping[str, int]) -> dict[str, Any]:
    """The counts as plain values: groups in the order in which a search asks, largest first inside.

    Each node has name, count and share (of all rejections); leaves have a doc.
    """
    total = sum(rejections.values())
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {g: {} for g in _core.reason_groups()}
    for reason, count in rejections.items():
        info = _core.reason_info(reason)
        leaf = _node(reason, count, total) | {"doc": info["doc"]}
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


def _node(name: str, count: int, total: int) -> dict[str, Any]:
    return {"name": name, "count": count, "share": round(count / total, 6)}


def _parent(name: str, parts: list[dict[str, Any]], total: int) -> dict[str, Any]:
    return _node(name, sum(part["count"] for part in parts), total) | {"parts": parts}


def drawn(rejections: Mapping[str, int]) -> Tree:
    """The tree for a terminal."""
    from rich.tree import Tree

    root = tree(rejections)
    made = Tree(output.heading(root["name"], f"  {root['count']:,}"))
    _grow(made, root)
    return made


def _grow(made: Tree, node: dict[str, Any]) -> None:
    from rich.text import Text

    width = max((len(part["name"]) for part in node["parts"]), default=0)
    digits = max((len(f"{part['count']:,}") for part in node["parts"]), default=0)
    for part in node["parts"]:
        share = fmt.percent(part["share"])
        line = Text(f"{part['name']:{width}}  {part['count']:>{digits},}  {share:>7}")
        if part.get("doc"):
            line.append(f"  {part['doc']}", style="dim")
        branch = made.add(line)
        if "parts" in part:
            _grow(branch, part)
