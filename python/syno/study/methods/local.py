"""Local search."""

from __future__ import annotations

from syno import _core
from syno._util import checks
from syno.study.members import Members
from syno.study.methods.learning import LearningMethod
from syno.study.methods.method import share


class LocalSearch(LearningMethod):
    """Proposes what is nearest to the best operator so far.

    The first proposals are samples. Then the nearest new neighbor of the best operator is proposed,
    so that a better one becomes the best at once. If all neighbors of the best were proposed, the
    search continues at the next best. See White et al., "Exploring the Loss Landscape in Neural
    Architecture Search" (2021).

    Args:
        members: the operators of the space.
        seed: of the random numbers.
        samples: the number of proposals that are sampled at the start.
        neighbors: the number of nearest operators that are the neighbors of an operator.
        restarts: the share of later proposals that are sampled, which leaves local optima.
        reach: the greatest distance of a neighbor; what is farther away is hardly alike.
    """

    def __init__(
        self,
        members: Members,
        seed: int,
        *,
        samples: int = 10,
        neighbors: int = 20,
        restarts: float = 0.3,
        reach: int = 12,
    ) -> None:
        super().__init__(members, seed)
        self._counts = {
            "samples": checks.whole("'samples'", samples, least=1),
            "neighbors": checks.whole("'neighbors'", neighbors, least=1),
            "reach": checks.whole("'reach'", reach, least=0),
        }
        self._restarts = share("restarts", restarts)

    def make_core(self) -> _core.SearchMethod:
        """See `LearningMethod`."""
        space = self._members.search_space
        return _core.LocalSearch(space, self._seed, restarts=self._restarts, **self._counts)
