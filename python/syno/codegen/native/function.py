"""Compiled operators as functions on numpy arrays."""

from __future__ import annotations

import collections
import copy
import ctypes
import functools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syno import _core
from syno._util.arguments import checked, flag, instance, optional, texts
from syno._util.errors import UserError
from syno._util.threads import check_threads
from syno.codegen.native.compiler import FLAGS, Compiler, find_compiler
from syno.operators.operator import Operator
from syno.operators.specification import Binding
from syno.operators.weights import WeightNames, number_array

_LINE = 64  # bytes of a cache line
_FLOAT32 = np.dtype(np.float32)
# So many workspaces wait for the next call; of more calls at once each takes one of its own.
_MOST_IDLE = 16
_Workspace = tuple[int, ctypes.c_void_p, NDArray[np.float32]]


class Dimension(TypedDict):
    """A dimension of a manifest; free: it takes any size."""

    extent: int
    free: bool


class Weight(TypedDict):
    """A weight of a manifest."""

    shape: list[int]


class Manifest(TypedDict):
    """What is used of the manifest that comes with emitted code."""

    input: list[Dimension]
    output: list[Dimension]
    weights: list[Weight]


@dataclass(frozen=True)
class Variant:
    """What compiled code does besides y = operator(x) in row-major memory.

    epilogue: y = activation(operator(x) * scale[c] + bias[c] + residual) with the parts of
    `scale+bias+residual+relu` that it names; channel: the dimension of y that c counts;
    input_order, output_order: the dimensions of x, and of y and residual, in the order of memory.
    precision: what contractions multiply, `float32` or `bfloat16`. They add in float32. tuning:
    choices of the schedule, as `emit_cpp` reads them.
    """

    epilogue: str = ""
    channel: int = 1
    input_order: tuple[int, ...] | None = None
    output_order: tuple[int, ...] | None = None
    precision: str = "float32"
    tuning: str = ""

    def has(self, part: str) -> bool:
        """Whether the epilogue names the part."""
        return part in self.epilogue.split("+")


class Function:
    """An operator under one binding as compiled code in float32.

    `pack` converts the weights to the layout of the kernels, once for many calls:

        function = syno.codegen.native.compile_operator(operator, binding)
        function.pack(weights)
        y = function(x)

    Any number of Python threads may call the function at the same time: each call has its own
    workspace and uses the weights of the last `pack` that was completed before the call. A `pack`
    does not affect running calls.

    source: the compiled source; input_shape, output_shape: dimension 0 has any size if `batched`.
    A function with an epilogue is given the arrays that it names: `bias` and `scale` with a number
    for each channel, `residual` of the shape of y.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        name: str,
        source: str,
        manifest: Manifest,
        variant: Variant | None = None,
    ) -> None:
        self.source = source
        self.variant = variant or Variant()
        self.input_shape = tuple(dim["extent"] for dim in manifest["input"])
        self.output_shape = tuple(dim["extent"] for dim in manifest["output"])
        self.weight_shapes = [tuple(weight["shape"]) for weight in manifest["weights"]]
        self.batched = any(dim["free"] for dim in manifest["input"])
        self._library = library  # keeps it loaded
        # Without argtypes, which take longer than all the rest of a call: both are given values of
        # the right C types.
        self._run = getattr(library, f"{name}_run")
        self._run.restype = None
        self._pack = getattr(library, f"{name}_pack")
        self._pack.restype = None
        size = getattr(library, f"{name}_packed_size")
        size.restype = ctypes.c_long
        self._packed_size = size()
        size = getattr(library, f"{name}_workspace_size")
        size.argtypes = [ctypes.c_int]
        size.restype = ctypes.c_long
        self._workspace_size = functools.cache(size)
        # Size, pointer and memory of each. A workspace that is larger than needed does as well: the
        # code reads nothing there that it has not written. The longest unused one goes first.
        self._idle: collections.deque[_Workspace] = collections.deque(maxlen=_MOST_IDLE)
        # The weights that calls read. Never written again: a new pack takes the place of it.
        self._packed: ctypes.c_void_p | None = None
        self.weight_names = WeightNames.canonical(len(self.weight_shapes))
        if not self.weight_shapes:
            self.pack([])

    def pack(
        self,
        weights: Sequence[ArrayLike] | Mapping[str, ArrayLike] | None = None,
        **named: ArrayLike,
    ) -> None:
        """Set the weights, by name or as a list.

        Later calls use them; running calls use the former weights.

        Args:
            weights: arrays with the shapes of `weight_shapes`, in this order; or by name.
            named: arrays by the names in the index notation of the operator (w0, w1, ... if it has
                none), indexed as there: `function.pack(a=a, v=v)`.
        """
        names = self.weight_names
        if weights is None and (named or not names.names):
            weights = named
        weights = names.arranged(weights)
        arrays = [_floats(f"weight {t}", weight) for t, weight in enumerate(weights)]
        given = [array.shape for array in arrays]
        if given != self.weight_shapes:
            raise UserError(
                f"weights of the wrong shapes\n  expected: {self.weight_shapes}      got: {given}"
            )
        pointers = (ctypes.c_void_p * max(1, len(arrays)))(*map(_pointer, arrays))
        packed = _pointer(_aligned(self._packed_size))
        self._pack(pointers, packed)
        self._packed = packed

    def with_weights(self, weights: Sequence[ArrayLike]) -> Function:
        """Return the same code with separate weights."""
        other = copy.copy(self)
        other.pack(weights)
        return other

    def __call__(
        self, x: ArrayLike, threads: int = 1, **parts: ArrayLike | None
    ) -> NDArray[np.float32]:
        """y for x of the input's shape; with any number of images where it is batched.

        parts: `scale`, `bias` and `residual`, as the epilogue names them.
        """
        data = _floats("x", x)
        batch = self._batch(data.shape)
        data = _in_order(data, self.variant.input_order)
        order = self.variant.output_order
        shape = self._output(batch)
        y = np.empty([shape[d] for d in order] if order else shape, np.float32)
        self._prepared(data, y, batch, threads, parts)()
        return y.transpose(np.argsort(order)) if order else y

    def run_into(
        self,
        x: NDArray[np.float32],
        y: NDArray[np.float32],
        threads: int = 1,
        **parts: ArrayLike | None,
    ) -> None:
        """Compute into an existing array.

        Both arrays have the code's order of memory (C-contiguous without one), are aligned, in
        float32, of the right shapes, do not overlap, and y is writable; otherwise a UserError is
        raised. Other threads must not write x or y during the call.
        """
        self.prepared(x, y, threads, **parts)()

    def prepared(
        self,
        x: NDArray[np.float32],
        y: NDArray[np.float32],
        threads: int = 1,
        **parts: ArrayLike | None,
    ) -> Callable[[], None]:
        """Return `run_into` with checked arguments for many calls; it keeps both arrays.

        Calls of several threads are executed one after the other, because all of them write y.
        """
        _check_array("x", x, self.variant.input_order)
        batch = self._batch(x.shape)
        _check_array("y", y, self.variant.output_order)
        if y.shape != self._output(batch):
            raise UserError(
                "y of the wrong shape\n"
                f"  expected: {list(self._output(batch))}      got: {list(y.shape)}"
            )
        if not y.flags.writeable:
            raise UserError("y is read-only\n  expected: a writable array")
        if np.may_share_memory(x, y):
            raise UserError(
                "x and y overlap\n  expected: arrays with separate memory\n"
                "  what to do: use function(x), which creates a new array"
            )
        return self._prepared(x, y, batch, threads, parts)

    def _prepared(
        self,
        x: NDArray[np.float32],
        y: NDArray[np.float32],
        batch: int,
        threads: int,
        parts: Mapping[str, ArrayLike | None],
    ) -> Callable[[], None]:
        if self._packed is None:
            raise UserError(
                "the function has no weights yet\n  what to do: call function.pack(weights)"
            )
        check_threads(threads)
        run, take, give = self._run, self._idle.pop, self._idle.append
        size = self._workspace_size(threads)
        from_x, to_y = _pointer(x), _pointer(y)
        ends = self._ends(parts, self._output(batch))
        images, team = ctypes.c_long(batch), ctypes.c_int(threads)
        turn = threading.Lock()

        def call() -> None:
            with turn:
                try:
                    room, at, _ = workspace = take()
                except IndexError:
                    room = -1
                if room < size:
                    _, at, _ = workspace = _workspace(size)
                run(from_x, self._packed, *ends, to_y, at, images, team)
                give(workspace)

        return call

    def _ends(
        self, parts: Mapping[str, ArrayLike | None], shape: tuple[int, ...]
    ) -> list[ctypes.c_void_p]:
        """The arguments of the epilogue: bias and scale in one array, and the residual."""
        given = {name: value for name, value in parts.items() if value is not None}
        named = [part for part in ("scale", "bias", "residual") if self.variant.has(part)]
        if sorted(given) != sorted(named):
            raise UserError(
                f"the epilogue '{self.variant.epilogue}' has other parts\n"
                f"  expected: {named}      got: {list(given)}"
            )
        if not self.variant.epilogue:
            return []
        pointers = [ctypes.c_void_p(), ctypes.c_void_p()]
        if "scale" in named or "bias" in named:
            channels = (shape[self.variant.channel],)
            values = [_shaped("bias", given.get("bias", np.zeros(channels)), channels)]
            if "scale" in named:
                values.append(_shaped("scale", given["scale"], channels))
            pointers[0] = _pointer(np.concatenate(values))
        if "residual" in named:
            residual = _shaped("residual", given["residual"], shape)
            pointers[1] = _pointer(_in_order(residual, self.variant.output_order))
        return pointers

    def _output(self, batch: int) -> tuple[int, ...]:
        return (batch, *self.output_shape[1:]) if self.batched else self.output_shape

    def _batch(self, shape: tuple[int, ...]) -> int:
        if self.batched and shape[1:] == self.input_shape[1:] and len(shape) > 0:
            return shape[0]
        if shape != self.input_shape:
            expected = ["n", *self.input_shape[1:]] if self.batched else list(self.input_shape)
            raise UserError(f"x of the wrong shape\n  expected: {expected}      got: {list(shape)}")
        return 1


@checked(
    operator=instance(Operator),
    flags=texts,
    fold_weights=flag,
    variant=optional(instance(Variant)),
)
def compile_operator(
    operator: Operator,
    binding: Binding | str,
    *,
    compiler: Compiler | None = None,
    flags: Sequence[str] = FLAGS,
    plan: int = 1,
    fold_weights: bool = False,
    variant: Variant | None = None,
) -> Function:
    """Compile an operator under a binding, or load it from the cache.

    Args:
        operator: the operator.
        binding: values of its variables.
        plan: the number of the plan in `Operator.plans`; 1 is the cheapest.
            `syno.measure.choose_plan` finds the fastest.
        fold_weights: multiply weights with each other in `pack` if this saves MACs.
        variant: an epilogue, and the memory orders of input and output.

    Raises:
        UserError: the operator does not fit the binding, the plan does not exist, or there is no
            compiler.
    """
    chosen = operator.numbered_plan(binding, plan, fold_weights=fold_weights)
    variant = variant or Variant()
    source, manifest = _core.emit_cpp(chosen, formula=operator.formula(), **asdict(variant))
    library = (compiler or find_compiler()).library(source, flags)
    function = Function(library, "syno_operator", source, json.loads(manifest), variant)
    function.weight_names = operator.weight_names
    return function


def compile_functions(
    sources: Sequence[tuple[str, str, Manifest]],
    *,
    variants: Sequence[Variant] | None = None,
    compiler: Compiler | None = None,
    flags: Sequence[str] = FLAGS,
) -> list[Function]:
    """Many operators in one translation unit.

    sources: of each its name, its source without the runtime, and its manifest; variants: what
    each was emitted with.
    """
    text = "\n".join([_core.cpp_runtime(), *(source for _, source, _ in sources)])
    library = (compiler or find_compiler()).library(text, flags)
    each = variants or [Variant()] * len(sources)
    return [
        Function(library, *parts, variant) for parts, variant in zip(sources, each, strict=True)
    ]


def _floats(name: str, value: ArrayLike) -> NDArray[np.float32]:
    """The numbers as float32 in C order. UserError for what holds none."""
    return np.asarray(number_array(name, value), _FLOAT32, order="C")


def _shaped(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float32]:
    array = _floats(name, value)
    if array.shape != shape:
        raise UserError(
            f"{name} of the wrong shape\n  expected: {list(shape)}      got: {list(array.shape)}"
        )
    return array


def _in_order(array: NDArray[np.float32], order: tuple[int, ...] | None) -> NDArray[np.float32]:
    """The array whose row-major memory has the dimensions in this order."""
    return np.ascontiguousarray(array.transpose(order)) if order else array


def _check_array(name: str, array: object, order: tuple[int, ...] | None) -> None:
    """UserError for memory that compiled code would read, or write, as something else."""
    if not isinstance(array, np.ndarray):
        raise UserError(
            f"{name} is not an array\n  expected: a numpy array      got: {type(array).__name__}"
        )
    if array.dtype != _FLOAT32:
        raise UserError(
            f"{name} of the wrong type\n  expected: {_FLOAT32}      got: {array.dtype.name}"
            f"{'' if array.dtype.isnative else ' of another byte order'}\n"
            f"  what to do: use {name}.astype(np.float32)"
        )
    lies = array.transpose(order) if order and len(order) == array.ndim else array
    if not lies.flags.c_contiguous:
        found = "Fortran-contiguous memory"
        if array.flags.c_contiguous:
            found = "C-contiguous memory"
        elif not array.flags.f_contiguous:
            found = f"memory with strides {array.strides}"
        raise UserError(
            f"{name} does not have the memory layout of the code\n"
            f"  expected: {_memory(order)}      got: {found}\n"
            f"  what to do: {_advice(name, order)}"
        )
    if not array.flags.aligned:
        raise UserError(
            f"{name} is not aligned\n"
            f"  expected: an address that is a multiple of {array.itemsize}      "
            f"got: {array.ctypes.data:#x}"
        )


def _memory(order: tuple[int, ...] | None) -> str:
    return f"memory in the order {list(order)}" if order else "C-contiguous memory"


def _advice(name: str, order: tuple[int, ...] | None) -> str:
    if not order:
        return f"use np.ascontiguousarray({name})"
    return f"create an array of the transposed shape, and use transpose(np.argsort({list(order)}))"


def _pointer(array: NDArray[np.float32]) -> ctypes.c_void_p:
    """A pointer to the first element, which keeps the array."""
    return array.ctypes.data_as(ctypes.c_void_p)


def _workspace(size: int) -> _Workspace:
    memory = _aligned(size)
    return size, _pointer(memory), memory


def _aligned(count: int) -> NDArray[np.float32]:
    """Zeros that begin at a cache line."""
    room = np.zeros(count + _LINE // 4, np.float32)
    skip = (-room.ctypes.data % _LINE) // 4
    return room[skip : skip + count]
