"""Watching one evaluation."""

from __future__ import annotations


class EvaluationObserver:
    """Called while an operator is evaluated, in the thread of the search. Does nothing here."""

    def on_step(self, step: str) -> None:
        """An evaluation enters a step: `verify`, `train`, `measure` or `quantize`."""

    def on_process(self, process: int) -> None:
        """An isolated evaluation began, as the process of this number."""

    def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
        """Training finished an epoch (counted from 1); `loss` is its mean."""

    def on_note(self, text: str) -> None:
        """Something happened that a person who watches should know."""
