"""How much the results of one operator differ by seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from syno.benchmark.table import BASELINE, Table


@dataclass(frozen=True)
class Noise:
    """The noise of one training, from the operators that were repeated at random.

    operators: their number.
    deviation: the standard deviation of a result around the mean of its operator.
    spearman: the rank correlation of the results with the two first seeds.
    """

    operators: int
    deviation: float
    spearman: float


def noise_of(table: Table) -> Noise | None:
    """Compute the noise from a uniform sample of operators; None with fewer than three of them.

    The best operators, which have more seeds, are left out unless they are in the sample: results
    that are selected for being high would give too small a value.
    """
    pairs = []
    for number, results in table.by_operator.items():
        if number != BASELINE and number < table.configuration.repeated:
            values = [
                table.objective.of(results[seed].accuracy, {"loss": results[seed].loss})
                for seed in (0, 1)
                if seed in results
            ]
            if len(values) == 2 and None not in values:
                pairs.append(values)
    if len(pairs) < 3:
        return None
    found = np.array(pairs, dtype=float)
    deviation = float(np.sqrt(np.mean((found[:, 0] - found[:, 1]) ** 2) / 2))
    spearman = float(stats.spearmanr(found[:, 0], found[:, 1]).statistic)
    return Noise(len(found), deviation, spearman)
