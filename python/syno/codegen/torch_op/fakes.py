"""What PyTorch asks of syno::apply while it traces a graph: results without values.

PyTorch keeps these functions until the very end of the process, and with them all that this module
names, so that it names little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from syno.codegen.torch_op.record import KernelRecord

_NO_GRADIENT = (
    "syno::apply: an argument requires a gradient, and compiled kernels have none: they are for "
    "inference\n  what to do: call it under torch.inference_mode() or torch.no_grad()"
)

# Gives the record of the kernel of a key and an epilogue.
find: Callable[[str, str], KernelRecord] | None = None


def apply(
    x: torch.Tensor,
    packed: torch.Tensor,
    channel: torch.Tensor | None,
    residual: torch.Tensor | None,
    key: str,
    epilogue: str,
) -> torch.Tensor:
    """y without values: its shape, and its order in memory."""
    assert find is not None  # until the interpreter ends
    record = find(key, epilogue)
    expected, shape = list(record.shapes.input), list(record.shapes.output)
    if record.batched and x.dim() > 0:
        expected[0] = shape[0] = x.shape[0]
    given = (x, packed, channel, residual)
    _check_devices(given)
    wants_gradient = any(tensor is not None and tensor.requires_grad for tensor in given)
    if wants_gradient and torch.is_grad_enabled() and not torch.compiler.is_exporting():
        # A graph that torch.compile traces for training: when it runs, nothing says so any more.
        raise RuntimeError(_NO_GRADIENT)
    # With symbolic sizes the comparison also fixes all of them but the batch.
    torch._check(
        tuple(x.shape) == tuple(expected),
        lambda: f"x of the wrong shape\n  expected: {expected}      got: {list(x.shape)}",
    )
    return torch.empty_permuted(shape, record.output_order, dtype=torch.float32, device=x.device)


def pool(
    x: torch.Tensor, kh: int, kw: int, sh: int, sw: int, ph: int, pw: int, average: bool
) -> torch.Tensor:
    """y of windows without values."""
    if x.requires_grad and torch.is_grad_enabled() and not torch.compiler.is_exporting():
        raise RuntimeError(_NO_GRADIENT)
    batch, channels, height, width = x.shape
    sizes = ((height + 2 * ph - kh) // sh + 1, (width + 2 * pw - kw) // sw + 1)
    return x.new_empty(batch, channels, *sizes)


def apply_out(*given: object, out: torch.Tensor) -> None:
    """Nothing: `out` stays as it is."""
    _check_devices((*given, out))


def _check_devices(given: tuple[object, ...]) -> None:
    """One tensor on the meta device among others brings a call here, and none may then compute."""
    found = {str(each.device) for each in given if isinstance(each, torch.Tensor)}
    torch._check(
        len(found) <= 1,
        lambda: (
            "syno::apply: arguments on several devices\n"
            f"  expected: all on cpu      got: {', '.join(sorted(found))}"
        ),
    )
