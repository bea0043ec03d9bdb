"""A program as one C++ source with a C interface, and its file of weights."""

from __future__ import annotations

import hashlib
import shlex
import struct
from dataclasses import dataclass

import numpy as np
import torch

from syno import _core
from syno._util.printable import printable
from syno.codegen.native import find_tuning
from syno.inference.codes import inside
from syno.inference.library.program import (
    LINE,
    Address,
    CalledLayer,
    KernelCall,
    Program,
    TeamStep,
    Value,
)
from syno.inference.precision import BFLOAT16, FLOAT32, INT8

# Layer, samples, and of x, channel, residual and y the address and the bytes of an image.
_Operand = tuple[str, int]
_Call = tuple[int, int, _Operand, _Operand, _Operand, _Operand]
_MAGIC = b"SYNONET1"
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class NetworkSource:
    """code, header: of C++ and C; weights: the content of the file of weights; parts: into how many
    pieces the code can be compiled."""

    code: str
    header: str
    weights: bytes
    parts: int


def emit(
    program: Program, name: str, precision: str = FLOAT32, *, tuned: bool = False, file: str = ""
) -> NetworkSource:
    """The source of a program whose functions begin with `name`.

    precision: what its layers multiply; tuned: whether their schedules are those that were found on
    this machine; file: the name of the file of code, as its comment on compiling gives it.
    """
    file = file or f"{name}.cpp"
    kernels: dict[tuple[object, ...], int] = {}
    numbers = [kernels.setdefault(layer.key, len(kernels)) for layer in program.layers]
    chosen: dict[int, CalledLayer] = {}
    for kernel, layer in zip(numbers, program.layers, strict=True):
        chosen.setdefault(kernel, layer)
    arrays = _arrays(program)
    fingerprint = _fingerprint(program, precision)
    content = np.concatenate([np.zeros(0, "<u4"), *arrays]).tobytes()
    words = len(content) // 4
    code, header, parts = _core.emit_network(
        name=name,
        file=shlex.quote(printable(file, line=True)),
        library=shlex.quote(printable(file.removesuffix(".cpp"), line=True) + ".so"),
        kernels=[_kernel(f"{name}_k{k}", each, precision, tuned) for k, each in chosen.items()],
        layers=[
            (kernel, [weight.numel() for weight in called.layer.weights], _stored(called))
            for kernel, called in zip(numbers, program.layers, strict=True)
        ],
        steps=[_step(step, program.address) for step in program.steps],
        inputs=_inputs(program),
        outputs=[value.shape[1:] for value in program.outputs],
        arena=program.arena,
        constants=program.constant_floats,
        words=words,
        fingerprint=fingerprint,
    )
    head = struct.pack("<8sQQQ", _MAGIC, fingerprint, words, checksum(content))
    return NetworkSource(code, header, head.ljust(64, b"\0") + content, parts)


def emit_hosted(program: Program) -> str:
    """The source of a program that a host calls, behind the runtime and kernel.h."""
    return _core.emit_program(
        layers=[
            (0, [weight.numel() for weight in each.layer.weights], FLOAT32)
            for each in program.layers
        ],
        steps=[_step(step, program.hosted_address) for step in program.steps],
        inputs=[
            ([value.view.numel()], tokens, shared)
            for value, (_, tokens, shared) in zip(program.inputs, _inputs(program), strict=True)
        ],
        outputs=[[value.view.numel()] for value in program.outputs],  # samples may have rows
        arena=program.arena,
    )


def checksum(content: bytes) -> int:
    """Two sums over the 32-bit words, one with their places; network_text.cpp has the same."""
    words = np.frombuffer(content, "<u4").astype(np.uint64)
    weights = np.arange(1, len(words) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        plain = int(words.sum(dtype=np.uint64))
        placed = int((words * (weights * np.uint64(2) + np.uint64(1))).sum(dtype=np.uint64))
    return (placed ^ (plain << 1)) & _MASK


def _arrays(program: Program) -> list[np.ndarray]:
    """The constants, each from a cache line on, then the weights of every layer, in words."""
    arrays = []
    for tensor in program.constants:
        padded = np.zeros(-(-tensor.numel() // LINE) * LINE, np.float32)
        padded[: tensor.numel()] = tensor.numpy().ravel()
        arrays.append(padded.view("<u4"))
    for called in program.layers:
        codes, stored = called.layer.codes, _stored(called)
        for weight in called.layer.weights if codes is None else codes.weights:
            arrays.append(_words(weight, stored))
    return arrays


def _stored(called: CalledLayer) -> str:
    """As what the file has the weights of a layer, without a loss."""
    return called.layer.precision if called.layer.codes is None else INT8


def _words(weight: torch.Tensor, stored: str) -> np.ndarray:
    """The elements of a weight as words of 32 bits, the last one filled up with zeros."""
    found = weight.detach().float().contiguous().numpy().ravel()
    elements = found.astype("<f4")
    if stored == INT8:
        elements = found.astype("i1")
    elif stored == BFLOAT16:
        elements = (elements.view("<u4") >> 16).astype("<u2")
    per_word = 4 // elements.itemsize
    padded = np.zeros(-(-len(elements) // per_word) * per_word, elements.dtype)
    padded[: len(elements)] = elements
    return padded.view("<u4")


def _fingerprint(program: Program, precision: str) -> int:
    """Of what the code expects in the file of weights."""
    state = hashlib.sha256()
    if precision != FLOAT32:
        state.update(f"{precision}\n".encode())
    for tensor in program.constants:
        state.update(f"{list(tensor.shape)}\n".encode())
    for called in program.layers:
        state.update(f"{called.layer.computation.key} {called.layer.parts.text}\n".encode())
        if called.layer.codes is not None or called.layer.precision != FLOAT32:
            state.update(f"{called.key}\n".encode())
    # The code has the scales of tensors between layers in it, and the file those of layers.
    for codes in program.codes():
        state.update(f"{codes}\n".encode())
    return int.from_bytes(state.digest()[:8], "little")


def _inputs(program: Program) -> list[tuple[list[int], int, bool]]:
    """Of each its shape without the batch, the bound of token ids or 0, and whether it has none."""
    return [
        (
            value.shape[number not in program.shared :],
            program.tokens.get(number, 0),
            number in program.shared,
        )
        for number, value in enumerate(program.inputs)
    ]


def _kernel(name: str, called: CalledLayer, precision: str, tuned: bool) -> tuple[str, str, str]:
    """The text of a kernel, and how its input and its output are stored."""
    layer = called.layer
    found, codes = layer.computation, layer.codes is not None
    plan = found.planned()
    # Layers may have formats of their own, as in a network in INT8.
    multiplied = INT8 if codes else precision if precision == BFLOAT16 else layer.precision
    read, written = called.formats
    shapes = found.operator.shapes(found.binding)
    source, _ = _core.emit_cpp(
        plan,
        name=name,
        formula=found.operator.formula(),
        with_runtime=False,
        epilogue=called.epilogue,
        channel=layer.channel,
        precision=multiplied,
        input_format=read,
        output_format=written,
        value_format=read,
        input_order=inside(len(shapes.input), layer.channel) if called.inside else None,
        output_order=inside(len(shapes.output), layer.channel) if called.inside else None,
        tuning=find_tuning(plan, precision=multiplied) if tuned and not codes else "",
    )
    return str(source), read, written


def _step(step: TeamStep | KernelCall, address: Address) -> tuple[str, str, _Call | None]:
    """The words, the code and the call of a step."""
    if not isinstance(step, KernelCall):
        return step.about, step.code(address), None

    def operand(value: Value | None) -> tuple[str, int]:
        return ("nullptr", 0) if value is None else (address(value), value.bytes)

    x, y = operand(step.x), operand(step.writes)
    call = (step.layer, step.samples, x, operand(step.channel), operand(step.residual), y)
    return step.about, "", call
