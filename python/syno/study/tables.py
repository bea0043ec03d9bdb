"""Selections as tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from syno._util import numbers as fmt
from syno._util.tables import Table
from syno.operators.summary import short_id
from syno.store.objective import Objective
from syno.study.selection import Choice


def choices_table(chosen: Sequence[Choice], objective: Objective) -> Table:
    """Tabulate selected operators, one row for each."""
    return Table.of(
        chosen,
        ("id", lambda choice: short_id(choice.text, choice.key)),
        (f"{objective.name}>", lambda choice: objective.shown(choice.quality)),
        ("latency>", lambda choice: fmt.milliseconds(choice.latency_ms)),
        ("speed-up>", lambda choice: fmt.speedup(choice.latency_ratio)),
        ("MACs>", lambda choice: fmt.count(choice.macs)),
        ("params>?", lambda choice: fmt.count(choice.params)),
        ("primitives~?", lambda choice: fmt.primitives(choice.primitives)),
    )


def asked_for(within: float | None, reference: str, objective: Objective) -> str:
    """Describe which operators were requested."""
    if within is None:
        return "trained"
    name = "the original network" if reference == "baseline" else "the best"
    if not objective.is_share:
        measure = "perplexity" if objective.is_entropy else objective.name
        side = "below" if objective.greater_is_better else "above"
        return f"at most {within:g} % {side} the {measure} of {name}"
    return f"at most {within:g} points below {name}"
