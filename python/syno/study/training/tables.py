"""Results of trainings as tables of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from syno._util import numbers
from syno._util.tables import Section, Table
from syno.network.substitute import layer_report
from syno.store.records import FLOAT32
from syno.study.training.comparison import Paired, Spread
from syno.study.training.forecast import amounts, training_cost
from syno.study.training.rows import TrainedOperator
from syno.study.training.trainings import ForecastDocument, OperatorCosts, Trainings


def results_table(rows: Sequence[TrainedOperator], measure: str) -> Table:
    """Tabulate trained operators, one row for each operator and precision.

    Args:
        rows: the results.
        measure: `accuracy`, or `loss` for text.
    """
    accuracy = ("accuracy>", lambda row: _spread(row.accuracy, "accuracy"))
    timed = any(row.latency_ms is not None for row in rows)
    return Table.of(
        rows,
        ("operator", _name),
        ("id", lambda row: (row.id or "")[:8]),
        (f"{measure}>", lambda row: _spread(row.measures[measure][0], measure)),
        ("beside the baseline?", lambda row: _pair(row.measures[measure][1], measure)),
        *([accuracy] if measure == "loss" else []),
        ("MACs>", lambda row: numbers.count(row.macs)),
        ("params>?", lambda row: numbers.count(row.params)),
        *(_TIMED if timed else []),
        ("time>?", lambda row: numbers.duration(row.seconds)),
        ("status~", _status),
    )


def int8_shares(rows: Sequence[TrainedOperator]) -> list[str]:
    """Describe how much of each quantized network is in INT8."""
    return [_int8_share(row) for row in rows if row.precision != FLOAT32 and row.ok]


def forecast_sections(trainings: Trainings, found: ForecastDocument) -> list[Section]:
    """Show the forecast of trainings.

    Args:
        trainings: the trainings.
        found: the result of `Trainings.forecast`.
    """
    baseline: OperatorCosts = {"name": "baseline", "id": None, "key": None, **found["baseline"]}
    costs = Table.of(
        [baseline, *found["operators"]],
        ("operator", lambda each: each["name"]),
        ("id", lambda each: (each["id"] or "")[:8]),
        ("MACs>", lambda each: numbers.count(each["macs"])),
        ("params>", lambda each: numbers.count(each["params"])),
    )
    layers = layer_report(trainings.network(trainings.seeds[0]).template)
    cost = training_cost(found["trainings"], found["seconds_each"])
    return [
        Section("Layers", table=layers.as_table(), after="\n".join(layers.totals())),
        Section("Fidelity", text=amounts(trainings.fidelity), table=costs),
        Section("Cost", text=f"{cost}\n"),
    ]


def _name(row: TrainedOperator) -> str:
    return row.name if row.precision == FLOAT32 else f"{row.name} {row.precision}"


def _status(row: TrainedOperator) -> str:
    failed = [f"seed {s.seed}: {s.reason}" for s in row.seeds if s.status != "ok"]
    return "; ".join(failed) or ("ok" if row.ok else "not trained")


_TIMED: list[tuple[str, Callable[[TrainedOperator], str]]] = [
    ("latency>", lambda row: numbers.milliseconds(row.latency_ms)),
    ("speed-up>", lambda row: numbers.speedup(row.latency_ratio)),
]


def _int8_share(row: TrainedOperator) -> str:
    """How much of a network is in INT8."""
    details = row.seeds[0].details
    share = details["int8_macs"] / details["network_macs"]
    parts = ", ".join(f"{count} x {part}" for part, count in details["float_parts"].items())
    rest = f"; in float32: {parts}" if parts else ""
    return f"{row.name} in INT8: {share:.1%} of the network's MACs{rest}"


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
