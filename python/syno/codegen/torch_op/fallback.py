"""What a kernel computes, by the PyTorch emitter: where it is not compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch

from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.record import KernelRecord
from syno.operators.emitted import load_module

# Floats before the weights, so that those which were packed for other code are recognized.
_TAG = 8


class Fallback:
    """The emitted PyTorch module of a kernel, with its epilogue, for packed weights."""

    def __init__(self, record: KernelRecord, epilogue: Epilogue) -> None:
        source = record.operator.source(record.binding)
        with torch.random.fork_rng(devices=[]):
            self._module = load_module(source)().requires_grad_(False)
        self._names = [name for name, _ in self._module.named_parameters()]
        self._shapes = record.shapes.weights
        self._sizes = [_TAG, *(int(np.prod(shape)) for shape in self._shapes)]
        self._record = record
        self._epilogue = epilogue
        digest = hashlib.sha256(f"pytorch {record.key}".encode()).digest()
        self._tag = torch.tensor(list(digest[:_TAG]), dtype=torch.float32)

    def pack(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """The weights one after the other, in a vector."""
        return torch.cat([self._tag, *(weight.flatten() for weight in weights)])

    def __call__(
        self,
        x: torch.Tensor,
        packed: torch.Tensor,
        channel: torch.Tensor | None,
        residual: torch.Tensor | None,
        key: str,
        epilogue: str,
    ) -> torch.Tensor:
        """y, as torch.ops.syno.apply computes it."""
        self._check(x, packed, channel, residual)
        _, *floats = packed.split(self._sizes)
        weights = [part.view(shape) for part, shape in zip(floats, self._shapes, strict=True)]
        named = dict(zip(self._names, weights, strict=True))
        y = torch.func.functional_call(self._module, named, (x,))
        y = self._epilogue.applied(y, channel, residual, self._record.channel)
        order = self._record.output_order
        return y.permute(order).contiguous().permute([order.index(dim) for dim in range(y.dim())])

    def _check(
        self,
        x: torch.Tensor,
        packed: torch.Tensor,
        channel: torch.Tensor | None,
        residual: torch.Tensor | None,
    ) -> None:
        """What PyTorch would take, but the operator refuses."""
        shapes, record = self._record.shapes, self._record
        output = tuple(shapes.output)
        if record.batched and x.dim() > 0:
            output = (x.shape[0], *output[1:])
        floats = self._epilogue.channel_floats(shapes.output, record.channel)
        _check_tensor("x", x, tuple(x.shape))  # the module compares the shape
        _check_tensor("packed", packed, (sum(self._sizes),))
        _check_tensor("channel", channel, (floats,) if floats else None)
        _check_tensor("residual", residual, output if self._epilogue.residual else None)
        if not torch.compiler.is_compiling() and not torch.equal(packed[:_TAG], self._tag):
            raise RuntimeError("syno::apply: packed holds weights for another kernel")


def _check_tensor(name: str, given: torch.Tensor | None, shape: tuple[int, ...] | None) -> None:
    """RuntimeError unless `given` has that shape, or is None where the shape is."""
    if (given is None) != (shape is None):
        said = "is missing, which the epilogue names" if given is None else "is not in the epilogue"
        raise RuntimeError(f"syno::apply: {name} {said}")
    if given is not None and tuple(given.shape) != shape:
        raise RuntimeError(
            f"syno::apply: {name} of the wrong shape\n"
            f"  expected: {list(shape or ())}      got: {list(given.shape)}"
        )
    if given is not None and given.dtype != torch.float32:
        raise RuntimeError(
            f"syno::apply: {name} of the wrong dtype\n"
            f"  expected: float32\n  what to do: use {name}.float()"
        )
