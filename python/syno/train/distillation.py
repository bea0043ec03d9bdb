"""Distillation: a network learns from the outputs of a trained one, beside its own loss."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional

from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments, mapped
from syno._util.trial_calls import tensors_of
from syno.data.custom import Outputs
from syno.train.checkpoint import tensor_bytes

# A function of outputs of a network and of those that are wanted, which returns a scalar.
Distance = Callable[[Outputs, Outputs], torch.Tensor]


@dataclass(frozen=True)
class Distillation:
    """The loss (1 - weight) * loss of the task + weight * distance from the teacher's outputs.

    The distance of class scores is the Kullback-Leibler divergence of softened distributions
    (Hinton et al. 2015, "Distilling the knowledge in a neural network"); that of other outputs is
    the squared error relative to the variance of the teacher's, the mean over all of them where
    there are several.

    teacher: a trained network for the same inputs.
    dimension: of the outputs, in which the classes are; None for outputs that are no class scores.
    distance: another one: a function of the network's outputs and the teacher's, a scalar.
    temperature: by which class scores are divided.
    features: names of modules that teacher and network have; the relative squared errors of their
        outputs are added, `feature_weight` times their mean.
    """

    teacher: nn.Module
    dimension: int | None = 1
    distance: Distance | None = None
    weight: float = 0.7
    temperature: float = 2.0
    features: Sequence[str] = field(default=())
    feature_weight: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.weight <= 1.0 or not self.temperature > 0.0:
            raise UserError(
                f"a distillation cannot have weight = {self.weight:g} and temperature = "
                f"{self.temperature:g}\n"
                "  expected: a weight from 0 to 1, and a temperature above 0"
            )
        known = dict(self.teacher.named_modules())
        for name in self.features:
            if name not in known:
                raise UserError(f"the teacher has no module '{name}' whose outputs are matched")

    @property
    def fingerprint(self) -> str:
        """A digest of the settings and of the weights of the teacher."""
        settings: tuple[object, ...] = (
            self.dimension,
            self.weight,
            self.temperature,
            list(self.features),
        )
        if self.distance is not None:
            settings = (*settings, name_of(self.distance))
        digest = hashlib.blake2b(repr((settings, self.feature_weight)).encode(), digest_size=16)
        for name, value in self.teacher.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor_bytes(value))
        return digest.hexdigest()

    @contextmanager
    def beside(self, net: nn.Module) -> Iterator[Lesson]:
        """Run the teacher beside a network inside of the block, in evaluation mode.

        UserError when the network lacks a module of `features`.
        """
        known = dict(net.named_modules())
        missing = [name for name in self.features if name not in known]
        if missing:
            raise UserError(f"the network has no module '{missing[0]}' whose outputs are matched")
        lesson = Lesson(self)
        modules = dict(self.teacher.named_modules())
        hooks = [known[name].register_forward_hook(lesson.own(name)) for name in self.features]
        hooks += [
            modules[name].register_forward_hook(lesson.wanted(name)) for name in self.features
        ]
        training = self.teacher.training
        self.teacher.eval()
        try:
            yield lesson
        finally:
            for hook in hooks:
                hook.remove()
            self.teacher.train(training)


class Lesson:
    """A network that is trained beside its teacher."""

    def __init__(self, settings: Distillation) -> None:
        self._settings = settings
        self._own: dict[str, torch.Tensor] = {}
        self._wanted: dict[str, torch.Tensor] = {}

    def own(self, name: str) -> _Hook:
        """A hook that keeps what a module of the network returns."""
        return _Hook(self._own, name)

    def wanted(self, name: str) -> _Hook:
        """A hook that keeps what a module of the teacher returns."""
        return _Hook(self._wanted, name)

    def loss(self, loss: torch.Tensor, scores: Outputs, inputs: Inputs) -> torch.Tensor:
        """The loss of a batch, of which the network has given `scores`; a scalar."""
        settings = self._settings
        with torch.no_grad():
            # Its convolutions are faster so, whatever the format of the network is.
            given = mapped(_laid_out, inputs)
            wanted = settings.teacher(*arguments(given))
        total = loss
        if settings.weight:
            distance = distance_of(
                scores, wanted, settings.dimension, settings.temperature, settings.distance
            )
            total = (1.0 - settings.weight) * loss + settings.weight * distance
        if settings.features:
            errors = [relative_error(self._own[name], self._wanted[name]) for name in self._own]
            total = total + settings.feature_weight * torch.stack(errors).mean()
        return total


class _Hook:
    """Keeps the output of a module under a name."""

    def __init__(self, kept: dict[str, torch.Tensor], name: str) -> None:
        self._kept, self._name = kept, name

    def __call__(self, _: nn.Module, __: object, output: torch.Tensor) -> None:
        self._kept[self._name] = output


def name_of(function: Distance) -> str:
    """What a function is called where it was written."""
    return str(getattr(function, "__qualname__", type(function).__name__))


def _laid_out(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(
        memory_format=torch.channels_last if x.dim() == 4 else torch.contiguous_format
    )


def distance_of(
    scores: Outputs,
    wanted: Outputs,
    dimension: int | None,
    temperature: float = 1.0,
    function: Distance | None = None,
) -> torch.Tensor:
    """The distance of outputs from wanted ones, as `Distillation` has it, a scalar.

    UserError for outputs without a tensor of numbers, and for a function that returns no scalar.
    """
    if function is not None:
        found = function(scores, wanted)
        if not isinstance(found, torch.Tensor) or found.numel() != 1:
            shape = list(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise UserError(
                "the distance of outputs from the original's is not a number\n"
                f"  expected: a scalar      got: {shape}"
            )
        return found.reshape(())
    if dimension is not None:
        return divergence(scores / temperature, wanted / temperature, dimension) * temperature**2
    own, other = (
        [each for each in tensors_of(outputs) if each.is_floating_point()]
        for outputs in (scores, wanted)
    )
    if not own or len(own) != len(other):
        raise UserError(
            f"the network gives a {type(scores).__name__} without tensors of numbers to compare\n"
            "  what to do: pass distance=, a function of its outputs and of the original's"
        )
    return torch.stack([relative_error(*both) for both in zip(own, other, strict=True)]).mean()


def divergence(scores: torch.Tensor, wanted: torch.Tensor, dimension: int) -> torch.Tensor:
    """The mean Kullback-Leibler divergence of the classes of `wanted` from those of `scores`."""
    own = functional.log_softmax(scores.float(), dimension)
    other = functional.log_softmax(wanted.float(), dimension)
    return (other.exp() * (other - own)).sum(dimension).mean()


def relative_error(own: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The mean squared error relative to the variance of `wanted`, a scalar."""
    error = (own.float() - wanted.float()).square().mean()
    return error / wanted.float().var(correction=0).clamp_min(1e-12)
