"""Device, precision and memory format of a training, and averaged weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeVar

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from syno._util.errors import UserError
from syno._util.inputs import Inputs, mapped
from syno.train.recipe import Recipe

_Tensors = tuple[torch.Tensor, ...] | list[torch.Tensor]
_Inputs = TypeVar("_Inputs", bound=Inputs)
_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def checked_device(name: str | torch.device) -> torch.device:
    """The device. UserError where this machine or this torch has none such."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"unknown device '{name}'\n  expected: cpu, cuda, or cuda:0") from error
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"cannot train on device '{name}'\n  expected: cpu, cuda, or cuda:0")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise UserError(
                f"cannot train on device '{name}': torch {torch.__version__} sees {count} CUDA "
                "devices\n  expected: cpu"
            )
    return device


class Numerics:
    """Where and how precisely forward and backward pass are computed."""

    def __init__(self, recipe: Recipe, device: torch.device) -> None:
        self.device = device
        self._channels_last = recipe.channels_last
        self._type = _TYPES.get(recipe.precision)
        if recipe.precision == "float16" and device.type == "cpu":
            raise UserError(
                f"recipe '{recipe.name}' trains in float16, which needs a GPU\n"
                "  expected: --device cuda, or another precision: bfloat16 or float32"
            )
        if (
            recipe.precision == "bfloat16"
            and device.type == "cuda"
            and not torch.cuda.is_bf16_supported()
        ):
            raise UserError(
                f"recipe '{recipe.name}' trains in bfloat16, which {torch.cuda.get_device_name()} "
                "cannot\n  expected: float16 or float32"
            )
        # Gradients of float16 would vanish below 6e-8; those of bfloat16 have float32's range.
        self.scaler = torch.amp.GradScaler(device.type, enabled=self._type is torch.float16)

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """The context of a forward pass."""
        if self._type is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self._type)

    def prepared(self, net: nn.Module) -> nn.Module:
        """The network on the device, in the memory format of the recipe; the same object.

        Compiled operators compute in row-major format. A network of them is faster if all of it is.
        """
        net.to(self.device)
        compiled = any(getattr(module, "compiled", None) is not None for module in net.modules())
        self._channels_last = self._channels_last and not compiled
        if self._channels_last:
            net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return net

    def inputs(self, values: _Inputs) -> _Inputs:
        """Inputs on the device, in the memory format of the network that was prepared."""
        return mapped(self._placed, values)

    def _placed(self, values: torch.Tensor) -> torch.Tensor:
        values = values.to(self.device, non_blocking=True)
        if self._channels_last and values.dim() == 4:
            return values.contiguous(memory_format=torch.channels_last)
        return values


class Average:
    """The exponential moving average of weights and statistics: kept + (1 - decay) * (new - kept).

    Early on the decay is less, (1 + steps) / (10 + steps), so that the start is forgotten.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self._decay = decay
        self.steps = 0
        self._averaged = AveragedModel(net, multi_avg_fn=self._follow, use_buffers=True)
        self._averaged.update_parameters(net)  # the first call copies

    @property
    def kept(self) -> dict[str, torch.Tensor]:
        """The averaged weights and statistics by name."""
        return self._averaged.module.state_dict()

    def update(self, net: nn.Module) -> None:
        """Takes the present weights in."""
        self.steps += 1
        with torch.no_grad():
            self._averaged.update_parameters(net)

    def _follow(self, kept: _Tensors, new: _Tensors, _: object) -> None:
        """Tensors of one device and type; what is counted is no average."""
        if kept[0].is_floating_point():
            decay = min(self._decay, (1 + self.steps) / (10 + self.steps))
            torch._foreach_lerp_(kept, new, 1 - decay)
        else:
            torch._foreach_copy_(kept, new)

    @contextlib.contextmanager
    def inside(self, net: nn.Module) -> Iterator[None]:
        """The network has the averaged weights, and its own again afterwards."""
        own = {key: value.detach().clone() for key, value in net.state_dict().items()}
        net.load_state_dict(self.kept)
        try:
            yield
        finally:
            net.load_state_dict(own)
