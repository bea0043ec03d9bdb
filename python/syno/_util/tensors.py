"""Tensors from outside: whether their numbers lie in memory, one beside the other. Needs torch."""

from __future__ import annotations

import torch

from syno._util.checks import shown
from syno._util.errors import UserError


def fault_of(x: torch.Tensor) -> tuple[str, str] | None:
    """Why a tensor is no array of real numbers in memory, and what to do; None for one that is."""
    if x.is_meta:
        return "is on the device meta, and has no values", "give a tensor with values"
    if x.is_complex():
        return f"has complex numbers ({x.dtype})", "use .real, .abs() or torch.view_as_real"
    if x.is_nested:
        return "is a nested tensor", "use .to_padded_tensor(0.0)"
    if x.is_quantized:
        return f"is quantized ({x.dtype})", "use .dequantize()"
    if x.layout is not torch.strided:
        return f"has the layout {x.layout}", "use .to_dense()"
    return None


def dense(what: str, value: object) -> torch.Tensor:
    """`value`, a tensor of real numbers in memory. UserError with `what`, such as "weight 0"."""
    if not isinstance(value, torch.Tensor):
        made = "      what to do: use torch.as_tensor" if hasattr(value, "__array__") else ""
        raise UserError(
            f"{what} is not a tensor\n  expected: a torch.Tensor      got: {described(value)}{made}"
        )
    fault = fault_of(value)
    if fault is not None:
        raise UserError(
            f"{what} {fault[0]}\n"
            f"  expected: a tensor of real numbers in dense memory      what to do: {fault[1]}"
        )
    return value


def described(value: object) -> str:
    """A value that is no tensor, as a message names it."""
    plain = value is None or isinstance(value, (bool, int, float, str))
    return shown(value) if plain else f"a {type(value).__name__}"
