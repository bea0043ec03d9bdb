"""What a search asks of whatever evaluates operators."""

from __future__ import annotations

from typing import Protocol

from syno.operators.operator import Operator
from syno.store import Outcome


class Evaluator(Protocol):
    """Gives the answer to a proposal. A failure is an outcome; an exception ends the run."""

    def baseline(self) -> Outcome:
        """Trains and times the original network."""

    def evaluate(self, operator: Operator) -> Outcome:
        """Verifies, trains and times the network with `operator` in it."""


class RungEvaluator(Protocol):
    """The same at a rung of a ladder, from 0 at the bottom."""

    def baseline(self, rung: int) -> Outcome:
        """Trains and times the original network."""

    def evaluate(self, operator: Operator, rung: int) -> Outcome:
        """Verifies, trains and times the network with `operator` in it."""
