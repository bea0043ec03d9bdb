"""Callbacks of one evaluation."""

from __future__ import annotations


class EvaluationObserver:
    """Is called during an evaluation, in the thread of the search. Its methods do nothing."""

    def on_step(self, step: str) -> None:
        """A step starts: `verify`, `compile`, `train`, `measure` or `quantize`."""

    def on_process(self, process: int) -> None:
        """An isolated evaluation started, in the process with this number."""

    def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
        """An epoch of the training is complete (counted from 1); `loss` is its mean loss."""

    def on_note(self, text: str) -> None:
        """Something happened that the user should know."""
