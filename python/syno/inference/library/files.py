"""The format cpp-network: C++ for a whole network, its header, and its weights."""

from __future__ import annotations

import tempfile
from pathlib import Path

from numpy.typing import ArrayLike

from syno._util.errors import UserError
from syno.codegen.export import files
from syno.codegen.export.cpp_files import function_name
from syno.codegen.export.formats import Exported, ExportSubject, Format
from syno.codegen.export.isolated import IsolatedRun, run_program
from syno.codegen.export.programs import array, examples_of_all
from syno.inference.library.load import compiled
from syno.inference.library.lower import lower
from syno.inference.library.source import emit
from syno.inference.precision import INT8, PRECISIONS, TOLERANCES
from syno.inference.prepare import prepare_sample
from syno.inference.quantization.network import QuantizedNetwork
from syno.runs.files import write_text, write_whole

# Runs in a process without Syno: argv are the library, the weights, and an .npz with the name of
# the functions and examples.
_CHECK = """
import ctypes, sys
import numpy as np

library, said = ctypes.CDLL(sys.argv[1]), np.load(sys.argv[3], allow_pickle=False)
name = str(said["name"])
create, run, error = (getattr(library, f"{name}_{what}") for what in ("create", "run", "error"))
create.restype, error.restype = ctypes.c_void_p, ctypes.c_char_p
inputs, outputs = int(said["inputs"]), int(said["outputs"])
run.argtypes = [ctypes.c_void_p] * (1 + inputs + outputs) + [ctypes.c_long, ctypes.c_int]
network = create(sys.argv[2].encode())
assert network, error().decode()
worst, count, batches = 0.0, 0, []
for number in range(int(said["examples"])):
    x = [said[f"x{number}_{k}"] for k in range(inputs)]
    expected = [said[f"y{number}_{k}"] for k in range(outputs)]
    for threads in (1, 2):
        y = [np.zeros_like(each) for each in expected]
        places = [each.ctypes.data for each in (*x, *y)]
        assert run(network, *places, len(x[0]), threads) == 0, error().decode()
        for one, other in zip(y, expected):
            off = np.abs(one - other).max() / max(np.abs(other).max(), 1e-30)
            assert off <= @TOLERANCE@, f"off by {off:.1e} of the largest output"
            worst = max(worst, off)
    count += sum(each.size for each in y)
    batches.append(str(len(x[0])))
print(
    f"right: {count} outputs at batch sizes {', '.join(batches)}, largest error {worst:.1e} of the "
    "largest"
)
"""


class CppNetwork(Format):
    """A .cpp without dependencies, its .h, and a .bin with the weights and a checksum."""

    name = "cpp-network"
    suffix = ".cpp"
    networks = several_inputs = True
    folds = True
    precisions = PRECISIONS
    emitter = "cpp"

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Writes the three files; functions are called syno_FILE_..."""
        if not subject.batch:
            raise UserError(
                "the format cpp-network needs a batch\n"
                "  expected: an operator or a network whose first dimension may have any size"
            )
        code = files.with_suffix(path, self.suffix)
        header, weights = code.with_suffix(".h"), code.with_suffix(".bin")
        net = subject.module if subject.layer is None else subject.layer
        if isinstance(net, QuantizedNetwork):
            graph = net.graph
        elif subject.precision == INT8:
            raise UserError(
                "the network has no ranges for int8\n"
                "  what to do: export syno.quantize(net, batches), which takes them from samples"
            )
        else:
            graph = prepare_sample(net, *subject.inputs).graph
        source = emit(
            lower(graph),
            function_name(code),
            subject.precision,
            tuned=subject.tuned,
            file=code.name,
        )
        write_whole(weights, lambda temporary: temporary.write_bytes(source.weights))
        write_text(header, source.header)
        write_text(code, source.code)
        return Exported(code, weights, header)

    def check(self, exported: Exported, subject: ExportSubject) -> IsolatedRun:
        """Compiles the file and compares it with the module at several batch sizes."""
        assert exported.weights is not None
        try:
            library = compiled(exported.code)
        except UserError as error:
            return IsolatedRun(False, str(error))
        found = examples_of_all(subject)
        said: dict[str, ArrayLike] = {"name": function_name(exported.code)}
        said["examples"] = len(found)
        said |= {"inputs": len(found[0][0]), "outputs": len(found[0][1])}
        for number, (inputs, results) in enumerate(found):
            said |= {f"x{number}_{k}": array(x) for k, x in enumerate(inputs)}
            said |= {f"y{number}_{k}": array(y) for k, y in enumerate(results)}
        with tempfile.TemporaryDirectory(prefix="syno-export-") as folder:
            path = Path(folder) / "examples.npz"
            files.save_arrays(path, said)
            program = _CHECK.replace("@TOLERANCE@", str(TOLERANCES[subject.precision]))
            return run_program(program, [Path(library._name), exported.weights, path])


FORMATS = {"cpp-network": CppNetwork()}
