"""The limit of any method: what a perfect ranking would reach that knows as little as one training.

It is no search method, because it reads the results of the table.
"""

from __future__ import annotations

import random

from syno._util import checks
from syno._util.errors import UserError
from syno.benchmark.goal import Goal
from syno.benchmark.noise import noise_of
from syno.operators.operator import Operator
from syno.study.methods.history import History

NAME = "oracle"


class Oracle:
    """Proposes operators from the best to the worst, by true values with the noise of a training.

    With several objectives, they are ordered by fronts, as ratings of results are.

    Args:
        goal: the table and its objectives.
        seed: of the noise.
        noise: the standard deviation of a training in the unit of the objective; None for that of
            the table.
    """

    foresees = True

    def __init__(self, goal: Goal, seed: int, *, noise: float | None = None) -> None:
        if noise is None:
            measured = noise_of(goal.table)
            if measured is None:
                raise UserError(
                    f"the noise of table '{goal.table.name}' is not known: too few operators were "
                    "trained twice\n  what to do: give it, as oracle:noise=0.005"
                )
            noise = measured.deviation
        checks.number("'noise'", noise)
        words = random.Random(f"{seed}:oracle")
        noises = {key: words.gauss(0.0, noise) for key in sorted(goal.table.keys)}
        ratings = goal.noisy_ratings(noises)
        place = {key: number for number, key in enumerate(goal.table.keys)}
        order = sorted(goal.table.keys, key=lambda key: (-ratings[key], key))
        self._operators = [goal.table.operators[place[key]] for key in order]

    def propose(self, history: History) -> Operator | None:
        """Select the best operator that was not proposed."""
        used = history.keys
        return next((each for each in self._operators if each.key not in used), None)
