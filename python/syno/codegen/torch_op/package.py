"""Kernels in a folder beside an exported program, for processes without this cache or Syno."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import torch

from syno._util.errors import UserError
from syno.codegen.native import no_compiler, processor
from syno.codegen.torch_op import library as libraries
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.kernel import Kernel, kernel_of, load, register
from syno.codegen.torch_op.record import KernelRecord

OPERATOR = "libsyno_apply.so"
# What apply.cpp reads when it is loaded from a package.
_LIST, _PROCESSOR, _RECORDS = "kernels.txt", "processor.txt", "kernels.json"


def kernels_of(program: torch.export.ExportedProgram) -> list[Kernel]:
    """The kernels that an exported program calls, each once."""
    found: dict[tuple[str, str], None] = {}
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.target is torch.ops.syno.apply.default:
                    found[node.args[4], node.args[5]] = None
    return [kernel_of(*name) for name in found]


def write_package(kernels: Iterable[Kernel], folder: str | os.PathLike[str]) -> Path:
    """Write the operator and the kernels into a folder; return the path of the operator's library.

    A process that is to run them loads that library: with torch.ops.load_library in Python, with
    dlopen in C++. It needs neither Syno nor a compiler, but the same kind of processor; on another
    one, `load_package` compiles the kernels again.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[Path, str] = {}
    records = []
    for kernel in kernels:
        if kernel.library is None:
            raise UserError(
                f"kernel {kernel.key} is not compiled, but computed by the PyTorch emitter\n"
                "  what to do: create it with missing='compile', on a machine with a compiler"
            )
        files.setdefault(kernel.library, f"kernels_{len(files)}.so")
        records.append({"record": kernel.record.to_json(), "epilogue": kernel.epilogue})
    for file, name in files.items():
        shutil.copyfile(file, folder / name)
    shutil.copyfile(libraries.operator_file(), folder / OPERATOR)
    (folder / _PROCESSOR).write_text(processor(), encoding="utf-8")
    (folder / _RECORDS).write_text(json.dumps(records, indent=1), encoding="utf-8")
    (folder / _LIST).write_text("".join(f"{name}\n" for name in files.values()), encoding="utf-8")
    return folder / OPERATOR


def load_package(folder: str | os.PathLike[str]) -> list[Kernel]:
    """Make the kernels of a package ready, compiled for this machine; return them.

    Without a compiler, the libraries of the package are loaded as they are, which works on the kind
    of processor that they were compiled for; the result is empty then.

    Raises:
        UserError: the folder is not a package.
    """
    folder = Path(folder).absolute()
    try:
        entries = json.loads((folder / _RECORDS).read_text(encoding="utf-8"))
        kernels = [
            (KernelRecord.from_json(entry["record"]), Epilogue(entry["epilogue"]))
            for entry in entries
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"'{folder}' is not a package of kernels: {error}") from error
    if no_compiler() is not None:
        torch.ops.load_library(folder / OPERATOR)
        register()
        return []
    return [load(*kernel) for kernel in kernels]
