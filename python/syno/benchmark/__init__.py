"""A benchmark of search methods: tables of trained operators, and replays without training."""

from syno.benchmark.configuration import Configuration
from syno.benchmark.experiment import SearchResults, compare_methods
from syno.benchmark.generator import generate, new_table
from syno.benchmark.goal import Goal
from syno.benchmark.noise import Noise, OrbitNoise, noise_of, orbit_noise_of
from syno.benchmark.scores import Comparison, MethodScore, Quartiles, Reach, compare, score
from syno.benchmark.simulation import MethodSpec, Replay, Step, replay, replay_all
from syno.benchmark.table import Latency, Result, Row, Table, load

__all__ = [
    "Comparison",
    "Configuration",
    "Goal",
    "Latency",
    "MethodScore",
    "MethodSpec",
    "Noise",
    "OrbitNoise",
    "Quartiles",
    "Reach",
    "Replay",
    "Result",
    "Row",
    "SearchResults",
    "Step",
    "Table",
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
