"""Checks of generated code as tables of text, and mismatches in words."""

from __future__ import annotations

from collections.abc import Sequence

from syno._util import numbers as fmt
from syno._util.tables import Table
from syno.codegen.verify.check import Verification
from syno.codegen.verify.many import Mismatch, RandomCheck


def checks_table(results: Sequence[Verification]) -> Table:
    """Comparisons of one operator under several bindings."""
    return Table.of(
        results,
        ("binding~", lambda each: " ".join(f"{name}={n}" for name, n in each.binding.items())),
        ("result", lambda each: "passed" if each.passed else "FAILED"),
        ("outputs compared>", lambda each: f"{each.outputs:,}"),
        ("largest error>", lambda each: f"{each.max_error:.1e}"),
        ("code", lambda each: f"{each.emitter} {each.source_hash[:12]}"),
    )


def mix_table(result: RandomCheck) -> Table:
    """What the random operators were made of."""
    count = result.operators
    return Table.of(
        result.counted(),
        ("in the mix", lambda row: row[0]),
        ("operators>", lambda row: f"{row[1]:,}"),
        ("share>", lambda row: f"{100 * row[1] / count:.0f} %"),
    )


def emitters_table(result: RandomCheck) -> Table:
    """What each emitter got wrong, and how long it worked."""
    count = result.operators
    return Table.of(
        result.emitters,
        ("emitter", str),
        ("operators>", lambda _: f"{count:,}"),
        ("mismatches>", lambda name: f"{sum(m.emitter == name for m in result.mismatches):,}"),
        ("largest error>", lambda name: f"{result.max_error[name]:.1e}"),
        ("at work>", lambda name: fmt.duration(result.emitter_seconds[name])),
    )


def told(mismatch: Mismatch) -> str:
    """A mismatch with its smallest case, where there is one, and how to see it again."""
    again = f"syno verify --random 1 --seed {mismatch.seed} --emitters {mismatch.emitter}"
    if mismatch.smallest:
        return f"{mismatch.emitter}, made small ({again}):\n{mismatch.smallest}"
    return (
        f"{mismatch.emitter} ({again}):\n{mismatch.failure}\n  in binding {mismatch.binding}\n"
        f"  of operator\n{mismatch.operator}"
    )


def zoo_checks_table(results: Sequence[tuple[str, Verification]]) -> Table:
    """Comparisons of several operators, each with its name."""
    return Table.of(
        results,
        ("operator", lambda row: row[0]),
        ("emitter", lambda row: row[1].emitter),
        ("result", lambda row: "passed" if row[1].passed else "FAILED"),
        ("outputs compared>", lambda row: f"{row[1].outputs:,}"),
        ("largest error>", lambda row: f"{row[1].max_error:.1e}"),
    )
