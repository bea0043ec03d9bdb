"""A benchmark of search methods: tables of trained operators, and replays without training."""

from syno_lab.benchmark.configuration import Configuration
from syno_lab.benchmark.experiment import SearchResults, compare_methods
from syno_lab.benchmark.generator import generate, new_table
from syno_lab.benchmark.noise import Noise, OrbitNoise, noise_of, orbit_noise_of
from syno_lab.benchmark.problem import Problem
from syno_lab.benchmark.scores import (
    MethodComparison,
    MethodScore,
    Quartiles,
    Reach,
    compare,
    score,
)
from syno_lab.benchmark.simulation import MethodReplay, MethodSpec, replay, replay_all
from syno_lab.benchmark.step import ReplayStep
from syno_lab.benchmark.table import BenchmarkTable, Latency, TableResult, TableRow, load

__all__ = [
    "BenchmarkTable",
    "Configuration",
    "Latency",
    "MethodComparison",
    "MethodReplay",
    "MethodScore",
    "MethodSpec",
    "Noise",
    "OrbitNoise",
    "Problem",
    "Quartiles",
    "Reach",
    "ReplayStep",
    "SearchResults",
    "TableResult",
    "TableRow",
    "compare",
    "compare_methods",
    "generate",
    "load",
    "new_table",
    "noise_of",
    "orbit_noise_of",
    "replay",
    "replay_all",
    "score",
]
