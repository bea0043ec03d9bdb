"""Training on custom data: a `CustomData`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from syno._util.errors import UserError
from syno._util.inputs import Inputs, Targets, arguments, mapped, samples_in
from syno.data.custom import CustomData, Outputs, Samples
from syno.data.random import Stream
from syno.train.fidelities import Fidelity
from syno.train.numerics import Numerics
from syno.train.parallel import ProcessGroup
from syno.train.task import Metrics, NonFiniteScoresError, of_first


class CustomTask:
    """Random batches of the training samples, and the metric on the validation split.

    Every sample comes once in an epoch, in the same order for every network. The fidelity selects
    how many samples are trained on (`images`), and which are for validation.
    """

    tokens = 0

    def __init__(
        self,
        data: CustomData,
        fidelity: Fidelity,
        seed: int,
        numerics: Numerics,
        group: ProcessGroup,
    ) -> None:
        assert fidelity.epochs is not None
        self.fingerprint = data.fingerprint
        # Without classes, no loss is known to be that of a guess. The classes are those of a few
        # samples: `loss` learns how many the network tells apart.
        self.chance = math.inf if data.classes is None else math.log(max(data.classes, 2))
        self.epochs = fidelity.epochs
        self._data, self._seed = data, seed
        self._numerics, self._group = numerics, group
        self._smoothing = fidelity.recipe.label_smoothing
        self._batch = fidelity.batch
        self._fit, self._validation = data.split(fidelity.holdout, fidelity.split_seed)
        if fidelity.images is not None:
            if fidelity.images > len(self._fit):
                raise UserError(
                    f"fidelity '{fidelity.name}' requests {fidelity.images} training samples\n"
                    f"  expected: at most {len(self._fit)}, those of '{data.name}'; "
                    f"{len(self._validation)} are for validation"
                )
            self._fit = self._fit.first(fidelity.images, fidelity.split_seed)
        if self._batch > len(self._fit):
            raise UserError(
                f"batches have {self._batch} samples, and '{data.name}' has {len(self._fit)} to "
                f"train on\n  expected: a batch of at most {len(self._fit)}, of a DataLoader or of "
                "the fidelity:\n            syno.train.fidelity('custom').changed(batch=...)"
            )
        self.steps = -(-len(self._fit) // self._batch)

    def batches(self, epoch: int, step: int) -> Iterator[tuple[Inputs, Targets, int]]:
        """See Task. Batch sizes differ by one at most."""
        order = Stream(self._seed, epoch).permutation(len(self._fit))
        for places in np.array_split(order, self.steps)[step:]:
            own = places[self._group.part(len(places))]
            yield *self._on_device(self._fit, own), len(places)

    def loss(self, scores: Outputs, targets: Targets) -> tuple[torch.Tensor, int]:
        """See Task. Raises a UserError for outputs that do not fit the targets."""
        loss = loss_of(self._data, scores, targets, self._smoothing)
        if self._data.loss is not None:
            return loss, 0
        told_apart = scores.shape[class_dimension(scores, targets)]
        self.chance = max(self.chance, math.log(told_apart))
        right = right_share(scores, targets)
        return loss, round(right * len(targets))

    def metrics(self, net: nn.Module) -> Metrics:
        """See Task. A metric that is maximized is the `accuracy`, one that is minimized the `loss`.

        Raises:
            NonFiniteScoresError: if loss or metric are NaN or infinite.
        """
        data, function = self._data, self._data.metric.function
        lost = measured = 0.0
        training = net.training
        net.eval()
        try:
            with torch.inference_mode():
                for inputs, targets in self.validation():
                    with self._numerics.autocast():
                        scores = net(*arguments(self._numerics.inputs(inputs)))
                    count = samples_in(inputs)
                    lost += count * float(loss_of(data, scores, targets, 0.0))
                    if function is not None:
                        measured += count * float(function(scores, targets))
                    elif data.metric.maximize:
                        measured += count * right_share(scores, targets)
        finally:
            net.train(training)
        loss, value = lost / len(self._validation), measured / len(self._validation)
        if function is None and not data.metric.maximize:
            value = loss
        for name, number in (("loss", loss), (data.metric.name, value)):
            if not math.isfinite(number):
                raise NonFiniteScoresError(f"the {name} on the validation split is {number}")
        return Metrics(value, loss) if data.metric.maximize else Metrics(None, value)

    def validation(self, samples: int | None = None) -> Iterator[tuple[Inputs, Targets]]:
        """See Task."""
        count = len(self._validation)
        for places in of_first(np.array_split(np.arange(count), -(-count // self._batch)), samples):
            yield self._on_device(self._validation, places)

    def probe(self, net: nn.Module) -> None:
        """See Task. The network was checked with a batch when it was prepared."""

    def _on_device(self, samples: Samples, places: np.ndarray) -> tuple[Inputs, Targets]:
        return mapped(lambda each: each.to(self._numerics.device), samples.batch(places))


def loss_of(data: CustomData, scores: Outputs, targets: Targets, smoothing: float) -> torch.Tensor:
    """Return the mean loss of a batch, a scalar.

    Raises:
        UserError: for outputs that do not fit the targets, and for a loss that is no scalar.
    """
    if data.loss is None:
        flat, wanted = _flat(data, scores, targets)
        return functional.cross_entropy(flat.float(), wanted, label_smoothing=smoothing)
    loss = data.loss(scores, targets)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        got = f"shape {list(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise UserError(
            f"the loss of a batch is not a number\n  expected: a scalar      got: {got}"
        )
    return loss.reshape(())


def right_share(scores: torch.Tensor, targets: torch.Tensor) -> float:
    """Return the share of targets that are the class with the greatest score."""
    found = scores.argmax(dim=class_dimension(scores, targets))
    return float((found == targets).double().mean())


def class_dimension(scores: torch.Tensor, targets: torch.Tensor) -> int:
    """Return where classes are: after the batch as in PyTorch, or last as in language models."""
    return 1 if scores.shape[:1] + scores.shape[2:] == targets.shape else -1


def _flat(data: CustomData, scores: Outputs, targets: Targets) -> tuple[torch.Tensor, torch.Tensor]:
    if not isinstance(scores, torch.Tensor):
        raise UserError(
            f"the network gives a {type(scores).__name__}, no tensor of scores\n"
            "  what to do: pass loss= and metric=, functions of what it gives and of the targets"
        )
    outside, inside = list(scores.shape), list(targets.shape)
    first = len(outside) > 1 and outside[:1] + outside[2:] == inside
    last = len(outside) > 1 and outside[:-1] == inside
    if first and last and len(inside) > 1:
        raise UserError(
            f"the network gives {outside}, and the targets of '{data.name}' are {inside}: classes "
            "may be the second or the last dimension\n  what to do: pass loss= and metric="
        )
    if not first and not last:
        raise UserError(
            f"the network gives {outside}, and the targets of '{data.name}' are class numbers of "
            f"shape {inside}\n  expected: a score for each class, [{inside[0]}, classes"
            f"{''.join(f', {size}' for size in inside[1:])}]\n"
            "  what to do: change the network, or pass loss= and metric="
        )
    classes = outside[1 if first else -1]
    most = int(targets.max())
    if most >= classes:
        raise UserError(
            f"the network gives {classes} scores, and '{data.name}' has class {most}\n"
            f"  expected: a network with at least {most + 1} classes, numbered from 0"
        )
    return (scores, targets) if first else (scores.flatten(0, -2), targets.flatten())
