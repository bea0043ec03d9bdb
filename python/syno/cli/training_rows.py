"""The results of `syno train` as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno.cli import output

if TYPE_CHECKING:
    from syno.study.training.comparison import Paired, Spread
    from syno.study.training.rows import TrainedOperator
    from syno.train import Fidelity


def print_rows(rows: Sequence[TrainedOperator], study: str, fidelity: Fidelity) -> None:
    """As a table, and below it how much of each network is in INT8."""
    from syno.report import format as fmt
    from syno.store.records import FLOAT32

    measure = "loss" if fidelity.task == "text" else "accuracy"
    timed = any(row.latency_ms is not None for row in rows)
    lines = []
    for row in rows:
        failed = [f"seed {s.seed}: {s.reason}" for s in row.seeds if s.status != "ok"]
        lines.append(
            [
                row.name if row.precision == FLOAT32 else f"{row.name} {row.precision}",
                (row.key or "")[:8],
                _spread(row.measures[measure][0], measure),
                _pair(row.measures[measure][1], measure),
                *([_spread(row.accuracy, "accuracy")] if measure == "loss" else []),
                fmt.count(row.macs),
                fmt.count(row.params),
                *([_latency(row)] if timed else []),
                fmt.duration(row.seconds),
                "; ".join(failed) or ("ok" if row.ok else "not trained"),
            ]
        )
    columns = [("operator", "left"), ("key", "left"), (measure, "right")]
    columns += [("beside the baseline", "left")]
    columns += [("accuracy", "right")] if measure == "loss" else []
    columns += [("MACs", "right"), ("params", "right")]
    columns += [("latency", "right")] if timed else []
    columns += [("time", "right"), ("status", "fold")]
    screen = output.console()
    recipe = fidelity.recipe
    screen.print(
        output.heading(study, f"  fidelity {fidelity.name}, recipe {recipe.name} {recipe.version}")
    )
    screen.print(output.table(columns, lines))
    for row in rows:
        if row.precision != FLOAT32 and row.ok:
            screen.print(_share(row), soft_wrap=True)


def _latency(row: TrainedOperator) -> str:
    if row.latency_ms is None:
        return "-"
    return f"{row.latency_ms:.3g} ms (x {row.latency_ratio:.2f})"


def _share(row: TrainedOperator) -> str:
    """How much of a network is in INT8."""
    details = row.seeds[0].details
    share = details["int8_macs"] / details["network_macs"]
    parts = ", ".join(f"{count} x {part}" for part, count in details["float_parts"].items())
    rest = f"; in float32: {parts}" if parts else ""
    return f"{row.name} in INT8: {share:.1%} of the network's multiply-adds{rest}"


def _number(value: float, measure: str, *, sign: bool = False) -> str:
    shown = value * 100 if measure == "accuracy" else value
    places = 2 if measure == "accuracy" else 4
    return f"{shown:{'+' if sign else ''}.{places}f}"


def _spread(spread: Spread | None, measure: str) -> str:
    if spread is None:
        return "-"
    unit = " %" if measure == "accuracy" else ""
    mean = _number(spread.mean, measure)
    if spread.deviation is None:
        return mean + unit
    return f"{mean} ± {_number(spread.deviation, measure)}{unit} ({spread.count})"


def _pair(pair: Paired | None, measure: str) -> str:
    if pair is None:
        return ""
    shown = _number(pair.difference, measure, sign=True)
    if pair.low is None or pair.high is None:
        return shown
    low, high = (_number(value, measure, sign=True) for value in (pair.low, pair.high))
    return f"{shown} ({low} to {high}), better in {pair.wins} of {pair.count}"
