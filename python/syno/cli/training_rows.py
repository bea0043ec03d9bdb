"""Results of `syno train`: a row for each operator and precision, over its seeds."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from syno.cli import output

if TYPE_CHECKING:
    from syno import Operator
    from syno.cli.trainings import Results, Trainings
    from syno.train import Fidelity


def result_rows(trainings: Trainings, results: Results) -> list[dict[str, Any]]:
    """For each operator, and each in INT8 behind it: its seeds, their mean and spread, and the
    pairs with the original network's in float32."""
    recipes = [trainings.recipe()]
    if trainings.quantization is not None:
        recipes.append(trainings.recipe_int8())
    found = results.evaluations()
    originals = [e for e in found if e.text is None and e.recipe == recipes[0]]
    named: list[tuple[str, Operator | None]] = [("baseline", None)] if originals else []
    named += [(c.name, o) for c, o in zip(trainings.chosen, trainings.operators, strict=True)]
    rows = []
    for name, operator in named:
        text = None if operator is None else operator.text
        for recipe in recipes:
            own = [e for e in found if e.text == text and e.recipe == recipe]
            own = [e for e in own if e.seed in trainings.seeds] or own
            rows.append(_summed(name, operator, recipe, own, originals, trainings))
    return rows


def _summed(
    name: str,
    operator: Operator | None,
    recipe: dict[str, Any],
    own: Sequence[Any],
    originals: Sequence[Any],
    trainings: Trainings,
) -> dict[str, Any]:
    from syno.cli.comparison import Spread, paired
    from syno.store.records import FLOAT32

    precision = recipe.get("precision", FLOAT32)
    row: dict[str, Any] = {
        "name": name,
        "precision": precision,
        "key": None if operator is None else operator.key,
        "macs": next((e.macs for e in own), None),
        "params": next((e.params for e in own), None),
        "latency_ms": _middle(own, "latency_ms"),
        "latency_ratio": _middle(own, "latency_ratio"),
        "seconds": sum(e.seconds for e in own),
        "seeds": [_seed(e) for e in own],
        "ok": bool(own) and all(e.status == "ok" for e in own),
    }
    is_original = operator is None and precision == FLOAT32
    measures = ("accuracy", "loss") if trainings.fidelity.task == "text" else ("accuracy",)
    for measure in measures:
        values, base = _values(own, measure), _values(originals, measure)
        pair = None
        if not is_original:
            pair = paired(values, base, greater_is_better=measure == "accuracy")
        spread = Spread.of(list(values.values()))
        row[measure] = None if spread is None else dataclasses.asdict(spread)
        row[f"{measure}_beside_baseline"] = None if pair is None else dataclasses.asdict(pair)
    return row


def _middle(evaluations: Sequence[Any], name: str) -> float | None:
    """The median over seeds."""
    values = [getattr(e, name) for e in evaluations]
    found = [value for value in values if value is not None]
    return statistics.median(found) if found else None


def _values(evaluations: Sequence[Any], measure: str) -> dict[int, float]:
    """By seed; those that failed are left out."""
    read: Callable[[Any], Any] = (
        (lambda e: e.accuracy) if measure == "accuracy" else (lambda e: e.details.get(measure))
    )
    return {e.seed: read(e) for e in evaluations if e.status == "ok" and read(e) is not None}


def _seed(evaluation: Any) -> dict[str, Any]:
    names = ("seed", "status", "reason", "accuracy", "latency_ms", "latency_ratio", "seconds")
    found = {name: getattr(evaluation, name) for name in names}
    more: tuple[str, ...] = (
        "loss",
        "perplexity",
        "tail_loss",
        "loss_sum",
        "tokens_per_s",
        "steps",
        "losses",
    )
    more += ("noisy", "network_macs", "int8_macs", "float_parts", "calibration_images")
    kept = {name: evaluation.details[name] for name in more if name in evaluation.details}
    return found | kept


def print_rows(rows: list[dict[str, Any]], study: str, fidelity: Fidelity) -> None:
    """As a table, and below it how much of each network is in INT8."""
    from syno.report import format as fmt
    from syno.store.records import FLOAT32

    measure = "loss" if fidelity.task == "text" else "accuracy"
    timed = any(row["latency_ms"] is not None for row in rows)
    lines = []
    for row in rows:
        failed = [f"seed {s['seed']}: {s['reason']}" for s in row["seeds"] if s["status"] != "ok"]
        lines.append(
            [
                row["name"] if row["precision"] == FLOAT32 else f"{row['name']} {row['precision']}",
                (row["key"] or "")[:8],
                _spread(row[measure], measure),
                _pair(row[f"{measure}_beside_baseline"], measure),
                *([_spread(row["accuracy"], "accuracy")] if measure == "loss" else []),
                fmt.count(row["macs"]),
                fmt.count(row["params"]),
                *([_latency(row)] if timed else []),
                fmt.duration(row["seconds"]),
                "; ".join(failed) or ("ok" if row["ok"] else "not trained"),
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
        if row["precision"] != FLOAT32 and row["ok"]:
            screen.print(_share(row), soft_wrap=True)


def _latency(row: dict[str, Any]) -> str:
    if row["latency_ms"] is None:
        return "-"
    return f"{row['latency_ms']:.3g} ms (x {row['latency_ratio']:.2f})"


def _share(row: dict[str, Any]) -> str:
    """How much of a network is in INT8."""
    seed = row["seeds"][0]
    share = seed["int8_macs"] / seed["network_macs"]
    parts = ", ".join(f"{count} x {part}" for part, count in seed["float_parts"].items())
    rest = f"; in float32: {parts}" if parts else ""
    return f"{row['name']} in INT8: {share:.1%} of the network's multiply-adds{rest}"


def _number(value: float, measure: str, *, sign: bool = False) -> str:
    shown = value * 100 if measure == "accuracy" else value
    places = 2 if measure == "accuracy" else 4
    return f"{shown:{'+' if sign else ''}.{places}f}"


def _spread(spread: dict[str, Any] | None, measure: str) -> str:
    if spread is None:
        return "-"
    unit = " %" if measure == "accuracy" else ""
    if spread["deviation"] is None:
        return _number(spread["mean"], measure) + unit
    return (
        f"{_number(spread['mean'], measure)} ± {_number(spread['deviation'], measure)}{unit}"
        f" ({spread['count']})"
    )


def _pair(pair: dict[str, Any] | None, measure: str) -> str:
    if pair is None:
        return ""
    shown = _number(pair["difference"], measure, sign=True)
    if pair["low"] is None:
        return shown
    low, high = (_number(pair[key], measure, sign=True) for key in ("low", "high"))
    return f"{shown} ({low} to {high}), better in {pair['wins']} of {pair['count']}"
