"""How well surrogate models rank operators: cross-validation on a table of trained operators.

    python bench/feature_ranking.py --out bench/results/feature_ranking.json

The table is that of `syno experiment ranking`. A model is fitted to four fifths of the operators
and predicts the others, five times with other folds; the figure is Spearman's rank correlation of
predictions and accuracies (mean of the seeds at the low rung). `curve` fits to few operators and
predicts all others. `feature_ms` is the time of the features of one operator on one core.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from syno.features import FEATURES, GRAPH_FEATURES, MAP_FEATURES, features
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.rules import rule_set
from syno.store.environment import capture_environment
from syno.surrogate import MODELS, fit_model, normal_scores
from syno.surrogate.models import cross_validated, rank_correlation
from syno_lab.experiments.ranking import LOW, RankingFile

TABLE = Path(__file__).parent / "results" / "ranking_cifar10.jsonl"
REPEATS = 5
TRAINED = (20, 40, 60, 90)
# Features of the operator applied several times.
POWERS = tuple(name for name in FEATURES if name.startswith(("second_", "third_")))


def correlation(x: np.ndarray, y: np.ndarray, model: str) -> float:
    """The mean rank correlation over folds that are chosen anew."""
    targets = normal_scores(y)
    return statistics.fmean(
        rank_correlation(cross_validated(model, x, targets, seed=seed), y)
        for seed in range(REPEATS)
    )


def learned(x: np.ndarray, y: np.ndarray, model: str, count: int) -> float:
    """The same after `count` random operators, on all others."""
    found = []
    for seed in range(2 * REPEATS):
        order = np.random.default_rng(seed).permutation(len(y))
        known, rest = order[:count], order[count:]
        fitted = fit_model(model, x[known], normal_scores(y[known]), seed=seed)
        found.append(rank_correlation(fitted.predict(x[rest]).mean, y[rest]))
    return statistics.fmean(found)


def columns(x: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The columns of some features."""
    return x[:, [list(FEATURES).index(name) for name in names]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    table = RankingFile.read(given.table)
    runs = [table.accuracies(LOW, seed) for seed in range(table.settings.seeds)]
    y = np.array([statistics.fmean(r[i] for r in runs) for i in range(len(table.entries))])
    specifications = {
        e.specification: Specification.from_json(e.specification) for e in table.entries
    }
    operators = [Operator.from_text(e.text, specifications[e.specification]) for e in table.entries]
    features(operators[0])
    began = time.process_time()
    x = np.array([list(features(operator).values()) for operator in operators])
    taken = (time.process_time() - began) / len(operators)
    macs = np.array([[e.macs] for e in table.entries], dtype=float)
    params = np.array([[e.params] for e in table.entries], dtype=float)
    without = [name for name in FEATURES if name not in POWERS]
    found = {
        "what": "python bench/feature_ranking.py",
        "operators": len(operators),
        "features": len(FEATURES),
        "feature_ms": round(1000 * taken, 2),
        "seeds": round(
            rank_correlation(*(np.array([r[i] for i in range(len(y))]) for r in runs[:2])), 3
        ),
        "single": {
            "macs": round(rank_correlation(macs[:, 0], y), 3),
            "params": round(rank_correlation(params[:, 0], y), 3),
            **{name: round(rank_correlation(x[:, i], y), 3) for i, name in enumerate(FEATURES)},
        },
        "models": {
            model: {
                "all": round(correlation(x, y, model), 3),
                "map": round(correlation(columns(x, list(MAP_FEATURES)), y, model), 3),
                "graph": round(correlation(columns(x, list(GRAPH_FEATURES)), y, model), 3),
                "without_powers": round(correlation(columns(x, without), y, model), 3),
                "macs": round(correlation(macs, y, model), 3),
            }
            for model in MODELS
        },
        "curve": [
            {"trained": n} | {model: round(learned(x, y, model, n), 3) for model in MODELS}
            for n in TRAINED
        ],
        "environment": vars(capture_environment(threads=1, rules=rule_set((), ()).version)),
    }
    text = json.dumps(found, indent=1) + "\n"
    if given.out is None:
        print(text)
    else:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
