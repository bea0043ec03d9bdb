"""The format tvm-network: a network that TVM compiled, as one library for TVM's runtime."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from syno._util.errors import UserError
from syno.codegen.emitters.tvm import EMITTER
from syno.codegen.emitters.tvm_target import device_target, is_for_here, linker, write_library
from syno.codegen.export import files
from syno.codegen.export.formats import Exported, ExportSubject, Format
from syno.codegen.export.isolated import IsolatedRun, run_program
from syno.codegen.export.programs import TOLERANCE, examples
from syno.inference.relax.build import databases_below
from syno.inference.relax.network import compiled
from syno.runs.files import write_whole

# Runs in a process without Syno: argv are the library, and an .npz with examples.
_CHECK = """
import sys
import numpy as np
import tvm
from tvm import relax

main = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())["main"]
said = np.load(sys.argv[2], allow_pickle=False)
worst, count, batches = 0.0, 0, []
for number in range(int(said["examples"])):
    x, expected = said[f"x{number}"], said[f"y{number}"]
    y = main(tvm.runtime.tensor(x))
    y = (y if isinstance(y, tvm.runtime.Tensor) else y[0]).numpy()
    assert y.shape == expected.shape, f"{list(y.shape)} instead of {list(expected.shape)}"
    error = np.abs(y - expected).max() / max(np.abs(expected).max(), 1e-30)
    assert error <= @TOLERANCE@, f"off by {error:.1e} of the largest output"
    worst, count = max(worst, error), count + y.size
    batches.append(str(len(x)))
print(
    f"right: {count} outputs at batch sizes {', '.join(batches)}, largest error {worst:.1e} of the "
    "largest"
)
"""


class TvmNetworkFile(Format):
    """A library with the code and the weights, for TVM's runtime.

    Without a compiler that links for the target, a .tar with what such a compiler links.
    """

    name = "tvm-network"
    suffix = ".so"
    networks = True
    emitter = "tvm"

    def available(self) -> str | None:
        """Not without the package tvm."""
        return EMITTER.available()

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Compile the network and write the library.

        The batch is fixed if there are schedules, which are for fixed sizes, and where the subject
        says so; else it may have any size.
        """
        target = subject.target
        compiler = linker(target or "")
        suffix = self.suffix if compiler else ".tar"
        code = files.with_suffix(
            path.with_suffix("") if path.suffix == self.suffix else path, suffix
        )
        if subject.schedules is not None and subject.batch:
            raise UserError(
                "schedules of TVM are for one size of the batch\n  expected: --batch N, as they "
                "were tuned with"
            )
        (x,) = subject.inputs
        databases = () if subject.schedules is None else databases_below(subject.schedules)
        executable, _, _ = compiled(
            subject.module if subject.layer is None else subject.layer,
            x[:1] if subject.batch else x,
            device_target(target, 1),
            any_batch=subject.batch,
            databases=databases,
        )
        write_whole(code, lambda temporary: write_library(executable, temporary, compiler))
        return Exported(code)

    def check(self, exported: Exported, subject: ExportSubject) -> IsolatedRun:
        """Load the library in a process without Syno and compare it with the network."""
        if exported.code.suffix != self.suffix or not is_for_here(subject.target or ""):
            return IsolatedRun(
                False, "it is for another processor, for which TVM's packages have no emulator"
            )
        found = examples(subject)
        said = {"examples": np.array(len(found))}
        said |= {f"x{i}": np.ascontiguousarray(x.numpy()) for i, ((x,), _) in enumerate(found)}
        said |= {f"y{i}": np.ascontiguousarray(y.numpy()) for i, (_, y) in enumerate(found)}
        with tempfile.TemporaryDirectory(prefix="syno-export-") as folder:
            path = Path(folder) / "examples.npz"
            files.save_arrays(path, said)
            program = _CHECK.replace("@TOLERANCE@", str(TOLERANCE))
            return run_program(program, [exported.code, path])


FORMATS = {"tvm-network": TvmNetworkFile()}
