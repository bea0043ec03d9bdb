"""Exported C++ compiled for another processor, and run there in an emulator.

The code has vectors of the width that the compiler's target has, such as those of NEON; nothing in
it depends on the machine that wrote it. A target is a triple of GNU, such as aarch64-linux-gnu, as
Debian names its cross compilers (g++-aarch64-linux-gnu) and qemu its emulators (qemu-user), and
perhaps the compiler's options for a processor, such as -mcpu=cortex-a76.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from syno._util.errors import UserError
from syno.codegen.export.formats import Exported, ExportSubject
from syno.codegen.export.isolated import IsolatedRun
from syno.codegen.export.programs import TOLERANCE, array, examples
from syno.runs.files import write_whole
from syno.runs.helper_process import find_program

_TRIPLE = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+){1,3}")
_PROCESSOR = re.compile(r"-m(arch|cpu|tune)=[a-z0-9.+_-]+")
_FLAGS = ("-std=c++17", "-O3", "-fopenmp")
_SECONDS = 300.0

# Runs one example: argv are the weights, where y goes, the batch size, and the inputs.
_READ = """
#include <cstdio>
#include <cstdlib>
#include <string>
static std::string content(const char* path) {
  std::string found;
  FILE* file = std::fopen(path, "rb");
  if (!file) std::exit(3);
  char part[4096];
  for (size_t count; (count = std::fread(part, 1, sizeof part, file)) > 0;)
    found.append(part, count);
  std::fclose(file);
  return found;
}
static void* aligned(long floats) {
  const size_t bytes = (size_t(floats) * 4 + 127) / 64 * 64;
  void* memory = std::aligned_alloc(64, bytes);
  if (!memory) std::exit(4);
  return memory;
}
static int written(const char* path, const void* y, long floats) {
  FILE* file = std::fopen(path, "wb");
  if (!file || std::fwrite(y, 4, size_t(floats), file) != size_t(floats)) return 5;
  return std::fclose(file);
}
"""
_OPERATOR = """
int main(int, char** argv) {
  const std::string weights = content(argv[1]), x = content(argv[4]);
  const long batch = std::atol(argv[3]), sizes[] = {@SIZES@0}, outputs = @OUTPUTS@ * batch;
  const float* parts[sizeof sizes / sizeof *sizes];
  const float* next = reinterpret_cast<const float*>(weights.data());
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; ++n) parts[n] = next, next += sizes[n];
  float* packed = static_cast<float*>(aligned(@NAME@_packed_size()));
  float* scratch = static_cast<float*>(aligned(@NAME@_workspace_size(2)));
  float* y = static_cast<float*>(aligned(outputs));
  @NAME@_pack(parts, packed);
  @NAME@_run(reinterpret_cast<const float*>(x.data()), packed, y, scratch, batch, 2);
  return written(argv[2], y, outputs);
}
"""
_NETWORK = """
int main(int, char** argv) {
  const std::string x[] = {@READ@};
  const long batch = std::atol(argv[3]), outputs = @OUTPUTS@ * batch;
  float* y = static_cast<float*>(aligned(outputs));
  auto* network = @NAME@_create(argv[1]);
  if (!network || @NAME@_run(network, @X@, y, batch, 2) != 0) {
    std::fprintf(stderr, "%s\\n", @NAME@_error());
    return 6;
  }
  return written(argv[2], y, outputs);
}
"""


def cross_compiler(target: str) -> list[str]:
    """The C++ compiler for a target, with its options for the processor.

    Raises:
        UserError: the target is no triple with such options, or its compiler is not installed.
    """
    triple, *processor = target.split() or [""]
    if _TRIPLE.fullmatch(triple) is None or not all(map(_PROCESSOR.fullmatch, processor)):
        raise UserError(
            f"'{target}' is no target\n"
            "  expected: a triple, such as aarch64-linux-gnu, and perhaps a processor: "
            "'aarch64-linux-gnu -mcpu=cortex-a76'"
        )
    found = find_program(f"{triple}-g++")
    if found is None:
        raise UserError(
            f"there is no C++ compiler for {triple}: {triple}-g++\n"
            f"  what to do: `apt install g++-{triple}` (Debian, Ubuntu), or export without "
            "--target, and compile the .cpp on the device"
        )
    return [found, *processor]


def build(exported: Exported, target: str) -> Path:
    """Compile an exported .cpp to a shared library for a target, beside it.

    Raises:
        UserError: the compiler is not installed, or cannot compile it.
    """
    library = exported.code.with_suffix(f".{target.split()[0]}.so")
    write_whole(
        library,
        lambda path: _compile(target, ["-fPIC", "-shared", str(exported.code)], path),
    )
    return library


def check(
    exported: Exported, subject: ExportSubject, target: str, *, tolerance: float = TOLERANCE
) -> IsolatedRun:
    """Run an exported .cpp in an emulator of a target, and compare it with the module.

    Each example of the formats cpp and cpp-network runs on two threads. tolerance: the largest
    error, relative to the largest output.
    """
    emulator = find_program(f"qemu-{target.partition('-')[0]}")
    if emulator is None:
        return IsolatedRun(
            False,
            f"there is no emulator for {target}: `apt install qemu-user` (Debian, Ubuntu), or run "
            "the check on the device",
        )
    assert exported.weights is not None
    worst, count = 0.0, 0
    with tempfile.TemporaryDirectory(prefix="syno-cross-") as folder:
        here = Path(folder)
        program, source = here / "program", here / "main.cpp"
        source.write_text(_program(exported, subject), encoding="utf-8")
        try:
            _compile(target, ["-static", str(source), str(exported.code)], program)
        except UserError as error:
            return IsolatedRun(False, str(error))
        for inputs, expected in examples(subject):
            given, result = [here / f"x{number}" for number in range(len(inputs))], here / "y"
            for path, x in zip(given, inputs, strict=True):
                path.write_bytes(array(x).tobytes())
            batch = len(inputs[0]) if subject.batch else 1
            files_given = [program, exported.weights, result, str(batch), *given]
            command = [emulator, *map(str, files_given)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=_SECONDS, check=False
                )
            except subprocess.TimeoutExpired:
                return IsolatedRun(False, f"it did not end in {_SECONDS:g} s under {emulator}")
            if done.returncode != 0:
                return IsolatedRun(False, f"exit code {done.returncode}: {done.stderr.strip()}")
            found = np.fromfile(result, np.float32)
            wanted = expected.detach().numpy().ravel()
            if found.shape != wanted.shape:
                return IsolatedRun(False, f"{found.size} outputs, and not {wanted.size}")
            worst = max(worst, float(np.abs(found - wanted).max() / np.abs(wanted).max()))
            count += found.size
    if not worst <= tolerance:
        return IsolatedRun(False, f"off by {worst:.1e} of the largest output on {target}")
    return IsolatedRun(
        True, f"right on {target}: {count} outputs, largest error {worst:.1e} of the largest"
    )


def _program(exported: Exported, subject: ExportSubject) -> str:
    """A program with the code that runs one example."""
    name = "syno_" + re.sub(r"\W", "_", exported.code.stem, flags=re.ASCII)
    inputs, y = examples(subject)[0]
    per_sample = y.numel() // len(y) if subject.batch else y.numel()
    is_network = f"{name}_create" in (exported.header or exported.code).read_text(encoding="utf-8")
    body = _NETWORK if is_network else _OPERATOR
    sizes = ""
    if not is_network and subject.layer is not None:
        sizes = "".join(f"{weight.numel()}, " for weight in subject.layer.kernel.parameters())
    filled = {
        "NAME": name,
        "SIZES": sizes,
        "OUTPUTS": str(per_sample),
        "READ": ", ".join(f"content(argv[{4 + k}])" for k in range(len(inputs))),
        "X": ", ".join(
            f"reinterpret_cast<const {_c_type(x)}*>(x[{k}].data())" for k, x in enumerate(inputs)
        ),
    }
    for mark, value in filled.items():
        body = body.replace(f"@{mark}@", value)
    assert exported.header is not None
    return f'#include <cstdint>\n#include "{exported.header.resolve()}"\n{_READ}{body}'


def _c_type(x: torch.Tensor) -> str:
    return "float" if x.is_floating_point() else "std::int64_t"


def _compile(target: str, arguments: Sequence[str], output: Path) -> None:
    command = [*cross_compiler(target), *_FLAGS, *arguments, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"{command[0]} cannot compile the code:\n{done.stderr[:4000]}")
