"""Compiled operators that torch trains. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.autograd.function import FunctionCtx, once_differentiable

from syno.codegen.native.training import TrainingFunction


def apply(
    function: TrainingFunction, x: torch.Tensor, weights: Sequence[torch.Tensor]
) -> torch.Tensor:
    """The operator's value, which torch can differentiate once.

    x, weights: float32 on the CPU; x has the input's shape, with any batch size if the function is
    batched.
    """
    result: torch.Tensor = _Apply.apply(function, x, *weights)
    return result


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, function: TrainingFunction, x: torch.Tensor, *weights: torch.Tensor
    ) -> torch.Tensor:
        x = x.contiguous()
        held = tuple(weight.contiguous() for weight in weights)
        ctx.save_for_backward(x, *held)
        ctx.function = function  # type: ignore[attr-defined]
        batch = x.shape[0] if function.batched else 1
        y = x.new_empty(
            (batch, *function.output_shape[1:]) if function.batched else function.output_shape
        )
        function.run(
            x.data_ptr(),
            [weight.data_ptr() for weight in held],
            y.data_ptr(),
            batch,
            torch.get_num_threads(),
        )
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, *weights = ctx.saved_tensors  # type: ignore[attr-defined]
        function: TrainingFunction = ctx.function  # type: ignore[attr-defined]
        dy = dy.contiguous()
        dx = torch.empty_like(x) if ctx.needs_input_grad[1] else None  # type: ignore[attr-defined]
        dweights = [torch.empty_like(weight) for weight in weights]
        function.gradients(
            x.data_ptr(),
            [weight.data_ptr() for weight in weights],
            dy.data_ptr(),
            0 if dx is None else dx.data_ptr(),
            [dweight.data_ptr() for dweight in dweights],
            x.shape[0] if function.batched else 1,
            torch.get_num_threads(),
        )
        return None, dx, *dweights
