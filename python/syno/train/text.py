"""Training on text: prediction of the next token."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from syno._util.errors import UserError
from syno.data import TextData
from syno.train.fidelities import Fidelity
from syno.train.numerics import Numerics
from syno.train.parallel import ProcessGroup
from syno.train.task import Metrics, NonFiniteScoresError

# A training with a number of steps is reported in 20 parts, and one with a time limit every 50
# steps.
_PARTS = 20
_STEPS = 50


class TextTask:
    """Batches of sequences, and the loss on the validation split.

    An epoch is a twentieth of the steps, or 50 steps if a time limit ends the training.
    """

    def __init__(
        self, data: TextData, fidelity: Fidelity, seed: int, numerics: Numerics, group: ProcessGroup
    ) -> None:
        assert fidelity.context is not None
        self.fingerprint = data.fingerprint
        self.chance = math.log(data.vocabulary)
        self._data, self._context, self._batch = data, fidelity.context, fidelity.batch
        self._seed, self._numerics, self._group = seed, numerics, group
        self._smoothing = fidelity.recipe.label_smoothing
        self._validation_tokens = fidelity.held_tokens
        self.tokens = self._context * self._batch
        if group.world > self._batch:
            raise UserError(
                f"batches of {self._batch} cannot be divided among {group.world} processes\n"
                f"  expected: at most {self._batch} processes"
            )
        if fidelity.steps is None:
            self.steps, self.epochs = _STEPS, 0
            self._total = None
        else:
            self.steps = max(math.ceil(fidelity.steps / _PARTS), 1)
            self.epochs = math.ceil(fidelity.steps / self.steps)
            self._total = fidelity.steps
        data.batches(
            self._context, self._batch, seed
        )  # raises a UserError if the text is too short
        data.validation_batches(self._context, self._batch)

    def batches(self, epoch: int, step: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
        """See Task. The last epoch may have fewer steps."""
        first = epoch * self.steps
        last = first + self.steps if self._total is None else min(first + self.steps, self._total)
        source = self._data.batches(self._context, self._batch, self._seed, first + step)
        own = self._group.part(self._batch)
        for _ in range(first + step, last):
            inputs, targets = next(source)
            yield self._tensor(inputs[own]), self._tensor(targets[own]), self._batch

    def loss(self, scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, int]:
        """See Task. Raises a UserError for scores of another shape."""
        expected = (*targets.shape, self._data.vocabulary)
        if scores.shape != expected:
            raise UserError(
                f"the network gives scores of shape {list(scores.shape)}\n"
                f"  expected: {list(expected)}, one score for each token of '{self._data.name}'"
            )
        flat = scores.flatten(0, 1)
        loss = functional.cross_entropy(
            flat.float(), targets.flatten(), label_smoothing=self._smoothing
        )
        return loss, int((flat.argmax(dim=1) == targets.flatten()).sum())

    def metrics(self, net: nn.Module) -> Metrics:
        """See Task. The loss is the mean loss per token, in nats."""
        return text_metrics(
            net,
            self._data,
            "held",
            context=self._context,
            batch=self._batch,
            numerics=self._numerics,
            tokens=self._validation_tokens,
        )

    def validation(self, samples: int | None = None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """See Task."""
        count = 0
        for inputs, targets in self._data.validation_batches(self._context, self._batch):
            left = len(inputs) if samples is None else samples - count // self._context
            if left <= 0:
                break
            yield self._tensor(inputs[:left]), self._tensor(targets[:left])
            count += targets.size
            if self._validation_tokens is not None and count >= self._validation_tokens:
                break

    def probe(self, net: nn.Module) -> None:
        """See Task."""

    def _tensor(self, ids: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(ids).to(self._numerics.device)


def text_metrics(
    net: nn.Module,
    data: TextData,
    part: str,
    *,
    context: int,
    batch: int,
    numerics: Numerics,
    tokens: int | None = None,
) -> Metrics:
    """Measure loss (nats per token), accuracy and bits per byte on a split of a text.

    Args:
        net: the network, token ids [N, T] -> [N, T, vocabulary].
        data: the text.
        part: `held` for the validation split, or `test`.
        context, batch: tokens of a sequence, and sequences of a batch.
        numerics: device and precision.
        tokens: the least number of tokens, in whole batches; None for all.

    Raises:
        NonFiniteScoresError: if a score is NaN or infinite.
        UserError: if the split is shorter than a context.
    """
    batches = data.validation_batches if part == "held" else data.test_batches
    training = net.training
    net.eval()
    lost, right, count = 0.0, 0, 0
    try:
        with torch.inference_mode():
            for inputs, targets in batches(context, batch):
                with numerics.autocast():
                    scores = net(torch.from_numpy(inputs).to(numerics.device)).flatten(0, 1)
                if not torch.isfinite(scores).all():
                    raise NonFiniteScoresError("the network gives scores that are not finite")
                wanted = torch.from_numpy(targets).to(numerics.device).flatten()
                loss = functional.cross_entropy(scores.float(), wanted, reduction="sum")
                lost += float(loss)
                right += int((scores.argmax(dim=1) == wanted).sum())
                count += len(wanted)
                if tokens is not None and count >= tokens:
                    break
    finally:
        net.train(training)
    mean = lost / count
    bits = data.bits_a_byte(mean, part) if data.text_bytes else None
    return Metrics(right / count, mean, bits)
