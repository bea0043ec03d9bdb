"""Libraries for syno::apply: the operator itself, and kernels that it calls."""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import torch

from syno import _core
from syno._util.errors import UserError
from syno.codegen.native.compiler import Compiler, find_compiler
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.record import KernelRecord

LEAST_TORCH = (2, 10)

# Of kernel.h, which the compiler and ctypes must see alike.
HEADER_FLOATS = 16
TAG_FLOATS = 5
_SIGNATURES = {
    "packed_size": ctypes.CFUNCTYPE(ctypes.c_long),
    "pack": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p),
}


class KernelFields(ctypes.Structure):
    """SynoKernel of kernel.h, as far as Python reads it."""

    _fields_ = (
        ("version", ctypes.c_int64),
        ("key", ctypes.c_char_p),
        ("epilogue", ctypes.c_char_p),
        ("batched", ctypes.c_int64),
        ("input_rank", ctypes.c_int64),
        ("output_rank", ctypes.c_int64),
        ("input_shape", ctypes.POINTER(ctypes.c_int64)),
        ("output_shape", ctypes.POINTER(ctypes.c_int64)),
        ("input_order", ctypes.POINTER(ctypes.c_int64)),
        ("output_order", ctypes.POINTER(ctypes.c_int64)),
        ("channel_floats", ctypes.c_int64),
        ("has_residual", ctypes.c_int64),
        ("macs", ctypes.c_int64),
        ("tag", ctypes.POINTER(ctypes.c_float)),
        ("packed_size", _SIGNATURES["packed_size"]),
        ("pack", _SIGNATURES["pack"]),
    )


def check_torch() -> None:
    """UserError where this PyTorch lacks the stable ABI that the operator is built on."""
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if found is None or tuple(map(int, found.groups())) < LEAST_TORCH:
        least = ".".join(map(str, LEAST_TORCH))
        raise UserError(
            f"compiled kernels inside PyTorch need PyTorch {least} or newer\n"
            f"  expected: {least} or newer      got: {torch.__version__}\n"
            "  what to do: pip install --upgrade torch; without it, "
            "syno.codegen.native.compile_operator compiles operators for numpy arrays"
        )


def kernel_compiler() -> Compiler:
    """The compiler, without OpenMP: kernels and operator compute on PyTorch's threads.

    UserError where there is none.
    """
    return dataclasses.replace(find_compiler(), threads=False)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def operator_source() -> str:
    """The translation unit of the operator."""
    return _expanded("apply.cpp", set())


def _expanded(name: str, there: set[str]) -> str:
    """A file with each of the headers beside it in the place of its first #include."""

    def header(include: re.Match[str]) -> str:
        if include[1] in there:
            return ""
        there.add(include[1])
        return _expanded(include[1], there)

    text = _text(name).replace("#pragma once\n", "")
    return re.sub(r'^#include "(\w+\.h)"$', header, text, flags=re.MULTILINE)


def kernel_header() -> str:
    """What kernels and programs say of themselves to the operator."""
    return _text("kernel.h")


def load_operator() -> None:
    """Load the library that registers syno::apply, compiled or from the cache."""
    check_torch()
    kernel_compiler().library(operator_source(), _operator_flags())


def operator_file() -> Path:
    """The library of the operator, compiled or from the cache."""
    return kernel_compiler().file(operator_source(), _operator_flags())


def _operator_flags() -> list[str]:
    root = Path(torch.__file__).parent
    return [
        "-std=c++20",
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-DTORCH_TARGET_VERSION=0x{:02x}{:02x}000000000000ULL".format(*LEAST_TORCH),
        f"-I{root / 'include'}",
        f"-L{root / 'lib'}",
        "-Wl,--no-as-needed",
        "-ltorch_cpu",
        "-lc10",
    ]


def kernels_source(kernels: Sequence[tuple[KernelRecord, Epilogue]]) -> str:
    """A translation unit with these kernels, and the descriptions that the operator reads.

    UserError for an epilogue, channels or orders of memory that an operator cannot have.
    """
    units = [_unit(f"syno_operator_{n}", *kernel) for n, kernel in enumerate(kernels)]
    pointers = [f"&syno_operator_{n}_description::kernel" for n in range(len(kernels))]
    table = f"const SynoKernel* const syno_kernels[] = {{{', '.join(pointers)}, nullptr}};"
    head = [_core.cpp_runtime(), kernel_header()]
    return "\n".join([*head, *units, f'extern "C" {{\nextern {table}\n}}', ""])


def _unit(name: str, record: KernelRecord, epilogue: Epilogue) -> str:
    """The code of a kernel and its description."""
    operator = record.operator
    text, manifest = _core.emit_cpp(
        operator.numbered_plan(record.binding, record.plan, fold_weights=record.fold_weights),
        name=name,
        formula=operator.formula(),
        with_runtime=False,
        epilogue=epilogue.text,
        channel=record.channel,
        input_order=record.input_order,
        output_order=record.output_order,
        tuning=record.tuning,
    )
    shapes = record.shapes
    code = text.replace(name, "") + _core.cpp_runtime()
    digest = hashlib.sha256(code.encode()).digest()
    # Whole numbers of three bytes, which float32 holds exactly.
    tag = [int.from_bytes(digest[3 * i : 3 * i + 3], "big") for i in range(3)]
    arrays = {
        "input_shape": shapes.input,
        "output_shape": shapes.output,
        "input_order": record.input_order,
        "output_order": record.output_order,
    }
    said = json.loads(manifest)
    # The code takes images one by one also where dimension 0 merely passes through.
    batched = any(dim["free"] for dim in said["input"])
    lines = [text, "namespace {", f"namespace {name}_description {{"]
    for array, values in arrays.items():
        # One more, since an array cannot be empty.
        lines.append(f"const std::int64_t {array}[] = {{{', '.join(map(str, [*values, 0]))}}};")
    channel_floats = epilogue.channel_floats(shapes.output, record.channel)
    functions = ("packed_size", "pack", "workspace_size", "phase_count", "phase")
    lines += [
        f"const float tag[kSynoTag] = {{{', '.join(map(str, tag))}, kLanes, kRegisters}};",
        "const SynoKernel kernel = {",
        f'    kSynoKernelVersion, "{record.key}", "{epilogue.text}", {int(batched)},',
        f"    {len(shapes.input)}, {len(shapes.output)}, {', '.join(arrays)},",
        f"    {channel_floats}, {int(epilogue.residual)}, {said['macs']}, tag,",
        f"    {', '.join(f'{name}_{function}' for function in functions)}}};",
        "}}",
    ]
    return "\n".join(lines)


def kernels_in(library: ctypes.CDLL) -> list[KernelFields]:
    """The kernels of a library."""
    pointers = ctypes.cast(library.syno_kernels, ctypes.POINTER(ctypes.POINTER(KernelFields)))
    found: list[KernelFields] = []
    while pointers[len(found)]:
        found.append(pointers[len(found)].contents)
    return found
