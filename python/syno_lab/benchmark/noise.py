"""How much the results of one operator differ by seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from syno.space.orbits import mean_difference
from syno_lab.benchmark.table import BASELINE, BenchmarkTable


@dataclass(frozen=True)
class Noise:
    """The noise of one training, from the operators that were repeated at random.

    operators: their number.
    deviation: the standard deviation of a result around the mean of its operator.
    spearman: the rank correlation of the results with the two first seeds.
    difference: the mean difference of these results.
    """

    operators: int
    deviation: float
    spearman: float
    difference: float


def noise_of(table: BenchmarkTable) -> Noise | None:
    """Compute the noise from a uniform sample of operators; None with fewer than three of them.

    The best operators, which have more seeds, are left out unless they are in the sample: results
    that are selected for being high would give too small a value.
    """
    pairs = []
    for number, results in table.by_operator.items():
        if number != BASELINE and number < table.configuration.repeated:
            values = [table.value(results[seed]) for seed in (0, 1) if seed in results]
            if len(values) == 2 and None not in values:
                pairs.append(values)
    if len(pairs) < 3:
        return None
    found = np.array(pairs, dtype=float)
    differences = found[:, 0] - found[:, 1]
    deviation = float(np.sqrt(np.mean(differences**2) / 2))
    spearman = float(stats.spearmanr(found[:, 0], found[:, 1]).statistic)
    return Noise(len(found), deviation, spearman, float(np.abs(differences).mean()))


@dataclass(frozen=True)
class OrbitNoise:
    """How far results of operators in one orbit differ, which train alike if the data is symmetric.

    orbits: the number of orbits; pairs: of operators in one orbit that have a result.
    within: the mean difference of two operators of one orbit, trained with the first seed.
    seeds: that of two trainings of one operator with other seeds; None if they are not known.
    between: that of two operators of different orbits.
    """

    orbits: int
    pairs: int
    within: float
    seeds: float | None
    between: float


def orbit_noise_of(table: BenchmarkTable) -> OrbitNoise | None:
    """Compare the operators of each orbit; None without symmetries, or without a pair."""
    values = {}
    for number, results in table.by_operator.items():
        first = results.get(0)
        value = None if first is None else table.value(first)
        if value is not None:
            values[number] = value
    groups = [[values[n] for n in orbit if n in values] for orbit in table.orbits]
    within, pairs = mean_difference(groups)
    if not pairs:
        return None
    between, _ = mean_difference([[group[0] for group in groups if group]])
    noise = noise_of(table)
    seeds = None if noise is None else noise.difference
    return OrbitNoise(len(groups), pairs, within, seeds, between)
