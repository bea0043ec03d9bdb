"""A layer of a compiled network: a call of a kernel with its weights."""

from __future__ import annotations

import torch
from torch import nn

from syno.codegen.torch_op import Kernel
from syno.inference.layer import TracedLayer


class CompiledLayer(nn.Module):
    """A call of a compiled kernel with its weights. key, epilogue: of the kernel."""

    def __init__(self, kernel: Kernel, layer: TracedLayer) -> None:
        super().__init__()
        self.name = layer.name
        self.key = kernel.key
        self.epilogue = kernel.epilogue
        self.packed: torch.Tensor
        self.channel: torch.Tensor | None
        self.register_buffer("packed", kernel.pack(layer.weights))
        self.register_buffer("channel", layer.held_channel)

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """The operator and its epilogue."""
        found: torch.Tensor = torch.ops.syno.apply(
            x, self.packed, self.channel, residual, self.key, self.epilogue
        )
        return found

    def extra_repr(self) -> str:
        """Name and epilogue, for printing a network."""
        return ", ".join(part for part in (self.name, self.epilogue) if part)
