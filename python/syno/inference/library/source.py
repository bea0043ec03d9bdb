"""A program as one C++ source with a C interface, and its file of weights."""

from __future__ import annotations

import hashlib
import shlex
import struct
from dataclasses import dataclass
from importlib import resources

import numpy as np
import torch

from syno import _core
from syno._util.printable import printable
from syno._util.threads import MOST_THREADS
from syno.codegen.native import find_tuning
from syno.inference.layer import TracedLayer
from syno.inference.library.program import LINE, Call, Program, Value
from syno.inference.precision import FLOAT32

# Pieces of the source that are compiled side by side: SYNO_PART chooses one, 0 is the network.
PARTS = 8
_MAGIC = b"SYNONET1"
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Source:
    """code, header: of C++ and C; weights: the content of the file of weights; parts: into how many
    pieces the code can be compiled."""

    code: str
    header: str
    weights: bytes
    parts: int


def emit(
    program: Program, name: str, precision: str = FLOAT32, *, tuned: bool = False, file: str = ""
) -> Source:
    """The source of a program whose functions begin with `name`.

    precision: what its layers multiply; tuned: whether their schedules are those that were found on
    this machine; file: the name of the file of code, as its comment on compiling gives it.
    """
    file = file or f"{name}.cpp"
    kernels: dict[tuple[str, str, int], int] = {}
    numbers = []
    for layer in program.layers:
        key = (layer.computation.key, layer.parts.text, layer.channel)
        numbers.append(kernels.setdefault(key, len(kernels)))
    chosen: dict[int, TracedLayer] = {}
    for kernel, layer in zip(numbers, program.layers, strict=True):
        chosen.setdefault(kernel, layer)
    arrays = _arrays(program)
    fingerprint = _fingerprint(program, precision)
    parts = min(PARTS, len(chosen))
    pieces = [_core.cpp_runtime()]
    pieces += [_declared(f"{name}_k{kernel}", layer) for kernel, layer in chosen.items()]
    for part in range(1, parts + 1):
        mine = [k for k in chosen if k % parts == part - 1]
        emitted = "\n".join(_kernel(f"{name}_k{k}", chosen[k], precision, tuned) for k in mine)
        pieces.append(_guarded(part, emitted))
    network = _text("plain.cpp.txt") + _network(program, name, numbers)
    template = _text("network.cpp.txt")
    values = {
        "NAME": name,
        "FILE": shlex.quote(printable(file, line=True)),
        "LIBRARY": shlex.quote(printable(file.removesuffix(".cpp"), line=True) + ".so"),
        "FINGERPRINT": f"0x{fingerprint:016x}ULL",
        "FLOATS": str(sum(len(array) for array in arrays)),
        "CONSTANTS": str(program.constant_floats),
        "ARENA": str(program.arena),
        "LAYERS": str(len(program.layers)),
        "X_FLOATS": str(_floats(program.input)),
        "Y_FLOATS": str(_floats(program.output)),
        "X_SHAPE": ", ".join(map(str, _shape(program.input))),
        "Y_SHAPE": ", ".join(map(str, _shape(program.output))),
        "X_TYPE": "std::int64_t" if program.tokens else "float",
        "X_DTYPE": "int64" if program.tokens else "float32",
        "CHECK": _check(program),
        "MOST_THREADS": str(MOST_THREADS),
        "X_RANK": str(len(_shape(program.input))),
        "Y_RANK": str(len(_shape(program.output))),
        "PACKING": "\n".join(
            _packing(name, kernel, number, layer)
            for number, (kernel, layer) in enumerate(zip(numbers, program.layers, strict=True))
        ),
        "WORKSPACES": "\n".join(
            f"  size = most(size, {name}_k{kernel}_workspace_size((int)threads));"
            for kernel in chosen
        ),
    }
    pieces.append(_guarded(0, network + _filled(template, values)))
    head = _filled(_text("head.cpp.txt"), values)
    content = np.concatenate([np.zeros(0, np.float32), *arrays]).astype("<f4").tobytes()
    header = struct.pack("<8sQQQ", _MAGIC, fingerprint, len(content) // 4, checksum(content))
    weights = header.ljust(64, b"\0") + content
    in_c = values | {"X_TYPE": values["X_TYPE"].removeprefix("std::")}
    return Source(head + "\n".join(pieces), _filled(_text("network.h.txt"), in_c), weights, parts)


def checksum(content: bytes) -> int:
    """Two sums over the 32-bit words, one with their places; network.cpp.txt has the same."""
    words = np.frombuffer(content, "<u4").astype(np.uint64)
    weights = np.arange(1, len(words) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        plain = int(words.sum(dtype=np.uint64))
        placed = int((words * (weights * np.uint64(2) + np.uint64(1))).sum(dtype=np.uint64))
    return (placed ^ (plain << 1)) & _MASK


def _arrays(program: Program) -> list[np.ndarray]:
    """The constants, each from a cache line on, then the weights of every layer."""
    arrays = []
    for tensor in program.constants:
        padded = np.zeros(-(-tensor.numel() // LINE) * LINE, np.float32)
        padded[: tensor.numel()] = tensor.numpy().ravel()
        arrays.append(padded)
    for layer in program.layers:
        arrays += [_plain(weight) for weight in layer.weights]
    return arrays


def _plain(weight: torch.Tensor) -> np.ndarray:
    return weight.detach().float().contiguous().numpy().ravel()


def _fingerprint(program: Program, precision: str) -> int:
    """Of what the code expects in the file of weights."""
    state = hashlib.sha256()
    if precision != FLOAT32:
        state.update(f"{precision}\n".encode())
    for tensor in program.constants:
        state.update(f"{list(tensor.shape)}\n".encode())
    for layer in program.layers:
        state.update(f"{layer.computation.key} {layer.parts.text}\n".encode())
    return int.from_bytes(state.digest()[:8], "little")


def _shape(value: Value | None) -> list[int]:
    assert value is not None
    return value.shape[1:]


def _floats(value: Value | None) -> int:
    assert value is not None
    return value.view.numel()


def _kernel(name: str, layer: TracedLayer, precision: str, tuned: bool) -> str:
    found = layer.computation
    plan = found.planned()
    source, _ = _core.emit_cpp(
        plan,
        name=name,
        formula=found.operator.formula(),
        with_runtime=False,
        epilogue=layer.parts.text,
        channel=layer.channel,
        precision=precision,
        tuning=find_tuning(plan, precision=precision) if tuned else "",
    )
    return str(source)


def _declared(name: str, layer: TracedLayer) -> str:
    """The functions of a kernel that the network calls."""
    more = "const float*, const float*, "
    return f"""extern "C" {{
long {name}_packed_size(void);
void {name}_pack(const float* const*, float*);
long {name}_workspace_size(int);
int {name}_phase_count(void);
void {name}_phase(int, const float*, const float*, {more}float*, float*, long, long);
}}"""


def _guarded(part: int, text: str) -> str:
    return f"#if !defined(SYNO_PART) || SYNO_PART == {part}\n{text}\n#endif\n"


def _packing(name: str, kernel: int, number: int, layer: TracedLayer) -> str:
    """The code that packs the weights of a layer, and moves on in the file."""
    sizes = [weight.numel() for weight in layer.weights]
    places = ", ".join(f"from + {sum(sizes[:i])}" for i in range(len(sizes))) or "nullptr"
    return (
        f"  {{\n    const float* const weights[] = {{{places}}};\n"
        f"    if (!pack(net, {number}, {name}_k{kernel}_packed_size(), {name}_k{kernel}_pack, "
        f"weights)) return false;\n    from += {sum(sizes)};\n  }}"
    )


def _network(program: Program, name: str, numbers: list[int]) -> str:
    """The function that computes one image."""
    steps = []
    for number, step in enumerate(program.steps):
        if isinstance(step, Call):
            code = _call(step, program, f"{name}_k{numbers[step.layer]}")
        else:
            code = step.code(program.address)
        watch = "    const Stopwatch watch{layer_seconds};\n" if isinstance(step, Call) else ""
        body = "\n".join(f"    {line}" for line in code.splitlines())
        steps.append(
            f"  {{  // {number}: {step.about}\n{watch}{body}\n    wait_for_team(team);\n  }}"
        )
    body = "\n".join(steps)
    layers = str(len(program.layers))
    values = {"LAYERS": layers, "STEPS": body}
    values["X_TYPE"] = "std::int64_t" if program.tokens else "float"
    return _filled(_text("image.cpp.txt"), values)


def _call(step: Call, program: Program, kernel: str) -> str:
    """The code that calls a kernel for each of its samples."""

    def place(value: Value | None, *, whole: bool = False) -> str:
        if value is None:
            return "nullptr"
        at = program.address(value)
        floats = value.view.numel() // step.samples
        return at if whole or step.samples == 1 else f"{at} + sample * {floats}"

    x, residual, y = (place(value) for value in (step.x, step.residual, step.writes))
    channel = place(step.channel, whole=True)
    phases = (
        f"const int phases = {kernel}_phase_count();\n"
        "for (int phase = 0; phase < phases; ++phase) {\n"
        "  if (phase > 0) wait_for_team(team);\n"
        f"  {kernel}_phase(phase, {x}, net.packed[{step.layer}], {channel}, {residual}, "
        f"{y},\n    workspace, team.thread, team.threads);\n}}"
    )
    if step.samples == 1:
        return phases
    inner = "\n".join(f"  {line}" for line in phases.splitlines())
    return (
        f"for (long sample = 0; sample < {step.samples}; ++sample) {{\n"
        f"  if (sample > 0) wait_for_team(team);\n{inner}\n}}"
    )


def _check(program: Program) -> str:
    """The check of token ids."""
    if not program.tokens:
        return ""
    return f"""  for (long i = 0; i < batch * {_floats(program.input)}; ++i) {{
    if (x[i] >= 0 && x[i] < {program.tokens}) continue;
    failed("the token id " + std::to_string(x[i]) + " is not below {program.tokens}");
    return -1;
  }}
"""


def _filled(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
