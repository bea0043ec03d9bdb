"""Uniform sampling."""

from __future__ import annotations

from syno.operators.operator import Operator
from syno.study.candidates import Candidates
from syno.study.methods.history import History
from syno.study.methods.method import choose


class UniformSampling:
    """Samples uniformly without replacement."""

    foresees = True

    def __init__(self, candidates: Candidates, seed: int) -> None:
        self._candidates = candidates
        self._seed = seed

    def propose(self, history: History) -> Operator | None:
        """Select an operator whose key was not proposed yet, with equal probabilities."""
        used = history.keys
        left = [c for c in self._candidates if c.key not in used]
        return choose(left, self._seed, history.ask, "draw").operator if left else None
