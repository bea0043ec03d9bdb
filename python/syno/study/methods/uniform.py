"""Uniform sampling."""

from __future__ import annotations

from syno.operators.operator import Operator
from syno.study.members import Members
from syno.study.methods.history import History
from syno.study.methods.method import choose
from syno.study.methods.proposed import Proposed


class UniformSampling:
    """Samples uniformly without replacement."""

    foresees = True

    def __init__(self, members: Members, seed: int) -> None:
        self._members = members
        self._seed = seed
        self._proposed = Proposed([member.key for member in members])

    def propose(self, history: History) -> Operator | None:
        """Select an operator whose key was not proposed yet, with equal probabilities."""
        self._proposed.follow(history)
        if not self._proposed.left:
            return None
        number = choose(range(self._proposed.left), self._seed, history.ask, "draw")
        return self._members[self._proposed.unused(number)].operator
