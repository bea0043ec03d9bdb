"""Results of verifications as tables of text, and mismatches in words."""

from __future__ import annotations

from collections.abc import Sequence

from syno._util import numbers as fmt
from syno._util.tables import Table
from syno.codegen.verify.check import Verification
from syno.codegen.verify.random_check import Mismatch, RandomCheck


def checks_table(results: Sequence[Verification]) -> Table:
    """Return a table of the verifications of one operator under several bindings."""
    return Table.of(
        results,
        ("binding~", lambda each: " ".join(f"{name}={n}" for name, n in each.binding.items())),
        ("result", lambda each: "passed" if each.passed else "FAILED"),
        ("outputs compared>", lambda each: f"{each.outputs:,}"),
        ("largest error>", lambda each: f"{each.max_error:.1e}"),
        ("code", lambda each: f"{each.emitter} {each.source_hash[:12]}"),
    )


def mix_table(result: RandomCheck) -> Table:
    """Return a table of the traits of the random operators."""
    count = result.operators
    return Table.of(
        result.counted(),
        ("trait", lambda row: row[0]),
        ("operators>", lambda row: f"{row[1]:,}"),
        ("share>", lambda row: f"{100 * row[1] / count:.0f} %"),
    )


def emitters_table(result: RandomCheck) -> Table:
    """Return a table of the mismatches and times of each emitter."""
    count = result.operators
    return Table.of(
        result.emitters,
        ("emitter", str),
        ("operators>", lambda _: f"{count:,}"),
        ("mismatches>", lambda name: f"{sum(m.emitter == name for m in result.mismatches):,}"),
        ("largest error>", lambda name: f"{result.max_error[name]:.1e}"),
        ("time>", lambda name: fmt.duration(result.emitter_seconds[name])),
    )


def mismatch_in_words(mismatch: Mismatch) -> str:
    """Describe a mismatch, its reduced case, if there is one, and how to repeat it."""
    again = f"syno verify --random 1 --seed {mismatch.seed} --emitters {mismatch.emitter}"
    if mismatch.smallest:
        return f"{mismatch.emitter}, reduced ({again}):\n{mismatch.smallest}"
    return (
        f"{mismatch.emitter} ({again}):\n{mismatch.failure}\n  in binding {mismatch.binding}\n"
        f"  of operator\n{mismatch.operator}"
    )


def zoo_checks_table(results: Sequence[tuple[str, Verification]]) -> Table:
    """Return a table of the verifications of several named operators."""
    return Table.of(
        results,
        ("operator", lambda row: row[0]),
        ("emitter", lambda row: row[1].emitter),
        ("result", lambda row: "passed" if row[1].passed else "FAILED"),
        ("outputs compared>", lambda row: f"{row[1].outputs:,}"),
        ("largest error>", lambda row: f"{row[1].max_error:.1e}"),
    )
