"""What a training gave: a value for success and failure alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from syno._util.json_types import JsonObject

Status = Literal["ok", "error", "timeout", "rejected", "paused"]


@dataclass(frozen=True)
class EpochPoint:
    """One finished epoch: mean loss and accuracy over its batches (as trained, augmented), seconds
    since the start, and the hold-out accuracy where it was measured then.

    For text an epoch is a twentieth of the training, and accuracy the share of next tokens that
    have the greatest score.
    """

    epoch: int
    loss: float
    train_accuracy: float
    seconds: float
    accuracy: float | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of `train`.

    status: `ok`; `rejected` (a stopper saw no hope); `timeout` (the deadline passed); `paused` (it
        goes on from its checkpoint); `error` (the network failed while running).
    reason: a short name, empty for ok: `non_finite_loss`, `loss_above_chance`, `diverging`,
        `below_least_accuracy`, `slow_step`, `memory`, `deadline`, `epoch` and `signal` (paused),
        `out_of_memory`, `runtime_error`, `non_finite_scores`, or that of a stopper of one's own.
    detail: the reason in words.
    accuracy: share of the held-out images (or next tokens) that have the greatest score, 0 to 1,
        after the last epoch, or where it was paused after one; otherwise None.
    curve: finished epochs.    loss_sum: sum over finished epochs of the mean loss (a cheap signal:
        Ru et al. 2021, "Speedy performance estimation").    tail_loss: mean training loss of the
        last fifth of the steps, the paper's score for language models.
    seconds: wall-clock time of training and evaluation, pauses left out.    threads: torch's, while
        training.    step_s: median seconds of a step.    peak_bytes: greatest memory seen between
        steps: of the process, or on a GPU of tensors.

    Text: loss (nats a token), perplexity and bits_a_byte on the held-out tokens; tokens_seen;
    tokens_per_s while training.
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
    steps: int = 0
    tail_loss: float | None = None
    step_s: float | None = None
    peak_bytes: int | None = None
    loss: float | None = None
    perplexity: float | None = None
    bits_a_byte: float | None = None
    tokens_seen: int = 0
    tokens_per_s: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the network was trained to the end."""
        return self.status == "ok"

    @property
    def why(self) -> str:
        """The reason with its detail, in words; empty for ok."""
        return f"{self.reason}: {self.detail}" if self.detail else self.reason

    def to_json(self) -> JsonObject:
        """All fields, for storage."""
        return asdict(self)

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Outcome:
        """The inverse of `to_json`; also reads what was stored with fewer fields."""
        curve = tuple(EpochPoint(**point) for point in fields["curve"])
        return Outcome(**{**fields, "curve": curve})
