"""What a search refused, as a tree for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from syno.cli import output
from syno.report import format as fmt
from syno.space.rejections import RejectionNode, rejection_tree

if TYPE_CHECKING:
    from rich.tree import Tree


def drawn(rejections: Mapping[str, int]) -> Tree:
    """The tree for a terminal."""
    from rich.tree import Tree

    root = rejection_tree(rejections)
    made = Tree(output.heading(root["name"], f"  {root['count']:,}"))
    _grow(made, root)
    return made


def _grow(made: Tree, node: RejectionNode) -> None:
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
