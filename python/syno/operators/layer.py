"""An operator as a layer of a network. Needs torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypedDict

import torch
from torch import nn

from syno.operators.emitted import load_module, source_hash
from syno.operators.initialization import Reference, scale_weights
from syno.operators.value import OperatorValue

_UNIT = Reference()


class Compiled(Protocol):
    """Compiled code that computes what an emitted module computes, with its gradients."""

    def takes(self, x: torch.Tensor, weights: Sequence[torch.Tensor]) -> bool:
        """Whether it computes this call."""

    def __call__(self, x: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """The operator's value."""


class _State(TypedDict):
    """What travels beside the operator."""

    weights: dict[str, torch.Tensor]
    training: bool


class Layer(nn.Module):
    """An operator under one binding with its weights, ready to take its place in a network.

    operator: what it computes; binding: the size of every variable; plan, fold_weights: by which
    plan, see `Operator.source`; kernel: the emitted module, whose parameters are the operator's
    weights; source_hash: of the emitted source.
    reference: what its initial weights and their rates are scaled like; by default, for results of
    variance 1 on data of variance 1. None leaves them as the source samples them.
    compiled: what computes the calls that it takes, while a network is trained with compiled
    kernels, for copies as well; None elsewhere.
    It travels (pickle, torch.save) as the operator's text, never as code.
    """

    compiled: Compiled | None = None

    def __init__(
        self,
        operator: OperatorValue,
        binding: Mapping[str, int],
        plan: int = 1,
        fold_weights: bool = False,
        reference: Reference | None = _UNIT,
    ) -> None:
        super().__init__()
        self.operator = operator
        self.binding = dict(binding)
        self.plan = plan
        self.fold_weights = fold_weights
        self.reference = reference
        source = operator.source(self.binding, plan=plan, fold_weights=fold_weights)
        self.source_hash = source_hash(source)
        self.kernel = load_module(source)()
        if reference is not None:
            chosen = operator.numbered_plan(self.binding, plan, fold_weights=fold_weights)
            scale_weights(self.kernel, operator, self.binding, chosen.fan_in, reference)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies the operator to x, a tensor of the input shape with any batch size."""
        if self.compiled is not None:
            # Not `parameters()`, which searches modules and takes longer than the call.
            weights = [w for w in self.kernel._parameters.values() if w is not None]
            if self.compiled.takes(x, weights):
                return self.compiled(x, weights)
        return self.kernel(x)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Layer:
        """As torch's, for weights of five dimensions, too.

        `net.to(memory_format=torch.channels_last)` raises on those, whatever network they are in;
        here they keep their order and take type and device.
        """

        def applied(tensor: torch.Tensor) -> torch.Tensor:
            try:
                return fn(tensor)
            except RuntimeError:
                if tensor.dim() != 5:
                    raise
                return fn(tensor.flatten()).unflatten(0, tensor.shape)

        return super()._apply(applied, recurse)

    @property
    def named_weights(self) -> dict[str, torch.Tensor]:
        """The weights by their names in the index notation of the operator, indexed as there.

        They are views: `layer.named_weights["a"].copy_(values)` under `torch.no_grad()` sets one.
        """
        return self.operator.weight_names.named([*self.kernel.parameters()])

    def extra_repr(self) -> str:
        """The binding, for printing a network."""
        return ", ".join(f"{name}={value}" for name, value in sorted(self.binding.items()))

    def __deepcopy__(self, memo: dict[int, object]) -> Layer:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __reduce__(self) -> tuple[object, ...]:
        state = {"weights": self.state_dict(), "training": self.training}
        settings = (self.plan, self.fold_weights, self.reference)
        return Layer, (self.operator, self.binding, *settings), state

    def __setstate__(self, state: _State) -> None:
        self.load_state_dict(state["weights"])
        self.train(state["training"])
