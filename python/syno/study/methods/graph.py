"""Monte-Carlo graph search."""

from __future__ import annotations

from collections.abc import Sequence

from syno import _core
from syno._util import checks
from syno.study.members import Members
from syno.study.methods.history import History
from syno.study.methods.learning import LearningMethod, positive
from syno.study.methods.method import share


class GraphSearch(LearningMethod):
    """Descends through partial graphs, each of which is one node however it is reached.

    The value of a node mixes the mean and the best of all results below it. `graph_search.h`
    derives the search from the literature.

    Args:
        members: the operators of the space.
        seed: of the random numbers.
        samples: the number of proposals that are sampled at the start.
        exploration: the weight of what was not visited.
        mix: how much of the value of a node is that of the best operator below it, from 0 to 1.
        pull: how many visits the mean of the parent is worth.
    """

    def __init__(
        self,
        members: Members,
        seed: int,
        *,
        samples: int = 10,
        exploration: float = 1.0,
        mix: float = 0.6,
        pull: float = 1.0,
    ) -> None:
        super().__init__(members, seed)
        self._samples = checks.whole("'samples'", samples, least=0)
        self._options = {
            "exploration": positive("exploration", exploration),
            "mix": share("mix", mix),
            "pull": positive("pull", pull, zero=False),
        }

    def before_proposal(self, core: _core.SearchMethod, history: History) -> None:
        """See `LearningMethod`."""
        assert isinstance(core, _core.GraphSearch)
        core.set_prior([] if (values := self.prior(history)) is None else list(values))

    def prior(self, history: History) -> Sequence[float] | None:
        """Return what a surrogate predicts for each member, in the unit of the values.

        There is none; a subclass that has a surrogate may return its predictions, which must be a
        function of the history.
        """
        return None

    def make_core(self) -> _core.SearchMethod:
        """See `LearningMethod`."""
        return _core.GraphSearch(
            self._members.search_space, self._seed, samples=self._samples, **self._options
        )
