"""What a training gave: a value for success and failure alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "error", "timeout", "rejected"]


@dataclass(frozen=True)
class EpochPoint:
    """One finished epoch: mean loss and accuracy over its batches (as trained, augmented), and
    seconds since the start."""

    epoch: int
    loss: float
    train_accuracy: float
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """The result of `train`.

    status: `ok`; `rejected` (a stopper saw no hope); `timeout` (the deadline passed); `error` (the
        network failed while running).
    reason: a short name, empty for ok: `non_finite_loss`, `loss_above_chance`, `deadline`,
        `out_of_memory`, `runtime_error`, `non_finite_scores`, or that of a stopper of one's own.
    detail: the reason in words.
    accuracy: share of the held-out images classified rightly after the last epoch, 0 to 1; None
        unless ok.
    curve: finished epochs.    loss_sum: sum over finished epochs of the mean loss (a cheap signal:
        Ru et al. 2021, "Speedy performance estimation").
    seconds: wall-clock time of training and evaluation.    threads: torch's, while training.
    """

    status: Status
    reason: str
    detail: str
    accuracy: float | None
    curve: tuple[EpochPoint, ...]
    loss_sum: float
    seconds: float
    epochs_done: int
    images_seen: int
    threads: int
    seed: int
    fidelity: str

    @property
    def ok(self) -> bool:
        """Whether the network was trained to the end."""
        return self.status == "ok"

    def to_json(self) -> dict[str, Any]:
        """All fields, for storage."""
        return asdict(self)

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Outcome:
        """The inverse of `to_json`."""
        curve = tuple(EpochPoint(**point) for point in fields["curve"])
        return Outcome(**{**fields, "curve": curve})
