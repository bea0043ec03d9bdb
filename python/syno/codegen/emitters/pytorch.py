"""PyTorch: the emitted torch.nn.Module, on the CPU. Needs torch once it builds."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno.codegen.emitters.protocol import Array, Case, Code, Emitter, WrongCodeError

if TYPE_CHECKING:
    import torch
    from torch import nn


class PyTorchEmitter(Emitter):
    """Modules as `Operator.source` writes them."""

    name = "pytorch"
    dtypes = ("float64", "float32")
    has_gradients = True
    any_size = True

    def available(self) -> str | None:
        """Always: Syno depends on torch."""
        return None

    def source(self, case: Case) -> str:
        """The module's source."""
        return case.operator.source(case.binding)

    def build(self, cases: Sequence[Case], sources: Sequence[str] | None = None) -> Sequence[Code]:
        """A module for each case. WrongCodeError where its parameters are not the weights."""
        texts = [self.source(case) for case in cases] if sources is None else sources
        return [_Module(case, text) for case, text in zip(cases, texts, strict=True)]


class _Module:
    """A module that is given its weights with every call."""

    def __init__(self, case: Case, source: str) -> None:
        import torch

        from syno.operators.emitted import load_module

        self._turn = threading.Lock()  # the module holds the weights of one call
        with torch.random.fork_rng(devices=[]):
            self._kernel: nn.Module = load_module(source, keep=False)()
        found = [tuple(p.shape) for p in self._kernel.parameters()]
        expected = case.operator.weight_shapes(case.binding)
        if found != expected:
            raise WrongCodeError(f"the module's weights are {found}, the operator's {expected}")

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        import torch

        with self._turn, torch.no_grad():
            return self._run(self._give(x, weights)).numpy()

    def gradients(self, x: Array, weights: Sequence[Array], dy: Array) -> tuple[Array, list[Array]]:
        """Those of autograd; zeros for what y does not depend on."""
        import torch

        with self._turn:
            data = self._give(x, weights).requires_grad_()
            inputs = [data, *self._kernel.parameters()]
            y = self._run(data)
            if not y.requires_grad:
                raise WrongCodeError("y has no gradient")
            dx, *dweights = torch.autograd.grad(
                y, inputs, torch.from_numpy(dy), allow_unused=True, materialize_grads=True
            )
        return dx.numpy(), [dw.numpy() for dw in dweights]

    def _give(self, x: Array, weights: Sequence[Array]) -> torch.Tensor:
        """Sets the parameters; x as a tensor of its own, for code that would write into it."""
        import torch

        data = torch.from_numpy(x.copy())
        self._kernel.to(data.dtype)
        with torch.no_grad():
            for parameter, weight in zip(self._kernel.parameters(), weights, strict=True):
                parameter.copy_(torch.from_numpy(weight))
        return data

    def _run(self, data: torch.Tensor) -> torch.Tensor:
        import torch

        y = self._kernel(data)
        if not isinstance(y, torch.Tensor):
            raise WrongCodeError(f"the module returns a {type(y).__name__}, not a tensor")
        return y


EMITTER = PyTorchEmitter()
