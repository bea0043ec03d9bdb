"""Device, precision and memory format of a training, and averaged weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

from syno._util.errors import UserError
from syno.train.recipe import Recipe

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
        self._recipe = recipe
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
        """The network on the device, in the memory format of the recipe; the same object."""
        net.to(self.device)
        if self._recipe.channels_last:
            net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return net

    def inputs(self, values: torch.Tensor) -> torch.Tensor:
        """Inputs on the device, in the memory format of the recipe."""
        values = values.to(self.device, non_blocking=True)
        if self._recipe.channels_last and values.dim() == 4:
            return values.contiguous(memory_format=torch.channels_last)
        return values


class Average:
    """The exponential moving average of weights and statistics: kept + (1 - decay) * (new - kept).

    Early on the decay is less, (1 + steps) / (10 + steps), so that the start is forgotten.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self._decay = decay
        self.steps = 0
        self.kept = {key: value.detach().clone() for key, value in net.state_dict().items()}

    def update(self, net: nn.Module) -> None:
        """Takes the present weights in."""
        self.steps += 1
        decay = min(self._decay, (1 + self.steps) / (10 + self.steps))
        with torch.no_grad():
            for key, value in net.state_dict().items():
                if value.is_floating_point():
                    self.kept[key].lerp_(value, 1 - decay)
                else:
                    self.kept[key].copy_(value)

    @contextlib.contextmanager
    def inside(self, net: nn.Module) -> Iterator[None]:
        """The network has the averaged weights, and its own again afterwards."""
        own = {key: value.detach().clone() for key, value in net.state_dict().items()}
        net.load_state_dict(self.kept)
        try:
            yield
        finally:
            net.load_state_dict(own)
