"""The interfaces of evaluators."""

from __future__ import annotations

from typing import Protocol

from syno.operators.operator import Operator
from syno.store import Outcome


class Evaluator(Protocol):
    """Evaluates proposals. A failure is an outcome; an exception ends the run."""

    def baseline(self) -> Outcome:
        """Train and time the original network."""

    def evaluate(self, operator: Operator) -> Outcome:
        """Verify, train and time the network with `operator` in its slots."""

    def repeat(self, operator: Operator, seed: int) -> Outcome:
        """Train the network with `operator` again, with another seed and without a timing."""


class RungEvaluator(Protocol):
    """Evaluates proposals at a rung of a ladder, from 0 for the lowest."""

    def baseline(self, rung: int) -> Outcome:
        """Train and time the original network."""

    def evaluate(self, operator: Operator, rung: int) -> Outcome:
        """Verify, train and time the network with `operator` in its slots."""

    def repeat(self, operator: Operator, seed: int, rung: int) -> Outcome:
        """Train the network with `operator` again, with another seed and without a timing."""
