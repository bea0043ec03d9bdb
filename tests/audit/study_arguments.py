"""Callees (arguments.py) that train, measure, trace networks, or read stores and files."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import torch
from tests.audit.arguments import Callee, net, slotted, x
from tests.audit.stores import small_store
from tests.audit.valid import folder

import syno
from syno.adaptation.pipeline.adapt import _goals
from syno.codegen import export as exports
from syno.data import load
from syno.engines import compare
from syno.inference import quantize
from syno.measure import latency
from syno.prediction import LatencyPredictor
from syno.surrogate.data import FEATURES, SurrogateData
from syno.tune.grid import read_grid
from syno.tune.tasks import tasks_of


@functools.cache
def store() -> str:
    path = folder() / "arguments.db"
    small_store(path)
    return str(path)


@functools.cache
def surrogate() -> str:
    path = folder() / "surrogate.json"
    rows = torch.zeros(2, len(FEATURES)).numpy()
    SurrogateData("here", rows, (0.5, 0.6)).save(path)
    return str(path)


def _predictor() -> LatencyPredictor:
    from tests.audit.entries import _predictors

    return LatencyPredictor.from_json(_predictors()[0])


@functools.cache
def predictor() -> str:
    path = folder() / "predictor.json"
    _predictor().save(path)
    return str(path)


def _trials(**given: Any) -> None:
    found = syno.load_study(store(), "digits-1")
    found.front(given["cost"])
    found.trial(given["key"])
    if given["key"] != "baseline":
        found.operator(given["key"])


GRID = {
    "targets": [{"name": "here", "prefix": "tuned", "threads": 1}],
    "operators": ["conv2d"],
    "layers": ["8x8"],
    "models": [],
    "back_ends": ["cpp"],
    "rounds": 30,
    "trials": 4,
    "binding": {"g": 2},
}


def grid(content: Any) -> None:
    """A grid from a file, and its tasks."""
    path = folder() / "grid.json"
    try:
        text = json.dumps(content, skipkeys=True, default=str)
    except (ValueError, RecursionError) as error:
        raise syno.UserError("Python itself writes no such JSON") from error
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    for task in tasks_of(read_grid(path)):
        repr(task), str(task.folder)


def searched(**given: Any) -> None:
    """A search of one operator with an evaluation that takes no time."""
    syno.search(
        slotted(),
        **{"evaluate": lambda net: 0.5, "example_input": x()[:1]} | given,
        isolation=syno.IsolationOptions(isolate=False),
        timing=syno.TimingOptions(repeats=20, latency="eager"),
        space=syno.SpaceOptions(max_nodes=100),
    )


READING: dict[str, Callee] = {
    "load_study": Callee(syno.load_study, lambda: {"store": store(), "study": "digits-1"}),
    "StudyResults": Callee(_trials, lambda: {"cost": "macs", "key": "baseline"}),
    "select": Callee(
        syno.select,
        lambda: {
            "store": store(), "study": "digits-1", "top": 2, "within": None,
            "reference": "baseline", "by": "latency", "diverse": False, "least_distance": 1.0,
            "front": False, "out": None,
        },
    ),
    "SurrogateData.load": Callee(SurrogateData.load, lambda: {"path": surrogate()}),
    "SurrogateData.save": Callee(
        lambda **given: SurrogateData.load(surrogate()).save(**given), lambda: {"path": "s.json"}
    ),
    "SurrogateData.from_json": Callee(
        SurrogateData.from_json, lambda: {"content": json.loads(Path(surrogate()).read_text())}
    ),
    "LatencyPredictor.load": Callee(LatencyPredictor.load, lambda: {"path": predictor()}),
    "LatencyPredictor.save": Callee(
        lambda **given: _predictor().save(**given), lambda: {"path": "p.json"}
    ),
    "data.load": Callee(
        load,
        lambda: {
            "name": "digits", "data_dir": None, "size": None, "channels": None,
            "skip_damaged": False, "cache": False, "progress": False,
        },
        most=64,
    ),
    "adapt, its goals": Callee(
        _goals, lambda: {"latency": "0.5x", "slots": None, "macs": ["40M"], "params": 1e6}
    ),
}  # fmt: skip
TRACING: dict[str, Callee] = {
    "quantize": Callee(
        quantize,
        lambda: {
            "net": net(), "calibration": [x()], "keep": ["0"], "formats": "int8",
            "most_error": 0.05,
        },
    ),
    "compile": Callee(
        syno.compile,
        lambda: {
            "net": net(), "example_input": x(), "convolutions": True, "missing": "pytorch",
            "tuned": False, "verify": True,
        },
    ),
    "export_network": Callee(
        exports.export_network,
        lambda: {
            "net": net(), "path": "network", "example_input": x(), "format": "cpp-network",
            "fold_weights": False, "precision": "float32",
        },
    ),
    "compare_engines": Callee(
        compare.compare_engines,
        lambda: {"networks": {"a": net()}, "example": x(), "names": (), "threads": 1, "rounds": 2},
        most=32,
    ),
    "latency": Callee(
        latency,
        lambda: {
            "net": net(), "input_shape": (3, 8, 8), "baseline": None, "verifications": (),
            "repeats": 20, "warmup": 1, "threads": 1, "tokens": None,
        },
        most=32,
    ),
    "search": Callee(
        searched,
        lambda: {
            "evaluations": 1, "seconds": None, "seed": 0, "method": "uniform", "objective": (),
            "constraint": (), "retrain": 0, "patience": None, "store": "sqlite://", "name": None,
            "maximize": True, "metric": None, "evaluate": lambda net: 0.5, "example_input": x()[:1],
            "jobs": None, "needs": (),
        },
        most=2,
    ),
}  # fmt: skip
