"""What search methods are compared with beside each other.

`oracle` is the limit of any method: what a perfect ranking would reach that knows as little as one
training. It reads the results of the table. `largest` learns nothing from results.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from syno._util import checks
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.study.methods.history import History
from syno.study.methods.method import Method
from syno_lab.benchmark.noise import noise_of
from syno_lab.benchmark.problem import Problem


class Oracle:
    """Proposes operators from the best to the worst, by true values with the noise of a training.

    With several objectives, they are ordered by fronts, as ratings of results are.

    Args:
        problem: the table and its objectives.
        seed: of the noise.
        noise: the standard deviation of a training in the unit of the objective; None for that of
            the table.
    """

    foresees = True

    def __init__(self, problem: Problem, seed: int, *, noise: float | None = None) -> None:
        if noise is None:
            measured = noise_of(problem.table)
            if measured is None:
                raise UserError(
                    f"the noise of table '{problem.table.name}' is not known: too few operators "
                    "were trained twice\n  what to do: give it, as oracle:noise=0.005"
                )
            noise = measured.deviation
        checks.number("'noise'", noise)
        words = random.Random(f"{seed}:oracle")
        noises = {key: words.gauss(0.0, noise) for key in sorted(problem.table.keys)}
        ratings = problem.noisy_ratings(noises)
        place = {key: number for number, key in enumerate(problem.table.keys)}
        order = sorted(problem.table.keys, key=lambda key: (-ratings[key], key))
        self._operators = [problem.table.operators[place[key]] for key in order]

    def propose(self, history: History) -> Operator | None:
        """Select the best operator that was not proposed."""
        return _first(self._operators, history)


class Largest:
    """Proposes operators from the most MACs to the fewest; equal ones in a random order.

    A model of results has to be better than this to be worth its name.

    Args:
        problem: the table.
        seed: of the random order.
    """

    foresees = True

    def __init__(self, problem: Problem, seed: int) -> None:
        table = problem.table
        macs = {row.key: row.macs for row in table.rows}
        ties = random.Random(f"{seed}:largest")
        tie = {key: ties.random() for key in sorted(table.keys)}
        place = {key: number for number, key in enumerate(table.keys)}
        order = sorted(table.keys, key=lambda key: (-macs[key], tie[key]))
        self._operators = [table.operators[place[key]] for key in order]

    def propose(self, history: History) -> Operator | None:
        """Select the largest operator that was not proposed."""
        return _first(self._operators, history)


REFERENCES: Mapping[str, Callable[..., Method]] = {"oracle": Oracle, "largest": Largest}


def _first(operators: Sequence[Operator], history: History) -> Operator | None:
    used = history.keys
    return next((each for each in operators if each.key not in used), None)
