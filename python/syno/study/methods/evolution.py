"""Regularized evolution."""

from __future__ import annotations

from syno import _core
from syno._util import checks
from syno._util.errors import UserError
from syno.study.members import Members
from syno.study.methods.learning import LearningMethod


class Evolution(LearningMethod):
    """Mutates the best of a random tournament; the oldest operators leave the population.

    A mutation is one move to a neighbor, as in local search. See Real et al., "Regularized
    Evolution for Image Classifier Architecture Search" (2019).

    Args:
        members: the operators of the space.
        seed: of the random numbers.
        population: the number of latest operators with a result from which parents come; as many
            proposals are sampled at the start.
        tournament: the number of operators of the population of which the best is the parent.
        neighbors: the number of nearest operators of which one is the child.
    """

    def __init__(
        self,
        members: Members,
        seed: int,
        *,
        population: int = 30,
        tournament: int = 10,
        neighbors: int = 20,
    ) -> None:
        super().__init__(members, seed)
        self._options = {
            "population": checks.whole("'population'", population, least=2),
            "tournament": checks.whole("'tournament'", tournament, least=1),
            "neighbors": checks.whole("'neighbors'", neighbors, least=1),
        }
        if tournament > population:
            raise UserError(
                f"the tournament has {tournament} operators, but the population has {population}\n"
                "  expected: a tournament of at most the population"
            )

    def make_core(self) -> _core.SearchMethod:
        """See `LearningMethod`."""
        return _core.Evolution(self._members.search_space, self._seed, **self._options)
