"""What the results of one study are worth for a search in another space: replays on two tables.

    python bench/transfer.py --out bench/results/transfer.json
    python bench/transfer.py --studies gpt2.db:one gpt2.db:two --table text \
        --out bench/results/transfer_gpt2.json

A study is a random sample of the operators of one table with one training each. On the other table,
`surrogate` is replayed from nothing, from nothing without its trend, and with the study as its warm
start. The figures are those of `syno bench search`; `correlation` is Spearman's, of what a model of
the study predicts for the operators of the other table, and their true scores.

With `--studies`, the operators of real searches take the place of one table. `correlation_back` is
that of a model of samples of the table, and the results of the studies.
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

from syno.features import FEATURES, FeatureTable
from syno.operators.operator import Operator
from syno.operators.specification import read_specification
from syno.store import Store
from syno.store.environment import capture_environment
from syno.surrogate import SurrogateData, fit_model, normal_scores
from syno.surrogate.models import rank_correlation
from syno_lab.benchmark import MethodSpec, compare_methods, load
from syno_lab.benchmark.table import BenchmarkTable

COUNT = 100


def study(table: BenchmarkTable, seed: int) -> SurrogateData:
    """The results of `COUNT` random operators, one training each."""
    order = np.random.default_rng(seed).permutation(len(table.keys))
    keys = [table.keys[number] for number in order[:COUNT]]
    found = {key: table.value(table.results_of(key)[table.seeds(key)[0]]) for key in keys}
    good = {key: table.objective.score(value) for key, value in found.items() if value is not None}
    return SurrogateData(table.name, _features(table, list(good)), tuple(good.values()))


def correlation(data: SurrogateData, rows: np.ndarray, scores: np.ndarray, seed: int) -> float:
    """How well a model of a study ranks other operators with these features and scores."""
    model = fit_model("forest", data.rows, normal_scores(data.values), seed=seed)
    return rank_correlation(model.predict(rows).mean, scores)


def _all(table: BenchmarkTable) -> tuple[np.ndarray, np.ndarray]:
    """The features and true scores of the operators of a table."""
    return _features(table, table.keys), np.array([table.scores[key] for key in table.keys])


def _features(table: BenchmarkTable, keys: Sequence[str]) -> np.ndarray:
    places = [table.members.place(key) for key in keys]
    return table.members.features([place for place in places if place is not None])


def joined(names: Sequence[str]) -> SurrogateData:
    """The operators of several studies with one objective and fidelity, by their results.

    An operator that several of them trained counts once, with the first result.
    """
    found: dict[str, tuple[Operator, float]] = {}
    for name in names:
        path, _, wanted = name.rpartition(":")
        with Store.open(path, create=False, read_only=True) as store:
            summary = store.summary(wanted or None)
        specification = read_specification(summary.study.specification)
        for each in summary.ended:
            value = summary.quality(each)
            if value is not None and each.text is not None and each.key is not None:
                operator = Operator.from_text(each.text, specification)
                found.setdefault(each.key, (operator, summary.objective.score(value)))
    operators = [operator for operator, _ in found.values()]
    values = tuple(value for _, value in found.values())
    return SurrogateData(", ".join(names), FeatureTable().matrix(operators), values)


def measured_studies(
    names: Sequence[str], target: BenchmarkTable, seeds: int, trials: int
) -> dict[str, object]:
    """Replay searches on a table from real studies, and rank their operators by the table."""
    data = joined(names)
    scores = np.array(data.values)
    macs = data.rows[:, list(FEATURES).index("log_macs")]
    return {
        "studies": [name.rpartition("/")[2] for name in names],
        "operators": len(data),
        "correlation": correlation(data, *_all(target), 0),
        "correlation_back": statistics.fmean(
            correlation(study(target, seed), data.rows, scores, seed) for seed in range(5)
        ),
        "correlation_macs": rank_correlation(macs, scores),
        **replayed(data, target, seeds, trials),
    }


def measured(
    source: BenchmarkTable, target: BenchmarkTable, seeds: int, trials: int
) -> dict[str, object]:
    """Replay searches on `target`, from nothing and from a study of `source`."""
    return {
        "source": source.name,
        "correlation": statistics.fmean(
            correlation(study(source, seed), *_all(target), seed) for seed in range(5)
        ),
        **replayed(study(source, 0), target, seeds, trials),
    }


def replayed(
    data: SurrogateData, target: BenchmarkTable, seeds: int, trials: int
) -> dict[str, object]:
    """Replay searches on `target`, from nothing and from `data`."""
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
        "target": target.name,
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
    parser.add_argument("--studies", nargs="+", metavar="STORE:STUDY")
    parser.add_argument("--table", default="text")
    given = parser.parse_args()
    limits = (given.seeds, given.trials)
    if given.studies:
        pairs = [measured_studies(given.studies, load(given.table), *limits)]
    else:
        images, text = load("images"), load("text")
        pairs = [measured(a, b, *limits) for a, b in ((images, text), (text, images))]
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
