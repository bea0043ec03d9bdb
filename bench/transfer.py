"""What the results of one study are worth for a search in another space: replays on two tables.

    python bench/transfer.py --out bench/results/transfer.json

A study is a random sample of the operators of one table with one training each. On the other table,
`surrogate` is replayed from nothing, from nothing without its trend, and with the study as its warm
start. The figures are those of `syno bench search`; `correlation` is Spearman's, of what a model of
the study predicts for the operators of the other table, and their true scores.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from syno.benchmark import MethodSpec, compare_methods, load
from syno.benchmark.table import Table
from syno.store.environment import capture_environment
from syno.surrogate import SurrogateData, fit_model, normal_scores
from syno.surrogate.models import rank_correlation

COUNT = 100


def study(table: Table, seed: int) -> SurrogateData:
    """The results of `COUNT` random operators, one training each."""
    order = np.random.default_rng(seed).permutation(len(table.keys))
    keys = [table.keys[number] for number in order[:COUNT]]
    found = {key: table.value(table.results_of(key)[table.seeds(key)[0]]) for key in keys}
    good = {key: table.objective.score(value) for key, value in found.items() if value is not None}
    return SurrogateData(table.name, _features(table, list(good)), tuple(good.values()))


def correlation(data: SurrogateData, table: Table, seed: int) -> float:
    """How well a model of a study ranks the operators of another table."""
    model = fit_model("forest", data.rows, normal_scores(data.values), seed=seed)
    scores = np.array([table.scores[key] for key in table.keys])
    return rank_correlation(model.predict(_features(table, table.keys)).mean, scores)


def _features(table: Table, keys: Sequence[str]) -> np.ndarray:
    places = [table.candidates.place(key) for key in keys]
    return table.candidates.features([place for place in places if place is not None])


def measured(source: Table, target: Table, seeds: int, trials: int) -> dict[str, object]:
    """Replay searches on `target`, from nothing and from a study of `source`."""
    data = study(source, 0)
    found = compare_methods(
        target,
        [
            MethodSpec("uniform"),
            MethodSpec("surrogate", {"trend": 0}, "surrogate without trend"),
            MethodSpec("surrogate"),
            MethodSpec("surrogate", {"warm_start": data.to_json()}, "surrogate with warm start"),
        ],
        seeds=seeds,
        trials=trials,
        progress=lambda done, all_, label: print(f"{done} of {all_} {label}", file=sys.stderr),
    )
    return {
        "source": source.name,
        "target": target.name,
        "correlation": statistics.fmean(
            correlation(study(source, seed), target, seed) for seed in range(5)
        ),
        "methods": [
            {
                "method": each.method,
                "reach": [
                    {"share": r.share, **_plain(r.quartiles), "missed": r.missed}
                    for r in each.reach
                ],
                "regret": {
                    count: statistics.median(values) for count, values in each.regret.items()
                },
            }
            for each in found.scores
        ],
        "comparisons": [
            dataclasses.asdict(each) for each in found.comparisons if "warm" in each.second
        ],
    }


def _plain(quartiles: object) -> dict[str, float | None]:
    values = dataclasses.asdict(quartiles)  # type: ignore[call-overload]
    return {name: value if np.isfinite(value) else None for name, value in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    images, text = load("images"), load("text")
    pairs = [measured(a, b, given.seeds, given.trials) for a, b in ((images, text), (text, images))]
    result = {
        "operators": COUNT,
        "seeds": given.seeds,
        "trials": given.trials,
        "pairs": pairs,
        "environment": dataclasses.asdict(capture_environment(threads=1, rules="")),
    }
    written = json.dumps(result, indent=1)
    if given.out is None:
        print(written)
    else:
        given.out.write_text(written + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
