"""Epilogues: what a kernel does to each sum before it stores it, as a canonical text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardswish": F.hardswish,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardsigmoid": F.hardsigmoid,
}


@dataclass(frozen=True)
class Epilogue:
    """y = activation(operator(x) * scale[c] + bias[c] + residual), any part of which may be absent.

    text: its parts in this order with + between them, as the emitter checks it; the empty text is
    no epilogue.
    """

    text: str

    @property
    def scale(self) -> bool:
        """Whether results are multiplied by a number for each channel."""
        return "scale" in self.text.split("+")

    @property
    def bias(self) -> bool:
        """Whether a number for each channel is added."""
        return "bias" in self.text.split("+")

    @property
    def residual(self) -> bool:
        """Whether a tensor of the shape of y is added."""
        return "residual" in self.text.split("+")

    def channel_floats(self, output: Sequence[int], dim: int) -> int:
        """How many floats `channel` has: bias, then scale where there is one."""
        return output[dim] * (2 if self.scale else 1) if self.scale or self.bias else 0

    def applied(
        self,
        y: torch.Tensor,
        channel: torch.Tensor | None,
        residual: torch.Tensor | None,
        dim: int,
    ) -> torch.Tensor:
        """The epilogue in PyTorch; dim: the channel dimension of y."""
        shape = [-1 if d == dim else 1 for d in range(y.dim())]
        if channel is not None and self.scale:
            y = y * channel[y.shape[dim] :].view(shape)
        if channel is not None and self.bias:
            y = y + channel[: y.shape[dim]].view(shape)
        if residual is not None:
            y = y + residual
        activation = ACTIVATIONS.get(self.text.rpartition("+")[2])
        return activation(y) if activation else y
