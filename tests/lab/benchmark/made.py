"""Small tables that are made up: scores are known, and nothing is trained."""

from __future__ import annotations

import random
from dataclasses import replace

from syno.network.sampler import Sampler
from syno.operators.specification import Specification
from syno_lab.benchmark import BenchmarkTable, Configuration, TableResult, TableRow
from syno_lab.benchmark.table import BASELINE

SPECIFICATION = Specification(
    "[N, C_in: unordered, H, H]",
    "[N, C_out: unordered, H, H]",
    ["N: 0", "C_in: 2", "C_out: 4", "H: 0"],
    ["k=3: 2", "s=2: 1"],
    bindings=[{"C_in": 8, "C_out": 8, "H": 8}],
    passed_through=[(0, 0)],
    max_depth=6,
    max_splits=1,
    min_unfold_ratio=1.3,
)


def configuration(**changes: object) -> Configuration:
    """A configuration that trains in milliseconds; the network has one slot of two sizes."""
    given: dict[str, object] = {
        "name": "made",
        "summary": "a table of a test",
        "data": "digits",
        "model": "cnn-small",
        "model_options": {"width": 8, "layers": 1, "stages": 1},
        "specification": {
            "input": "[N, C_in: unordered, H, H]",
            "output": "[N, C_out: unordered, H, H]",
            "primary": ["N: 0", "C_in: 2", "C_out: 4", "H: 0"],
            "coefficient": ["k=3: 2"],
            "passed_through": [[0, 0]],
            "max_depth": 4,
            "min_unfold_ratio": 1.3,
            "element_wise_weights": True,
        },
        "fidelity": {
            "name": "digits",
            "images": 60,
            "epochs": 2,
            "batch": 30,
            "least_accuracy": [[1, 0.0]],
        },
        "least_macs": 0.0,
        "repeated": 2,
        "best": 2,
    }
    return Configuration.from_json(given | changes)


def table(*, noise: float = 0.0, seeds: int = 1, trained: int | None = None) -> BenchmarkTable:
    """A table whose operators have the accuracies 0.2, 0.2 + 0.6 / n, ... in a random order."""
    random_ = random.Random(0)
    operators = Sampler.from_specification(SPECIFICATION).operators
    rows = [TableRow(o.key, o.text, int(o.macs()), int(o.params())) for o in operators]
    random_.shuffle(rows)
    order = random_.sample(range(len(rows)), len(rows))
    results = [
        TableResult(
            number,
            seed,
            accuracy := 0.2 + 0.6 * order[number] / len(rows) + noise * random_.gauss(0, 1),
            (accuracy / 2, accuracy),
            (1.0 - accuracy,),
            random_.uniform(1.0, 5.0),
        )
        for number in range(len(rows) if trained is None else trained)
        for seed in range(seeds)
    ]
    return BenchmarkTable(configuration(), SPECIFICATION, {"rules": "1"}, rows, 1000, 10, results)


def with_original(made: BenchmarkTable) -> BenchmarkTable:
    """The table with an accuracy of 0.5 of the original network, which costs most."""
    macs = max(row.macs for row in made.rows) + 1
    original = TableResult(BASELINE, 0, 0.5, (0.5,), (0.5,), 1.0)
    return replace(made, baseline_macs=macs, results=[original, *made.results])
