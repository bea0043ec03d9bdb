"""A layer of a network at inference: an operator with its weights, and what follows in one call."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch import nn

from syno import _core
from syno.codegen.torch_op.epilogue import Epilogue
from syno.inference.codes import Contractions, LayerCodes
from syno.inference.precision import BFLOAT16, FLOAT32
from syno.operators.emitted import load_module
from syno.operators.operator import Operator

CONVOLUTION, LINEAR, SLOT = "convolution", "linear", "operator"


@dataclass(frozen=True)
class Computation:
    """A linear map: the operator of `text` under a binding, by the plan of that number."""

    # Text, because torch keeps graphs to the end of the process, and no objects of the extension
    # may live so long.
    text: str
    binding: Mapping[str, int]
    plan: int = 1
    fold_weights: bool = True

    @property
    def operator(self) -> Operator:
        """The operator."""
        return Operator.from_text(self.text)

    def planned(self) -> _core.Plan:
        """The plan."""
        return self.operator.numbered_plan(self.binding, self.plan, fold_weights=self.fold_weights)

    @property
    def key(self) -> str:
        """A digest of all of it."""
        sizes = ",".join(f"{name}={value}" for name, value in sorted(self.binding.items()))
        text = f"{self.text}\n{sizes}\n{self.plan}\n{self.fold_weights}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass
class Parts:
    """What follows the operator: activation(y * scale[c] + bias[c] + residual)."""

    scale: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    residual: bool = False
    activation: str = ""
    sources: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The epilogue in its canonical form."""
        named = {
            "scale": self.scale is not None,
            "bias": self.bias is not None,
            "residual": self.residual,
            self.activation: bool(self.activation),
        }
        return "+".join(name for name, there in named.items() if there)

    @property
    def channel(self) -> torch.Tensor | None:
        """C floats of bias, or 2C of bias and scale; None without both."""
        if self.scale is None:
            return self.bias
        bias = torch.zeros_like(self.scale) if self.bias is None else self.bias
        return torch.cat([bias, self.scale])


def in_bfloat16(x: torch.Tensor) -> torch.Tensor:
    """The nearest numbers of bfloat16, in float32."""
    return x.bfloat16().float()


class TracedLayer(nn.Module):
    """Computes with the module that is emitted for the operator, as what replaces it does.

    name: of the module in the network; kind: what it was there; channel: the dimension of the
    output that scale and bias have one element for each index of; codes: how it multiplies
    integers, if it does; precision: what it multiplies in a network whose layers have formats of
    their own, if it does not.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        computation: Computation,
        weights: Sequence[torch.Tensor],
        channel: int,
    ) -> None:
        super().__init__()
        self.name = name
        self.kind = kind
        self.computation = computation
        self.weights = [weight.detach() for weight in weights]
        self.channel = channel
        self.parts = Parts()
        self.codes: LayerCodes | None = None
        self.precision = FLOAT32
        self._module: nn.Module | None = None

    @functools.cached_property
    def held_channel(self) -> torch.Tensor | None:
        """What scale and bias are, once nothing more is folded into the layer."""
        return self.parts.channel

    @property
    def channels(self) -> int:
        """The extent of the channel dimension."""
        return self.computation.operator.shapes(self.computation.binding).output[self.channel]

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """The operator and its epilogue in PyTorch.

        Of a layer that multiplies integers, x is what its codes stand for.
        """
        if self.precision == BFLOAT16:
            x = in_bfloat16(x)
        with nullcontext() if self.codes is None else Contractions.rounding(self.codes.values):
            y: torch.Tensor = self.reference()(x)
        return Epilogue(self.parts.text).applied(y, self.parts.channel, residual, self.channel)

    def set_weights(self, weights: Sequence[torch.Tensor]) -> None:
        """Replace the weights, in the shapes of the operator's."""
        self.weights = [weight.detach() for weight in weights]
        self._module = None

    def multiply_bfloat16(self) -> None:
        """Let it multiply numbers of bfloat16."""
        self.precision = BFLOAT16
        self.set_weights([in_bfloat16(weight) for weight in self.weights])

    def reference(self) -> nn.Module:
        """The emitted module with the weights."""
        if self._module is None:
            found = self.computation
            made = load_module(found.operator.source(found.binding, plan=found.plan))()
            for parameter, weight in zip(made.parameters(), self.weights, strict=True):
                parameter.requires_grad_(False).copy_(weight)
            self._module = made.eval()
        return self._module

    def extra_repr(self) -> str:
        """Name and epilogue, for printing a network."""
        return ", ".join(part for part in (self.name, self.kind, self.parts.text) if part)
