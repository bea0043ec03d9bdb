"""Selections as tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from syno._util import numbers as fmt
from syno._util.tables import Table
from syno.store.objective import Objective
from syno.study.selection import Choice


def choices_table(chosen: Sequence[Choice], objective: Objective) -> Table:
    """Tabulate selected operators, one row for each."""
    return Table.of(
        chosen,
        ("key", lambda choice: choice.key[:8]),
        (f"{objective.name}>", lambda choice: objective.shown(choice.quality)),
        ("speed-up>", lambda choice: fmt.speedup(choice.latency_ratio)),
        ("MACs>", lambda choice: fmt.count(choice.macs)),
        ("params>", lambda choice: fmt.count(choice.params)),
        ("primitives~", lambda choice: fmt.primitives(choice.primitives)),
    )


def asked_for(within: float | None, reference: str, objective: Objective) -> str:
    """Describe which operators were requested."""
    if within is None:
        return "trained"
    name = "the original network" if reference == "baseline" else "the best"
    if not objective.is_share:
        return f"at most {within:g} % above the perplexity of {name}"
    return f"at most {within:g} points below {name}"
