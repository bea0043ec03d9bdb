"""Compiled operators with their gradients, for training on CPUs in float32. Needs torch."""

from __future__ import annotations

import collections
import ctypes
import json
import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.autograd.function import FunctionCtx, once_differentiable

from syno import _core
from syno.codegen.native.compiler import TRAINING_FLAGS, Compiler, find_compiler
from syno.codegen.native.function import Manifest, _aligned
from syno.operators.operator import Operator
from syno.operators.specification import Binding

_MOST_IDLE = 4
_Pointers = ctypes.Array[ctypes.c_void_p]
_Room = tuple[ctypes.c_void_p, NDArray[np.float32]]


class TrainingKernel:
    """An operator under one binding, compiled with its gradients, for tensors.

        kernel = compile_training(operator, binding)
        y = kernel(x, weights)

    torch can differentiate such a call once. Weights are read as they are, because they change with
    each step: nothing is packed, and there is no epilogue. Any number of Python threads may call it
    at the same time.

    source: the compiled source; input_shape, output_shape: dimension 0 has any size if `batched`.
    """

    def __init__(self, library: ctypes.CDLL, name: str, source: str, manifest: Manifest) -> None:
        self.source = source
        self.input_shape = tuple(dim["extent"] for dim in manifest["input"])
        self.output_shape = tuple(dim["extent"] for dim in manifest["output"])
        self.weight_shapes = [tuple(weight["shape"]) for weight in manifest["weights"]]
        self.batched = any(dim["free"] for dim in manifest["input"])
        self._library = library  # keeps it loaded
        self._run = getattr(library, f"{name}_run")
        self._gradients = getattr(library, f"{name}_gradients")
        self._rooms = []
        for function in ("run", "gradients"):
            size = getattr(library, f"{name}_{function}_workspace")
            size.restype = ctypes.c_long
            self._rooms.append(size(1))
        self._run.restype = self._gradients.restype = None
        self._idle: collections.deque[_Room] = collections.deque(maxlen=_MOST_IDLE)
        self._closed = False

    def __call__(self, x: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """The operator's value, computed in float32, which torch can differentiate once.

        Args:
            x: of the input's shape, with any batch size if the kernel is batched, on the CPU, in
                float32 or bfloat16. The value is in channels-last format if it is.
            weights: in float32.

        Returns:
            The value in float32; under autocast on the CPU in its type.
        """
        dtype = _autocast()
        if dtype is None:
            return _applied(self, torch.float32, x, *weights)
        with torch.autocast("cpu", enabled=False):
            return _applied(self, dtype, x, *weights)

    def takes(self, x: torch.Tensor, weights: Sequence[torch.Tensor]) -> bool:
        """Return whether the code computes this call."""
        if self._closed:
            return False
        first = 1 if self.batched else 0
        return (
            tuple(x.shape[first:]) == self.input_shape[first:]
            and x.dim() == len(self.input_shape)
            and x.dtype in ((torch.float32, torch.bfloat16) if _autocast() else (torch.float32,))
            and not torch.compiler.is_compiling()
            and not torch.jit.is_tracing()
            and all(tensor.device.type == "cpu" for tensor in (x, *weights))
            and all(weight.dtype == torch.float32 for weight in weights)
        )

    def close(self) -> None:
        """Take no more calls of networks, nor those of their copies."""
        self._closed = True

    def __deepcopy__(self, memo: dict[int, object]) -> TrainingKernel:
        return self  # copies of a network share code, but not weights

    def run(self, x: int, weights: Sequence[int], y: int, batch: int, threads: int = 1) -> None:
        """Compute y at an address, from float32 in C order; an address for each weight."""
        room = self._room()
        self._run(
            ctypes.c_void_p(x),
            _pointers(weights),
            ctypes.c_void_p(y),
            room[0],
            ctypes.c_long(batch),
            ctypes.c_int(threads),
        )
        self._idle.append(room)

    def gradients(
        self,
        x: int,
        weights: Sequence[int],
        dy: int,
        dx: int,
        dweights: Sequence[int],
        batch: int,
        threads: int = 1,
    ) -> None:
        """Compute the gradients of sum(dy * y) for x and for each weight, at addresses.

        dx: 0 where nobody wants it.
        """
        room = self._room()
        self._gradients(
            ctypes.c_void_p(x),
            _pointers(weights),
            ctypes.c_void_p(dy),
            ctypes.c_void_p(dx),
            _pointers(dweights),
            room[0],
            ctypes.c_long(batch),
            ctypes.c_int(threads),
        )
        self._idle.append(room)

    def _room(self) -> _Room:
        """A workspace with its address, for both functions."""
        try:
            return self._idle.pop()
        except IndexError:
            memory = _aligned(max(self._rooms))
            return ctypes.c_void_p(memory.ctypes.data), memory


def compile_training(
    operator: Operator,
    binding: Binding | str,
    *,
    compiler: Compiler | None = None,
    flags: Sequence[str] = TRAINING_FLAGS,
    plan: int = 1,
    images: int = 0,
) -> TrainingKernel:
    """Compile an operator and its gradients under a binding, or load them from the cache.

    Args:
        operator: the operator.
        binding: values of its variables.
        plan: the number of the plan in `Operator.plans`; 1 is the cheapest.
        images: elements of the batch that are processed together; 0 chooses.

    Raises:
        UserError: the operator does not fit the binding, the plan does not exist, or there is no
            compiler.
    """
    chosen = operator.numbered_plan(binding, plan, fold_weights=False)
    source, manifest = _core.emit_training(chosen, formula=operator.formula(), images=images)
    library = (compiler or find_compiler()).library(source, flags)
    return TrainingKernel(library, "syno_operator", source, json.loads(manifest))


def compile_trainings(
    sources: Sequence[tuple[str, str, Manifest]],
    *,
    compiler: Compiler | None = None,
    flags: Sequence[str] = TRAINING_FLAGS,
) -> list[TrainingKernel]:
    """Many operators in one translation unit.

    sources: of each its name, its source without the runtime, and its manifest.
    """
    text = "\n".join([_core.training_runtime(), *(source for _, source, _ in sources)])
    library = (compiler or find_compiler()).library(text, flags)
    return [TrainingKernel(library, *parts) for parts in sources]


def on_arrays(
    kernel: TrainingKernel,
    x: NDArray[np.float32],
    weights: Sequence[NDArray[np.float32]],
    dy: NDArray[np.float32] | None = None,
    threads: int = 1,
) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
    """The value (dy is None), or the gradients for x and each weight, of arrays in C order."""
    batch = x.shape[0] if kernel.batched else 1
    weights_at = [weight.ctypes.data for weight in weights]
    if dy is None:
        shape = (batch, *kernel.output_shape[1:]) if kernel.batched else kernel.output_shape
        y = np.full(shape, math.nan, np.float32)
        kernel.run(x.ctypes.data, weights_at, y.ctypes.data, batch, threads)
        return y, []
    dx = np.full_like(x, math.nan)
    dweights = [np.full_like(weight, math.nan) for weight in weights]
    kernel.gradients(
        x.ctypes.data,
        weights_at,
        dy.ctypes.data,
        dx.ctypes.data,
        [dweight.ctypes.data for dweight in dweights],
        batch,
        threads,
    )
    return dx, dweights


def _pointers(addresses: Sequence[int]) -> _Pointers:
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)


def _autocast() -> torch.dtype | None:
    """The type of autocast on the CPU; None outside of it."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None


def _applied(kernel: TrainingKernel, dtype: torch.dtype, *tensors: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = _Apply.apply(kernel, dtype, *tensors)
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
        kernel: TrainingKernel,
        dtype: torch.dtype,
        x: torch.Tensor,
        *weights: torch.Tensor,
    ) -> torch.Tensor:
        channels_last = _is_channels_last(x)
        ctx.gave = x.dtype, channels_last  # type: ignore[attr-defined]
        x = _plain(x)
        held = tuple(weight.contiguous() for weight in weights)
        ctx.save_for_backward(x, *held)
        ctx.kernel = kernel  # type: ignore[attr-defined]
        batch = x.shape[0] if kernel.batched else 1
        y = x.new_empty(
            (batch, *kernel.output_shape[1:]) if kernel.batched else kernel.output_shape
        )
        kernel.run(
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
        kernel: TrainingKernel = ctx.kernel  # type: ignore[attr-defined]
        dy = _plain(dy)
        dx = torch.empty_like(x) if ctx.needs_input_grad[2] else None  # type: ignore[attr-defined]
        dweights = [torch.empty_like(weight) for weight in weights]
        kernel.gradients(
            x.data_ptr(),
            [weight.data_ptr() for weight in weights],
            dy.data_ptr(),
            0 if dx is None else dx.data_ptr(),
            [dweight.data_ptr() for dweight in dweights],
            x.shape[0] if kernel.batched else 1,
            torch.get_num_threads(),
        )
        if dx is not None:
            dx = _like(dx, *ctx.gave)  # type: ignore[attr-defined]
        return None, None, dx, *dweights
