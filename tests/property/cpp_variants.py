"""Compiled operators with epilogues and memory orders, held against the interpreter and torch."""

from __future__ import annotations

import ctypes
import functools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from syno import _core
from syno.codegen import native
from syno.codegen.emitters import Case
from syno.codegen.native import Function, Variant
from syno.codegen.native import function as native_function
from syno.codegen.verify.random_cases import random_case

Array = NDArray[np.float32]

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"),
    "hardswish": F.hardswish,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardsigmoid": F.hardsigmoid,
}
EXACT = ("relu", "relu6")
TOLERANCE = 2e-6  # of the value, or of 1
# Blocks and panels of every size.
_CACHES = (16, 256, 4096, 65536)
_BATCHES = (1, 2, 5)
_THREADS = (1, 2)


class WrongError(Exception):
    """Compiled code differs from the definition."""


@dataclass(frozen=True)
class Emitted:
    """An operator under a binding, and how its code is emitted."""

    case: Case
    variant: Variant = Variant()  # noqa: RUF009  (it cannot be changed)
    cache_floats: int = 65536

    def emitted(self, name: str) -> tuple[str, native.function.Manifest]:
        plan = self.case.operator.plans(self.case.binding, 1)[0]
        source, manifest = _core.emit_cpp(
            plan,
            name=name,
            with_runtime=False,
            cache_floats=self.cache_floats,
            **asdict(self.variant),
        )
        return source, json.loads(manifest)

    @functools.cached_property
    def batched(self) -> bool:
        return any(dim["free"] for dim in Emitted(self.case).emitted("op")[1]["output"])


def random_kernel(seed: int) -> Emitted:
    """A random operator with a random epilogue and random memory orders."""
    rng = random.Random(seed)
    case = random_case(seed).case
    batched = Emitted(case).batched
    shapes = case.operator.shapes(case.binding)

    def order(rank: int) -> tuple[int, ...] | None:
        if rng.random() < 0.4:
            return None
        first = 1 if batched else 0
        return (*range(first), *rng.sample(range(first, rank), rank - first))

    rank = len(shapes.output)
    channels = range(1 if batched else 0, rank)
    parts = [part for part in ("scale", "bias") if channels and rng.random() < 0.5]
    if rng.random() < 0.5:
        parts.append("residual")
    if rng.random() < 0.7:
        parts.append(rng.choice(list(ACTIVATIONS)))
    variant = Variant(
        "+".join(parts),
        rng.choice(channels) if channels else 1,
        order(len(shapes.input)),
        order(rank),
    )
    return Emitted(case, variant, rng.choice(_CACHES))


def compiled(
    kernels: Sequence[Emitted],
    mutant: Callable[[str], str] = lambda source: source,
    compiler: str | None = None,
    flags: Sequence[str] = native.QUICK_FLAGS,
) -> list[Function]:
    """All kernels from one translation unit, whose whole text goes through `mutant`."""
    emitted = [kernel.emitted(f"op{number}") for number, kernel in enumerate(kernels)]
    text = "\n".join([_core.cpp_runtime(), *(source for source, _ in emitted)])
    library = native.find_compiler(compiler).library(mutant(text), flags)
    return [
        Function(library, f"op{number}", source, manifest, kernel.variant)
        for number, (kernel, (source, manifest)) in enumerate(zip(kernels, emitted, strict=True))
    ]


def ended(variant: Variant, y: NDArray[np.float64], parts: Mapping[str, Array]) -> NDArray:
    """The epilogue of y in float64, by definition."""
    along = [1] * y.ndim
    if "scale" in parts or "bias" in parts:
        along[variant.channel] = -1
    if "scale" in parts:
        y = y * parts["scale"].astype(float).reshape(along)
    if "bias" in parts:
        y = y + parts["bias"].astype(float).reshape(along)
    if "residual" in parts:
        y = y + parts["residual"]
    last = variant.epilogue.split("+")[-1]
    return ACTIVATIONS[last](torch.from_numpy(y)).numpy() if last in ACTIVATIONS else y


def drawn(kernel: Emitted, batch: int, seed: int) -> tuple[Array, list[Array], dict[str, Array]]:
    """x, weights and what the epilogue names: integers, so that sums are exact."""
    rng = np.random.default_rng(seed)
    shapes = kernel.case.operator.shapes(kernel.case.binding)
    variant = kernel.variant

    def integers(shape: Sequence[int], most: int) -> Array:
        return rng.integers(-most, most + 1, shape).astype(np.float32)

    batched = kernel.batched
    x_shape, y_shape = (
        (batch, *shape[1:]) if batched else shape for shape in (shapes.input, shapes.output)
    )
    x, weights = integers(x_shape, 2), [integers(shape, 2) for shape in shapes.weights]
    parts = {}
    for part in ("scale", "bias"):
        if variant.has(part):
            parts[part] = integers((y_shape[variant.channel],), 3)
    if variant.has("residual"):
        parts["residual"] = integers(y_shape, 9)
    return x, weights, parts


def interpreted(kernel: Emitted, x: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
    """y of any number of images, which do not depend on each other."""
    operator, binding = kernel.case.operator, kernel.case.binding
    if not kernel.batched:
        return operator.interpret(binding, x, weights)
    extent = operator.shapes(binding).input[0]
    more = np.concatenate([x, np.zeros((-len(x) % extent, *x.shape[1:]), np.float32)])
    pieces = [more[n : n + extent] for n in range(0, len(more), extent)]
    y = np.concatenate([operator.interpret(binding, piece, weights) for piece in pieces])
    return y[: len(x)]


def by_run(function: Function, x: Array, parts: Mapping[str, Array], threads: int) -> Array:
    """y by NAME_run, in memory without an old result."""
    shape = (len(x), *function.output_shape[1:]) if function.batched else function.output_shape
    y = _nowhere(shape, function.variant.output_order)
    order = function.variant.input_order
    data = _in_memory(x, order)
    function.run_into(data.transpose(np.argsort(order)) if order else data, y, threads, **parts)
    return y


def by_phases(
    function: Function, x: Array, parts: Mapping[str, Array], count: int, shape: tuple
) -> Array:
    """y by NAME_phase: all parts of a phase, the last one first, then the next phase."""
    name = function._run.__name__.removesuffix("_run")
    library, variant = function._library, function.variant
    size = getattr(library, f"{name}_workspace_size")(count)
    at = native_function._aligned(size)
    at.fill(np.nan)
    data = _in_memory(x, variant.input_order)
    y = _nowhere(shape, variant.output_order)
    channel = np.zeros(0, np.float32)
    if variant.has("bias") or variant.has("scale"):
        channels = shape[variant.channel]
        channel = np.concatenate(
            [parts.get("bias", np.zeros(channels, np.float32)), parts.get("scale", channel)]
        )
    if "residual" in parts:
        # It may be y itself.
        y[:] = parts["residual"]
    images = shape[0] if function.batched else 1
    phase = getattr(library, f"{name}_phase")
    for image in range(images):

        def of_image(array: Array, image: int = image) -> ctypes.c_void_p:
            return ctypes.c_void_p(array.ctypes.data + image * (array.nbytes // images))

        for number in range(getattr(library, f"{name}_phase_count")()):
            for part in reversed(range(count)):
                phase(
                    *(number, of_image(data), function._packed),
                    ctypes.c_void_p(channel.ctypes.data if channel.size else None),
                    of_image(y) if "residual" in parts else ctypes.c_void_p(),
                    *(of_image(y), ctypes.c_void_p(at.ctypes.data)),
                    *(ctypes.c_long(part), ctypes.c_long(count)),
                )
    return y


def _nowhere(shape: tuple[int, ...], order: tuple[int, ...] | None) -> Array:
    order = order or tuple(range(len(shape)))
    lies = np.full([shape[d] for d in order], np.nan, np.float32)
    return lies.transpose(np.argsort(order))


def _in_memory(array: Array, order: tuple[int, ...] | None) -> Array:
    return np.ascontiguousarray(array.transpose(order)) if order else np.ascontiguousarray(array)


def check(kernel: Emitted, function: Function, seed: int = 0) -> None:
    """WrongError with all that is needed to repeat it, unless the code is right."""
    for batch in _BATCHES if kernel.batched else (1,):
        x, weights, parts = drawn(kernel, batch, seed)
        before = interpreted(kernel, x, weights)
        assert np.abs(before).max(initial=0) < 2**20
        wanted = ended(kernel.variant, before, parts)
        mine = function.with_weights(weights)
        found = {f"{threads} threads": by_run(mine, x, parts, threads) for threads in _THREADS}
        for count in (1, 3):
            found[f"{count} parts"] = by_phases(mine, x, parts, count, wanted.shape)
        last = kernel.variant.epilogue.split("+")[-1]
        bound = TOLERANCE if last in ACTIVATIONS and last not in EXACT else 0.0
        for how, y in found.items():
            if y.shape != wanted.shape:
                raise WrongError(f"shape {y.shape}, expected {wanted.shape}")
            wrong = np.abs(y - wanted) > bound * np.maximum(1, np.abs(wanted))
            if wrong.any() or np.isnan(y).any():
                place = np.argwhere(wrong | np.isnan(y))[0]
                raise WrongError(
                    f"{how}, batch {batch}: y{place.tolist()} = {y[tuple(place)]}, expected "
                    f"{wanted[tuple(place)]}\n{kernel}\n{kernel.case.operator.text}\n"
                    f"{function.source}"
                )
