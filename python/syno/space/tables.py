"""Enumerations and rules as tables and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from syno._util import numbers
from syno._util.tables import Table

if TYPE_CHECKING:
    from syno.space.explanation import RuleUse
    from syno.space.rule_effects import Effect
    from syno.space.space import Space


def depths_table(rows: Sequence[Mapping[str, int]]) -> Table:
    """Return a table of graphs and operators by number of primitives."""
    return Table.of(
        rows,
        ("primitives>", lambda row: str(row["depth"])),
        ("graphs>", lambda row: f"{row['graphs']:,}"),
        ("operators>", lambda row: f"{row['operators']:,}"),
    )


def multisets_table(rows: Sequence[tuple[str, int]]) -> Table:
    """Return a table of operators by multiset of primitives."""
    return Table.of(
        rows,
        ("operators>", lambda row: f"{row[1]:,}"),
        ("primitives~", lambda row: row[0]),
    )


def reached(space: Space) -> str:
    """Describe the extent of an enumeration."""
    if space.exhausted:
        return f"complete up to depth {space.complete_depth}"
    why = {"stopped": "Ctrl-C"}.get(space.ended, "--" + space.ended.replace("_", "-"))
    why = why.replace(" or max-", " or --max-")
    if space.depth_limit > space.complete_depth:
        return f"incomplete at depth limit {space.depth_limit}: {why} ended the enumeration"
    return f"complete up to depth {space.complete_depth}; {why} ended the enumeration"


def nothing_found(space: Space) -> str:
    """Describe why there is no operator, and what to do."""
    most = ", ".join(f"{name} {count:,}" for name, count in list(space.rejections().items())[:5])
    return (
        f"no operator connects the shapes within depth {space.complete_depth}\n"
        f"  most frequent rejections: {most or 'none'}\n"
        "  what to do: use a larger --depth, larger budgets of variables, or other constraints; "
        "--stats prints all rejection reasons"
    )


def rules_table(rules: Sequence[RuleUse]) -> Table:
    """Return a table of the rules along the path of an explanation."""
    return Table.of(
        rules,
        ("rule", lambda r: r["rule"]),
        ("kind", lambda r: r["kind"]),
        ("steps rejected>", lambda r: f"{r['steps_refused']:,}"),
        ("own steps>", lambda r: f"{r['own_steps_refused']:,}" if r["own_steps_refused"] else ""),
    )


def effects_table(effects: Sequence[Effect]) -> Table:
    """Return a table of the effects of rules."""
    return Table.of(
        effects,
        ("", _switched),
        ("kind", lambda effect: effect.kind),
        ("graphs>", lambda effect: f"{effect.graphs:,}"),
        ("structures>", lambda effect: f"{effect.structures:,}"),
        ("operators>", lambda effect: f"{effect.operators:,}"),
        ("more>", lambda effect: f"{effect.more:,}" if effect.more else ""),
        ("fewer>", lambda effect: f"{effect.fewer:,}" if effect.fewer else ""),
        ("repeats>", lambda effect: f"{effect.repeats:,}" if effect.repeats else ""),
    )


def _switched(effect: Effect) -> str:
    what = f"{effect.rule} {effect.name} off" if effect.rule else "all rules"
    if effect.rule is None and effect.without:
        what = f"all {effect.without} rules off"
    return what if effect.exhausted else f"{what} (incomplete)"


def known_before(space: Space, before: Space) -> str:
    """Describe the content of a file before its enumeration was continued."""
    had, known = before.counts(), before.complete_depth
    words = f"in the file, up to depth {known}: {had['graphs']:,} graphs, "
    words += f"{had['operators']:,} operators"
    if known and space.complete_depth <= known:
        return f"{words}\n" + (
            "complete" if space.exhausted else "no further depth limit was completed"
        )
    return words


def counts_in_words(space: Space, seconds: float) -> str:
    """Describe what was enumerated in the given time."""
    counts = space.counts()
    lines = [
        f"{counts['graphs']:,} graphs, {counts['structures']:,} structures (graphs with a matching"
        f" to the input), {counts['operators']:,} operators (distinct semantic keys)",
        reached(space),
    ]
    if "orbits" in counts:
        symmetries = ", ".join(space.specification.symmetries)
        lines.insert(1, f"{counts['orbits']:,} orbits: operators up to {symmetries}")
    if seconds > 0 and counts["visited"]:
        lines.append(
            f"{counts['visited']:,} partial graphs in {numbers.duration(seconds)}: "
            f"{counts['visited'] / seconds:,.0f}/s"
        )
    return "\n".join([*lines, f"signature {space.signature()}"])
