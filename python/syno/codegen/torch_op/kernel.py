"""Compiled kernels as calls of one PyTorch operator, torch.ops.syno.apply."""

from __future__ import annotations

import atexit
import copy
import ctypes
import functools
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from syno._util import checks
from syno._util.arguments import checked, instance, text
from syno._util.errors import InternalError, UserError
from syno._util.tensors import dense
from syno.codegen.native import FLAGS
from syno.codegen.torch_op import fakes
from syno.codegen.torch_op import library as libraries
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.fallback import Fallback
from syno.codegen.torch_op.library import HEADER_FLOATS, TAG_FLOATS
from syno.codegen.torch_op.record import KernelRecord
from syno.operators.operator import Operator
from syno.operators.specification import Binding
from syno.operators.weights import WeightNames

MISSING = ("compile", "pytorch")

_lock = threading.Lock()
_turns: dict[tuple[str, str], threading.Lock] = {}  # who makes a kernel
_kernels: dict[tuple[str, str], Kernel] = {}


class _Compiled:
    """The compiled code of a kernel, which torch.ops.syno.apply calls by its key."""

    def __init__(self, path: Path, fields: libraries.KernelFields) -> None:
        register()
        self.path = path
        self.fields = fields
        if not torch.ops.syno._add_kernel(ctypes.addressof(self.fields)):
            raise InternalError("syno::apply and a kernel were compiled with different kernel.h")

    def pack(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """The weights in the order in which the code reads them, behind its tag."""
        pointers = (ctypes.c_void_p * max(1, len(weights)))(*(each.data_ptr() for each in weights))
        packed = torch.zeros(HEADER_FLOATS + self.fields.packed_size())
        packed[:TAG_FLOATS] = torch.tensor(self.fields.tag[:TAG_FLOATS])
        self.fields.pack(pointers, packed.data_ptr() + packed.element_size() * HEADER_FLOATS)
        return packed


class Kernel:
    """An operator under one binding, compiled with an epilogue, for tensors.

        kernel = Kernel.of(operator, binding, epilogue="bias+relu")
        packed = kernel.pack(weights)
        y = kernel(x, packed, bias)

    A call is torch.ops.syno.apply(x, packed, channel, residual, key, epilogue): in eager mode, and
    in graphs of torch.compile and torch.export. Kernels are for inference and have no gradients.

    record: what the kernel computes; key: its digest; epilogue: its text; compiled: whether it is
    compiled, or else computed by the PyTorch emitter.
    """

    def __init__(
        self, record: KernelRecord, epilogue: Epilogue, code: _Compiled | Fallback
    ) -> None:
        self.record = record
        self.key = record.key
        self.epilogue = epilogue.text
        self.compiled = isinstance(code, _Compiled)
        self.weight_names = WeightNames.canonical(len(record.shapes.weights))
        self._code = code
        # Called with arguments alone: it is the same for all kernels that are compiled.
        self._apply = code if isinstance(code, Fallback) else torch.ops.syno.apply.default

    @classmethod
    @checked(operator=instance(Operator), epilogue=text, missing=text)
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
        tuning: str = "",
        missing: str = "compile",
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
            tuning: choices of the schedule instead of those of the emitter's rules, from
                `syno.codegen.native.find_tuning`.
            missing: what happens if the cache does not have the kernel: "compile" compiles it now;
                "pytorch" computes with the PyTorch emitter instead and says so in a warning, as is
                done without a compiler.

        Raises:
            UserError: an argument is wrong, PyTorch is too old, or the code cannot be compiled.
        """
        record = KernelRecord.of(
            operator,
            binding,
            channel=channel,
            input_order=input_order,
            output_order=output_order,
            plan=plan,
            fold_weights=fold_weights,
            tuning=tuning,
        )
        if missing not in MISSING:
            raise UserError(
                f"unknown value of 'missing': {checks.shown(missing)}\n"
                f"  expected: one of {', '.join(MISSING)}"
            )
        kernel = load(record, Epilogue(epilogue), missing)
        if operator is not operator.canonical:
            kernel = copy.copy(kernel)
            kernel.weight_names = operator.weight_names
        return kernel

    @property
    def library(self) -> Path | None:
        """The file with the compiled code; None where it is not compiled."""
        return self._code.path if isinstance(self._code, _Compiled) else None

    @property
    def weight_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the operator's weights."""
        return list(self.record.shapes.weights)

    def pack(
        self,
        weights: Sequence[torch.Tensor] | Mapping[str, torch.Tensor] | None = None,
        **named: torch.Tensor,
    ) -> torch.Tensor:
        """Return the weights as the kernel reads them, in a vector of float32.

        Only this kernel can use the result: with another key or epilogue, on another kind of
        processor, or with another version of Syno, a call refuses it.

        Args:
            weights: tensors with the shapes of `weight_shapes`, in this order; or by name.
            named: tensors by the names in the index notation of the operator (w0, w1, ... if it has
                none), indexed as there: `kernel.pack(a=a, v=v)`.
        """
        weights = self.weight_names.arranged(named if weights is None else weights)
        for number, weight in enumerate(weights):
            dense(f"weight {number}", weight)
        given = [tuple(weight.shape) for weight in weights]
        if given != self.weight_shapes:
            raise UserError(
                f"weights of the wrong shapes\n  expected: {self.weight_shapes}      got: {given}"
            )
        return self._code.pack(
            [weight.detach().to("cpu", torch.float32).contiguous() for weight in weights]
        )

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
            UserError: an argument is not a tensor with values in dense memory.
            RuntimeError: an argument has the wrong type, device or shape, is missing, or requires a
                gradient.
        """
        dense("x", x)
        dense("packed", packed)
        if channel is not None:
            dense("channel", channel)
        if residual is not None:
            dense("residual", residual)
        return self._apply(x, packed, channel, residual, self.key, self.epilogue)


def register() -> None:
    """Make torch.ops.syno.apply known to PyTorch, as Kernel.of does.

    A process that loads an exported program with kernels calls it first.

    Raises:
        UserError: PyTorch is too old, or there is no compiler.
    """
    with _lock:
        _register()


@functools.cache
def _register() -> None:
    if not hasattr(torch.ops.syno, "apply"):  # a package may have brought it
        libraries.load_operator()
    torch.ops.syno._set_loader(ctypes.cast(_load_by_name, ctypes.c_void_p).value)
    fakes.find = lambda key, epilogue: kernel_of(key, epilogue).record
    torch.library.register_fake("syno::apply", fakes.apply)
    torch.library.register_fake("syno::apply.out", fakes.apply_out)
    torch.library.register_fake("syno::pool", fakes.pool)
    torch.library.register_fake("syno::pool.out", fakes.apply_out)
    atexit.register(_forget)


def _forget() -> None:
    """No kernel is loaded while the interpreter ends."""
    torch.ops.syno._set_loader(0)
    fakes.find = None
    _kernels.clear()


def load(record: KernelRecord, epilogue: Epilogue, missing: str = "compile") -> Kernel:
    """The kernel of a record; made where this process does not have it."""
    name = (record.key, epilogue.text)
    with _lock:
        turn = _turns.setdefault(name, threading.Lock())
    with turn:  # not the lock of all: others are compiled at the same time
        found = _kernels.get(name)
        if found is not None and (found.compiled or missing == "pytorch"):
            return found
        libraries.check_torch()
        source = libraries.kernels_source([(record, epilogue)])
        reason = "it is not compiled"
        try:
            compiler = libraries.kernel_compiler()
        except UserError as error:
            reason = str(error).partition("\n")[0]
        else:
            if missing == "compile" or compiler.has(source):
                (found,) = _compiled([(record, epilogue)], source)
                return found
        said = f"kernel {record.key} is computed by the PyTorch emitter: {reason}"
        warnings.warn(said, stacklevel=3)
        _kernels[name] = Kernel(record, epilogue, Fallback(record, epilogue))
        return _kernels[name]


def load_together(
    kernels: Sequence[tuple[KernelRecord, Epilogue]], flags: Sequence[str] = FLAGS
) -> list[Kernel]:
    """Kernels from one translation unit: many small ones are compiled in a fraction of the time.

    UserError where there is no compiler.
    """
    return _compiled(kernels, libraries.kernels_source(kernels), flags)


def _compiled(
    kernels: Sequence[tuple[KernelRecord, Epilogue]], source: str, flags: Sequence[str] = FLAGS
) -> list[Kernel]:
    library = libraries.kernel_compiler().library(source, flags)
    path = Path(library._name)
    made = []
    for kernel, fields in zip(kernels, libraries.kernels_in(library), strict=True):
        made.append(Kernel(*kernel, _Compiled(path, fields)))
        made[-1].record.store()
        _kernels[made[-1].key, made[-1].epilogue] = made[-1]
    return made


@ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_char_p)
def _load_by_name(key: bytes, epilogue: bytes) -> int:
    """For the operator: loads a kernel that it was asked for; 0, or the address of a message."""
    try:
        kernel = kernel_of(key.decode(), epilogue.decode())
        if not kernel.compiled:
            load(kernel.record, Epilogue(kernel.epilogue))
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
