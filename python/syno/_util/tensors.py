"""Tensors from outside: whether their numbers lie in memory, one beside the other. Needs torch."""

from __future__ import annotations

import torch
from torch import nn

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


def check_network(net: object, *, any_device: bool = False, complex_numbers: bool = False) -> None:
    """UserError for what is no network whose weights are float32 on the CPU.

    any_device: the weights may be elsewhere; complex_numbers: they may be complex.
    """
    if not isinstance(net, nn.Module):
        raise UserError(f"expected a torch.nn.Module, got {described(net)}")
    check_sizes(net)
    for name, tensor in (*net.named_parameters(), *net.named_buffers()):
        if not (complex_numbers and tensor.is_complex()):
            check_float32(f"'{name}'", tensor, any_device=any_device)


def check_sizes(net: nn.Module) -> None:
    """UserError for a network with layers that take their sizes from the first input."""
    for name, tensor in (*net.named_parameters(), *net.named_buffers()):
        if nn.parameter.is_lazy(tensor):
            raise UserError(
                f"'{name}' of the network has no values yet: its layer takes its size from the "
                "first input\n  what to do: call the network once, as in net(example_input)"
            )


def check_float32(what: str, tensor: object, *, any_device: bool = False) -> torch.Tensor:
    """A tensor that compiled code takes: of float32 or integers. UserError with `what`."""
    found = dense(what, tensor)
    if not (any_device or found.is_cpu):
        raise UserError(
            f"{what} is on the device {found.device}\n"
            "  expected: cpu, which kernels are compiled for      what to do: use .cpu()"
        )
    if found.is_floating_point() and found.dtype != torch.float32:
        raise UserError(
            f"{what} has the type {found.dtype}\n"
            "  expected: torch.float32      what to do: use .float()"
        )
    return found


def described(value: object) -> str:
    """A value that is no tensor, as a message names it."""
    plain = value is None or isinstance(value, (bool, int, float, str))
    return shown(value) if plain else f"a {type(value).__name__}"
