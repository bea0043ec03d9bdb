"""Tables in the format of the blackbox repository of Syne Tune (`blackbox_tabular.serialize`).

Syne Tune is not needed to write them. A folder has the files

- configspace.json: one hyperparameter, `operator`, with the keys as its values;
- fidelityspace.json, fidelities_values.npy: the epochs, from 1 on;
- hyperparameters.parquet: the column `operator`, a row for each operator;
- objectives_evaluations.npy: float32 [1, operators, seeds, epochs, objectives];
- metadata.json: the names of the objectives, of the task, and which objectives are metric and time.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from syno._util.errors import UserError
from syno_lab.benchmark.parquet import write_text_column
from syno_lab.benchmark.table import Result, Table

ERROR, LOSS, TIME = "metric_valid_error", "metric_valid_loss", "metric_elapsed_time"
COSTS = ("macs", "params")
HYPERPARAMETER = "operator"
FIDELITY = "hp_epoch"


def write_blackbox(table: Table, folder: Path) -> None:
    """Write a table as a blackbox of Syne Tune.

    It has the seeds that every operator was trained with, and the operators that did not fail. The
    metric is the error, 1 minus the validation accuracy, after each epoch, and for text the
    validation loss at the end; the elapsed time is the seconds up to that epoch.

    Args:
        table: a table with an accuracy after each epoch.
        folder: is created; existing files are replaced.

    Raises:
        UserError: if operators have no accuracy after each epoch, or no seed in common.
    """
    trained = {number: table.results_of(key) for key, number in table.numbers.items()}
    good = {
        number: results
        for number, results in trained.items()
        if all(result.accuracy is not None for result in results.values())
    }
    seeds = sorted(set.intersection(*(set(results) for results in good.values()))) if good else []
    curves = {n: {seed: _curve(table, r) for seed, r in each.items()} for n, each in good.items()}
    epochs = {len(curve) for each in curves.values() for curve in each.values()}
    if not seeds or len(epochs) != 1:
        raise UserError(
            f"table '{table.name}' cannot be written as a blackbox\n"
            "  expected: operators with a seed in common, and an accuracy after each epoch"
        )
    (count,) = epochs
    metric = LOSS if table.objective.is_entropy else ERROR
    names = (metric, TIME, *COSTS)
    values = np.empty((1, len(good), len(seeds), count, len(names)), np.float32)
    for place, (number, results) in enumerate(good.items()):
        row = table.rows[number]
        for turn, seed in enumerate(seeds):
            for epoch, value in enumerate(curves[number][seed]):
                seconds = results[seed].seconds * (epoch + 1) / count
                values[0, place, turn, epoch] = (value, seconds, row.macs, row.params)
    keys = [table.rows[number].key for number in good]
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "objectives_evaluations.npy", values, allow_pickle=False)
    np.save(folder / "fidelities_values.npy", np.arange(1, count + 1), allow_pickle=False)
    write_text_column(folder / "hyperparameters.parquet", HYPERPARAMETER, keys)
    _write(folder / "configspace.json", {HYPERPARAMETER: _categorical(keys)})
    _write(folder / "fidelityspace.json", {FIDELITY: _integers(1, count)})
    metadata = {
        "metric_elapsed_time": TIME,
        "metric_default": metric,
        "resource_attr": FIDELITY,
        "objectives_names": list(names),
        "task_names": [table.name],
    }
    _write(folder / "metadata.json", metadata)


def _curve(table: Table, result: Result) -> list[float]:
    if table.objective.is_entropy:
        return [] if result.loss is None else [result.loss]
    return [1 - accuracy for accuracy in result.curve]


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _categorical(values: list[str]) -> dict[str, object]:
    return {
        "domain_cls": "Categorical",
        "domain_kwargs": {"categories": values},
        "sampler_cls": "Uniform",
        "sampler_kwargs": {},
    }


def _integers(low: int, high: int) -> dict[str, object]:
    return {
        "domain_cls": "Integer",
        "domain_kwargs": {"lower": low, "upper": high},
        "sampler_cls": "Uniform",
        "sampler_kwargs": {},
    }
