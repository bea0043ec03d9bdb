"""Compiled kernels as calls of one PyTorch operator, torch.ops.syno.apply."""

from __future__ import annotations

import atexit
import ctypes
import functools
import threading
from collections.abc import Sequence

import torch

from syno._util.errors import UserError
from syno.codegen.torch_op import library as libraries
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.library import HEADER_FLOATS, KernelFields
from syno.codegen.torch_op.record import KernelRecord
from syno.operators.operator import Operator
from syno.operators.specification import Binding

_NO_GRADIENT = (
    "syno::apply: an argument requires a gradient, and compiled kernels have none: they are for "
    "inference\n  what to do: call it under torch.inference_mode() or torch.no_grad()"
)

_lock = threading.RLock()
_kernels: dict[tuple[str, str], Kernel] = {}


class Kernel:
    """An operator under one binding, compiled with an epilogue, for tensors.

        kernel = Kernel.of(operator, binding, epilogue="bias+relu")
        packed = kernel.pack(weights)
        y = kernel(x, packed, bias)

    A call is torch.ops.syno.apply(x, packed, channel, residual, key, epilogue): in eager mode, and
    in graphs of torch.compile and torch.export. Kernels are for inference and have no gradients.

    record: what the kernel computes; key: its digest; epilogue: its text.
    """

    def __init__(self, record: KernelRecord, epilogue: Epilogue, fields: KernelFields) -> None:
        self.record = record
        self.key = record.key
        self.epilogue = epilogue.text
        self._fields = fields
        self._apply = torch.ops.syno.apply.default

    @classmethod
    def of(
        cls,
        operator: Operator,
        binding: Binding | str,
        *,
        epilogue: str = "",
        channel: int = 1,
        input_order: Sequence[int] | None = None,
        output_order: Sequence[int] | None = None,
        plan: int = 1,
        fold_weights: bool = True,
    ) -> Kernel:
        """Compile a kernel, or load it from the cache.

        Args:
            operator: the operator.
            binding: values of its variables; the batch may have any size in calls.
            epilogue: what is done to the operator's result before it is stored: of `scale`, `bias`,
                `residual` and an activation those that are wanted, with + between them.
            channel: the dimension of the output that scale and bias belong to.
            input_order, output_order: the order in which the dimensions of x and y lie in memory,
                outermost first, such as (0, 2, 3, 1) for channels-last; default: row-major.
            plan: the number of the plan in `Operator.plans`; 1 is the cheapest.
            fold_weights: multiply weights with each other in `pack` if this saves MACs.

        Raises:
            UserError: an argument is wrong, PyTorch is too old, or there is no compiler.
        """
        record = KernelRecord.of(
            operator,
            binding,
            channel=channel,
            input_order=input_order,
            output_order=output_order,
            plan=plan,
            fold_weights=fold_weights,
        )
        return load(record, Epilogue(epilogue))

    @property
    def weight_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the operator's weights."""
        return list(self.record.shapes.weights)

    def pack(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the weights as the kernel reads them, in a vector of float32.

        Only this kernel can use the result: with another key or epilogue, on another kind of
        processor, or with another version of Syno, a call refuses it.
        """
        given = [tuple(weight.shape) for weight in weights]
        if given != self.weight_shapes:
            raise UserError(
                f"weights of the wrong shapes\n  expected: {self.weight_shapes}      got: {given}"
            )
        floats = [weight.detach().to("cpu", torch.float32).contiguous() for weight in weights]
        pointers = (ctypes.c_void_p * max(1, len(floats)))(*(each.data_ptr() for each in floats))
        packed = torch.zeros(HEADER_FLOATS + self._fields.packed_size())
        packed[:5] = torch.tensor(self._fields.tag[:5])
        self._fields.pack(pointers, packed.data_ptr() + 4 * HEADER_FLOATS)
        return packed

    def __call__(
        self,
        x: torch.Tensor,
        packed: torch.Tensor,
        channel: torch.Tensor | None = None,
        residual: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Compute y, a tensor of the output's shape with the batch size of x.

        Args:
            x: float32 on the CPU, of the input's shape with any batch size. It is copied where its
                memory has another order than the kernel's.
            packed: the weights, from `pack`.
            channel: bias, and scale behind it, if the epilogue names them: C or 2 C floats; zeros
                in place of a bias that the epilogue does not name.
            residual: a tensor of the shape of y, if the epilogue names it.

        Raises:
            RuntimeError: an argument has the wrong type, device or shape, is missing, or requires a
                gradient.
        """
        return self._apply(x, packed, channel, residual, self.key, self.epilogue)


@functools.cache
def register() -> ctypes.CDLL:
    """Make torch.ops.syno.apply known to PyTorch, as Kernel.of does.

    A process that loads an exported program with kernels calls it first.
    """
    library = libraries.operator_library()
    library.syno_set_loader(_load_by_name)
    torch.library.register_fake("syno::apply", _fake)
    torch.library.register_fake("syno::apply.out", lambda *_, out: None)
    return library


@atexit.register
def _forget() -> None:
    """No kernel is loaded while the interpreter ends."""
    if register.cache_info().currsize:
        register().syno_set_loader(None)
    _kernels.clear()


def load(record: KernelRecord, epilogue: Epilogue) -> Kernel:
    """The kernel of a record, compiled where neither this process nor the cache has it."""
    name = (record.key, epilogue.text)
    with _lock:
        if name in _kernels:
            return _kernels[name]
        operator = register()
        (fields,) = libraries.kernels_in(
            libraries.kernel_library(libraries.kernel_source(record, epilogue))
        )
        record.store()
        if not operator.syno_add_kernel(ctypes.byref(fields)):
            raise AssertionError("kernel.h of the operator and of its kernels differ")
        return _kernels.setdefault(name, Kernel(record, epilogue, fields))


@ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_char_p)
def _load_by_name(key: bytes, epilogue: bytes) -> int:
    """For the operator: loads a kernel that it was asked for; 0, or the address of a message."""
    try:
        kernel_of(key.decode(), epilogue.decode())
    except Exception as error:  # nothing can be raised through the operator's C++
        _message.text = str(error).encode()
        return ctypes.cast(ctypes.c_char_p(_message.text), ctypes.c_void_p).value or 0
    return 0


class _Message(threading.local):
    text = b""


_message = _Message()


def kernel_of(key: str, epilogue: str) -> Kernel:
    """The kernel of that key, which this or another process created with the same cache."""
    with _lock:
        kernel = _kernels.get((key, epilogue))
    return kernel or load(KernelRecord.stored(key), Epilogue(epilogue))


def _fake(
    x: torch.Tensor,
    packed: torch.Tensor,
    channel: torch.Tensor | None,
    residual: torch.Tensor | None,
    key: str,
    epilogue: str,
) -> torch.Tensor:
    """y without values: its shape, and its order in memory."""
    record = kernel_of(key, epilogue).record
    expected, shape = list(record.shapes.input), list(record.shapes.output)
    if record.batched and x.dim() > 0:
        expected[0] = shape[0] = x.shape[0]
    given = (x, packed, channel, residual)
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
