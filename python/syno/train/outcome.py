"""The outcome of a training, for success and failure alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from syno._util.json_types import JsonObject

Status = Literal["ok", "error", "timeout", "rejected", "paused"]


@dataclass(frozen=True)
class EpochPoint:
    """A completed epoch. For text, an epoch is a twentieth of the training.

    epoch: its number, from 1.
    loss: the mean training loss.
    train_accuracy: the accuracy on the (augmented) training batches, from 0 to 1.
    seconds: since the start of the training.
    accuracy: the validation accuracy, if it was measured after this epoch.
    """

    epoch: int
    loss: float
    train_accuracy: float
    seconds: float
    accuracy: float | None = None


@dataclass(frozen=True)
class TrainingOutcome:
    """The result of `train`.

    status: `ok`; `rejected` (by a stopper); `timeout` (the deadline passed); `paused` (it can be
        resumed from its checkpoint); `error` (the network failed while running).
    reason: a short name, empty for ok: `non_finite_loss`, `loss_above_chance`, `diverging`,
        `below_least_accuracy`, `slow_step`, `memory`, `deadline`, `epoch` and `signal` (paused),
        `out_of_memory`, `runtime_error`, `non_finite_scores`, or that of a custom stopper.
    detail: the reason in words.
    accuracy: the accuracy on the validation split, from 0 to 1, of classes or next tokens. None if
        the training did not complete or pause after an epoch.
    curve: the completed epochs.
    loss_sum: the sum of the mean losses of the completed epochs, a cheap estimate of the
        performance (Ru et al. 2021, "Speedy performance estimation").
    seconds: wall-clock time of training and evaluation, without pauses.
    threads: the number of threads of torch during the training.
    tail_loss: the mean training loss of the last fifth of the steps, which the paper uses for
        language models.
    step_s: the median time of a step in seconds.
    peak_bytes: the peak memory between steps: of the process, or on a GPU of tensors.

    loss: on the validation split; of text in nats per token; None for images.

    Text only:
    perplexity, bits_a_byte: on the validation split.
    tokens_seen: the number of tokens trained on.
    tokens_per_s: the throughput of the training.
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
        """Whether the training is complete."""
        return self.status == "ok"

    @property
    def why(self) -> str:
        """The reason with its detail; empty for ok."""
        return f"{self.reason}: {self.detail}" if self.detail else self.reason

    def to_json(self) -> JsonObject:
        """Return all fields, for storage."""
        return asdict(self)

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> TrainingOutcome:
        """Read the document of `to_json`, including one of an older version with fewer fields."""
        curve = tuple(EpochPoint(**point) for point in fields["curve"])
        return TrainingOutcome(**{**fields, "curve": curve})
