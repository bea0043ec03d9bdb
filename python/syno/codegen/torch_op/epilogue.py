"""Epilogues: what a kernel does to each sum before it stores it, as a canonical text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from syno._util.checks import shown
from syno._util.errors import UserError

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
_PARTS = ("scale", "bias", "residual")


@dataclass(frozen=True)
class Epilogue:
    """y = activation(operator(x) * scale[c] + bias[c] + residual), any part of which may be absent.

    text: its parts in this order with + between them; the empty text is no epilogue.
    """

    text: str
    scale: bool
    bias: bool
    residual: bool
    activation: str | None

    @classmethod
    def parse(cls, text: str) -> Epilogue:
        """Read the canonical text. UserError for parts that are unknown or in another order."""
        parts = text.split("+") if isinstance(text, str) and text else []
        activation = parts[-1] if parts and parts[-1] in ACTIVATIONS else None
        found = {part: part in parts for part in _PARTS}
        result = cls("", **found, activation=activation)
        if not isinstance(text, str) or result._canonical() != text:
            raise UserError(
                f"{shown(text)} is not an epilogue\n"
                f"  expected: of {', '.join(_PARTS)} those that it has, in this order, then one of "
                f"{', '.join(ACTIVATIONS)}, with + between them, such as bias+relu"
            )
        return cls(text, **found, activation=activation)

    def _canonical(self) -> str:
        parts = [part for part in _PARTS if getattr(self, part)]
        return "+".join([*parts, *([self.activation] if self.activation else [])])

    def channel_floats(self, channels: int) -> int:
        """How many floats `channel` has: bias, then scale where there is one."""
        return 2 * channels if self.scale else channels if self.bias else 0

    def applied(
        self,
        y: torch.Tensor,
        channel: torch.Tensor | None,
        residual: torch.Tensor | None,
        dim: int,
    ) -> torch.Tensor:
        """The epilogue in PyTorch; dim: the channel dimension of y."""
        if channel is not None:
            shape = [-1 if d == dim else 1 for d in range(y.dim())]
            channels = y.shape[dim]
            if self.scale:
                y = y * channel[channels:].view(shape)
            if self.bias:
                y = y + channel[:channels].view(shape)
        if residual is not None:
            y = y + residual
        return ACTIVATIONS[self.activation](y) if self.activation else y
