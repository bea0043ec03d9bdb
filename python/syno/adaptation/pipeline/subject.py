"""The network that is adapted, with its data: inputs to fit to, and how good a network is."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, Targets, arguments, first, samples_in, samples_of
from syno._util.network_copy import copy_network
from syno.adaptation.frozen import frozen_parameters
from syno.adaptation.slots import refresh_batch_norm
from syno.data import DataSet, Records, TextData
from syno.data.custom import CustomData, Outputs
from syno.network.placeholder import slots
from syno.store.objective import ACCURACY, LOSS, Objective
from syno.study.evaluate.network import Network
from syno.train import Fidelity, TrainingTask, make_task
from syno.train.checkpoint import tensor_bytes
from syno.train.custom import class_dimension
from syno.train.distillation import Distance, distance_of

Batch = tuple[Inputs, Targets]
# Images for the statistics of batch normalization of a network with other operators.
_REFRESH = 512
# Tokens of a sample of text.
_TOKENS = 16
# Samples of the validation split that engines are scored on.
_SCORED = 1000
# A network whose loss is above this share of that of equal scores is not trained.
_GUESS = 0.97


@dataclass(frozen=True)
class Quality:
    """How good a network is on some samples of the validation split.

    loss: of the task. divergence: the distance of its outputs from those of the original network:
    the Kullback-Leibler divergence of class scores, or a relative squared error.
    """

    loss: float
    divergence: float


class AdaptationSubject:
    """A trained network with slots, and its data.

    network: with the template, whose slots hold their original layers.
    objective: accuracy, loss or a custom metric; dimension: of the outputs that classes are in;
    None if the outputs are no class scores. distance: of outputs from the original's, a function of
    the user; None for the usual one. frozen: parameters that stay as they are.
    """

    def __init__(
        self,
        network: Network,
        data: DataSet | Records | TextData | CustomData,
        fidelity: Fidelity,
        distance: Distance | None = None,
    ) -> None:
        self.network, self.data, self.fidelity = network, data, fidelity
        self.distance = distance
        original = network.original().eval()
        self.frozen = frozen_parameters(original)
        self.original = original.requires_grad_(False)
        self.task: TrainingTask = make_task(data, fidelity)
        self.objective = _objective(data)
        self.example = network.inputs(1)
        # Of each batch of the validation split how many samples, and the original's outputs.
        self._wanted: dict[int, tuple[int, Outputs]] = {}

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the weights and the data."""
        digest = hashlib.blake2b(self.task.fingerprint.encode(), digest_size=16)
        for name, value in self.original.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor_bytes(value))
        return digest.hexdigest()

    @cached_property
    def dimension(self) -> int | None:
        """The dimension of the outputs in which classes are; None for outputs of another kind."""
        if isinstance(self.data, CustomData):
            if self.data.loss is not None:
                return None
            inputs, targets = next(self.task.validation())
            with torch.no_grad():
                return class_dimension(self.original(*arguments(inputs)), targets)
        return -1 if isinstance(self.data, TextData) else 1

    @property
    def has_classes(self) -> bool:
        """Whether `share_right` says how good a network is."""
        return self.objective is ACCURACY and self.dimension == 1

    def inputs(self, count: int) -> list[Inputs]:
        """So many inputs of the training split, as the network sees them in a training.

        A sample of text is a number of tokens (`_TOKENS`), and an input as many samples as it has.
        """
        found: list[Inputs] = []
        left = self._inputs_of(count)
        for inputs, _, _ in self.task.batches(0, 0):
            found.append(first(inputs, left))
            left -= samples_in(found[-1])
            if left <= 0:
                break
        return found

    def _inputs_of(self, samples: int) -> int:
        if self.fidelity.context is None:
            return samples
        return math.ceil(samples * _TOKENS / self.fidelity.context)

    def validation(self, count: int | None) -> Iterator[Batch]:
        """The first samples of the validation split, as in `inputs`; None for all."""
        return self.task.validation(None if count is None else self._inputs_of(count))

    def refresh(self, net: nn.Module) -> None:
        """Compute the statistics of batch normalization of a network again."""
        refresh_batch_norm(net, self._refreshing)

    @cached_property
    def _refreshing(self) -> list[Inputs]:
        return self.inputs(_REFRESH)

    def quality(self, net: nn.Module, count: int | None) -> Quality:
        """Measure a network on the first samples of the validation split; None for all."""
        training = net.training
        net.eval()
        lost = distance = 0.0
        seen = 0
        try:
            with torch.inference_mode():
                for place, (inputs, targets) in enumerate(self.validation(count)):
                    scores = net(*arguments(inputs))
                    loss, _ = self.task.loss(scores, targets)
                    samples = samples_in(inputs)
                    lost += samples * float(loss)
                    distance += samples * self._distance(scores, inputs, place)
                    seen += samples
        finally:
            net.train(training)
        return Quality(lost / seen, distance / seen)

    def _distance(self, scores: Outputs, inputs: Inputs, place: int) -> float:
        samples = samples_in(inputs)
        count, wanted = self._wanted.get(place, (0, None))
        if count < samples:
            wanted = self.original(*arguments(inputs))
            count, self._wanted[place] = samples, (samples, wanted)
        if count > samples:
            wanted = first(wanted, samples)
        return float(distance_of(scores, wanted, self.dimension, function=self.distance))

    def share_right(self, run: Callable[..., Outputs]) -> float:
        """The accuracy of what takes the arguments of one sample at a time, on the first samples of
        the validation split."""
        right, seen = 0.0, 0
        with torch.inference_mode():
            for inputs, targets in self.validation(_SCORED):
                for one, target in zip(samples_of(inputs), targets, strict=True):
                    scores = run(*one)
                    assert isinstance(scores, torch.Tensor)
                    right += float((scores.argmax(1) == target).float().mean())
                    seen += 1
        return right / seen

    def value(self, net: nn.Module) -> float:
        """The objective of a network on the whole validation split."""
        metrics = self.task.metrics(net)
        found = metrics.accuracy if self.objective.field == "accuracy" else metrics.loss
        assert found is not None
        return found

    def check_trained(self) -> float:
        """The objective of the original network.

        UserError for a network that is not better than a guess, and for one that gives NaN.
        """
        found = self.quality(self.original, 2048)
        loss = found.loss
        if not math.isfinite(loss) and math.isfinite(found.divergence):
            raise UserError(
                "the loss of the network is not finite on the validation split, where its outputs "
                f"are finite      got: {loss}\n  what to do: check the function 'loss'"
            )
        if not math.isfinite(loss):
            raise UserError(
                "the network gives values that are not finite on the validation split\n"
                "  what to do: use the weights of a training that did not diverge"
            )
        if loss >= _GUESS * self.task.chance:
            raise UserError(
                f"the network is not better than a guess: its loss is {loss:.3f} on the validation "
                f"split\n  expected: well below {self.task.chance:.3f}, the loss of equal scores\n"
                "  what to do: pass trained weights (--weights FILE), with the data that "
                "they were trained on"
            )
        return self.value(self.original)

    def features_of(self, net: nn.Module) -> list[str]:
        """The names of slots whose outputs a distillation may match: they have all channels."""
        found, there = [], dict(net.named_modules())
        for name, slot in slots(self.original).items():
            before = getattr(slot.original, "weight", None)
            if name not in there:  # its block is left out
                continue
            after = getattr(net.get_submodule(name), "weight", before)
            if before is None or after is None or len(after) == len(before):
                found.append(name)
        return found

    def copy(self) -> nn.Module:
        """A copy of the template in evaluation mode."""
        return copy_network(self.network.template).eval()


def _objective(data: object) -> Objective:
    if isinstance(data, CustomData):
        metric = data.metric
        if (metric.name, metric.maximize) == ("accuracy", True):
            return ACCURACY
        return Objective(metric.name, "", metric.maximize)
    return LOSS if isinstance(data, TextData) else ACCURACY
