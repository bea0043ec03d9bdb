"""The tree search of the paper."""

from __future__ import annotations

import math

from syno import _core
from syno.study.members import Members
from syno.study.methods.learning import LearningMethod, positive
from syno.study.methods.method import share


class TreeSearch(LearningMethod):
    """Descends from partial graph to partial graph by upper confidence bounds.

    It is the search of the paper (Zhuo et al., "Syno: Structured Synthesis for Neural Operators",
    section 7.2) with the constants of its authors: UCB1-tuned, progressive widening, the order of
    new children by all-moves-as-first, and a share of random samples.

    Args:
        members: the operators of the space.
        seed: of the random numbers.
        exploration: the weight of the confidence bound.
        widening: a node with n visits has n to this power children.
        all_moves: how many visits of a child its mean over the whole space is worth.
        samples: the share of proposals that are sampled.
        power: the reward is the value of an operator, from 0 to 1, to this power.
        pending: what a running trial below a child takes off its bound.
    """

    is_ordered = True

    def __init__(
        self,
        members: Members,
        seed: int,
        *,
        exploration: float = 4 * math.sqrt(2),
        widening: float = 0.8,
        all_moves: float = 3.0,
        samples: float = 0.3,
        power: float = 4.0,
        pending: float = 0.3,
    ) -> None:
        super().__init__(members, seed)
        self._options = {
            "exploration": positive("exploration", exploration),
            "widening": share("widening", widening),
            "all_moves": positive("all_moves", all_moves, zero=False),
            "samples": share("samples", samples),
            "power": positive("power", power, zero=False),
            "pending": positive("pending", pending),
        }

    def make_core(self) -> _core.SearchMethod:
        """See `LearningMethod`."""
        return _core.TreeSearch(self._members.search_space, self._seed, **self._options)
