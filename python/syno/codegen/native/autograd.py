"""Compiled operators that torch trains. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.autograd.function import FunctionCtx, once_differentiable

from syno.codegen.native.training import TrainingFunction


def apply(
    function: TrainingFunction,
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """The operator's value, computed in float32, which torch can differentiate once.

    Args:
        function: the operator.
        x: of the input's shape, with any batch size if the function is batched, on the CPU, in
            float32 or bfloat16. The value is in channels-last format if it is.
        weights: in float32.
        dtype: of the value.
    """
    result: torch.Tensor = _Apply.apply(function, dtype, x, *weights)
    return result


def _plain(x: torch.Tensor) -> torch.Tensor:
    """The tensor in float32 and row-major, in one pass over it where it is not."""
    return x.to(torch.float32, memory_format=torch.contiguous_format)


def _like(y: torch.Tensor, dtype: torch.dtype, channels_last: bool) -> torch.Tensor:
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return y.to(dtype, memory_format=layout)


def _is_channels_last(x: torch.Tensor) -> bool:
    return (
        x.dim() == 4
        and not x.is_contiguous()
        and x.is_contiguous(memory_format=torch.channels_last)
    )


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        function: TrainingFunction,
        dtype: torch.dtype,
        x: torch.Tensor,
        *weights: torch.Tensor,
    ) -> torch.Tensor:
        channels_last = _is_channels_last(x)
        ctx.gave = x.dtype, channels_last  # type: ignore[attr-defined]
        x = _plain(x)
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
        return _like(y, dtype, channels_last and y.dim() == 4)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, *weights = ctx.saved_tensors  # type: ignore[attr-defined]
        function: TrainingFunction = ctx.function  # type: ignore[attr-defined]
        dy = _plain(dy)
        dx = torch.empty_like(x) if ctx.needs_input_grad[2] else None  # type: ignore[attr-defined]
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
        if dx is not None:
            dx = _like(dx, *ctx.gave)  # type: ignore[attr-defined]
        return None, None, dx, *dweights
