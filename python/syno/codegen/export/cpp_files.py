"""C++: a translation unit and its header for one operator, and its weights as plain floats."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from syno import _core
from syno._util.errors import InternalError, UserError
from syno.codegen.export import files
from syno.codegen.export.formats import Exported, ExportSubject, Format
from syno.codegen.export.isolated import IsolatedRun, run_program
from syno.codegen.export.programs import TOLERANCE, examples
from syno.codegen.native import find_compiler, find_tuning
from syno.runs.files import write_text, write_whole

if TYPE_CHECKING:
    from syno.operators.layer import Layer

# Runs in a process without Syno: compiles the file behind its own header and calls it by ctypes.
# argv: the .cpp, the weights, an .npz with the name of the functions, the compiler, sizes and
# examples.
_CHECK = """
import ctypes, subprocess, sys, tempfile
from pathlib import Path
import numpy as np

code, weights = Path(sys.argv[1]), np.fromfile(sys.argv[2], np.float32)
said = np.load(sys.argv[3], allow_pickle=False)
floats = ctypes.POINTER(ctypes.c_float)

def aligned(count):
    memory = np.zeros(int(count) + 16, np.float32)
    return memory[-memory.ctypes.data % 64 // 4 :]

def at(array):
    return array.ctypes.data_as(floats)

with tempfile.TemporaryDirectory() as folder:
    both, library = Path(folder, "both.cpp"), Path(folder, "operator.so")
    both.write_text(f'#include "{code.with_suffix(".h")}"\\n#include "{code}"\\n')
    flags = ["-std=c++17", "-O2", "-march=native", "-fPIC", "-shared"]
    command = [str(said["compiler"]), *flags, str(both), "-o", str(library)]
    subprocess.run(command, check=True)
    functions = ctypes.CDLL(str(library))
    name = str(said["name"])
    for size in ("packed_size", "workspace_size"):
        getattr(functions, f"{name}_{size}").restype = ctypes.c_long
    packed = aligned(getattr(functions, f"{name}_packed_size")())
    scratch = aligned(getattr(functions, f"{name}_workspace_size")(1))
    parts = np.split(weights, np.cumsum(said["sizes"]))[:-1]
    assert sum(map(len, parts)) == len(weights), "the file of weights has another size"
    pointers = (floats * max(1, len(parts)))(*map(at, parts))
    getattr(functions, f"{name}_pack")(pointers, at(packed))
    worst, count, batches = 0.0, 0, []
    for number in range(int(said["examples"])):
        x = np.ascontiguousarray(said[f"x{number}"], np.float32)
        expected = np.ascontiguousarray(said[f"y{number}"], np.float32)
        y = np.zeros_like(expected)
        batch = len(x) if said["batched"] else 1
        arguments = (at(x), at(packed), at(y), at(scratch), ctypes.c_long(batch), 1)
        getattr(functions, f"{name}_run")(*arguments)
        error = np.abs(y - expected).max() / max(np.abs(expected).max(), 1e-30)
        assert error <= @TOLERANCE@, f"off by {error:.1e} of the largest output"
        worst, count = max(worst, error), count + y.size
        batches.append(str(batch))
print(
    f"right: {count} outputs at batch sizes {', '.join(batches)}, largest error {worst:.1e} of the "
    "largest"
)
"""


class CppFiles(Format):
    """A .cpp without dependencies, its .h, and a .bin: the weights one after the other, float32."""

    name = "cpp"
    suffix = ".cpp"
    folds = True
    emitter = "cpp"

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Writes the three files; functions are called syno_FILE_..."""
        layer = _layer(subject)
        code = files.with_suffix(path, self.suffix)
        header, weights = code.with_suffix(".h"), code.with_suffix(".bin")
        name = function_name(code)
        source, _ = _emitted(layer, name, subject.tuned)
        held = [p.detach().cpu().float().numpy() for p in layer.kernel.parameters()]
        content = b"".join(np.ascontiguousarray(w).tobytes() for w in held)
        write_whole(weights, lambda temporary: temporary.write_bytes(content))
        write_text(header, _core.cpp_header(name))
        write_text(code, source)
        return Exported(code, weights, header)

    def check(self, exported: Exported, subject: ExportSubject) -> IsolatedRun:
        """Compiles the file and compares it with the module at several batch sizes."""
        try:
            compiler = find_compiler()
        except UserError as error:
            return IsolatedRun(False, str(error))
        layer, weights = _layer(subject), exported.weights
        assert weights is not None
        found = examples(subject)
        shapes = layer.operator.shapes(layer.binding).weights
        name = function_name(exported.code)
        said: dict[str, ArrayLike] = {
            "name": name,
            "compiler": compiler.path,
            "sizes": np.array([int(np.prod(shape)) for shape in shapes], np.int64),
            "batched": _emitted(layer, name, subject.tuned)[1],
            "examples": len(found),
        }
        said |= {f"x{i}": x.numpy() for i, ((x,), _) in enumerate(found)}
        said |= {f"y{i}": y.numpy() for i, (_, y) in enumerate(found)}
        with tempfile.TemporaryDirectory(prefix="syno-export-") as folder:
            path = Path(folder) / "examples.npz"
            files.save_arrays(path, said)
            program = _CHECK.replace("@TOLERANCE@", str(TOLERANCE))
            return run_program(program, [exported.code, weights, path])


FORMATS = {"cpp": CppFiles()}


def _layer(subject: ExportSubject) -> Layer:
    if subject.layer is None:
        raise InternalError("the format 'cpp' supports only operators")
    return subject.layer


def _emitted(layer: Layer, name: str, tuned: bool) -> tuple[str, bool]:
    """The source, and whether it takes any size of the first dimension."""
    plan = layer.operator.numbered_plan(layer.binding, layer.plan, fold_weights=layer.fold_weights)
    tuning = find_tuning(plan) if tuned else ""
    source, manifest = _core.emit_cpp(
        plan, name=name, formula=layer.operator.formula(), tuning=tuning
    )
    return source, any(dim["free"] for dim in json.loads(manifest)["input"])


def function_name(code: Path) -> str:
    """A C name of its own for each file, so that several can be linked into one program."""
    return "syno_" + re.sub(r"\W", "_", code.stem, flags=re.ASCII)
