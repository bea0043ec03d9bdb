"""Targets of TVM, from texts in the form of its command lines."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from syno._util.errors import UserError, first_line
from syno.codegen.emitters.tvm import imported
from syno.codegen.emitters.tvm_types import Executable, TvmTarget
from syno.runs.helper_process import find_program

_MACHINE = re.compile(r"-mtriple=([^-\s]+)")


def device_target(text: str | None, threads: int) -> TvmTarget:
    """A target of TVM for a device with so many threads; None for this machine.

    UserError for a text that is no target.
    """
    tvm = imported()
    try:
        found: TvmTarget = tvm.target.Target(_target(text, threads, tvm))
    except Exception as error:  # of TVM, which raises whatever it likes
        raise UserError(
            f"'{text}' is no target of TVM: {first_line(error)}\n"
            '  expected: such as "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a78"'
        ) from error
    return found


def is_for_here(target: str) -> bool:
    """Whether code for a target of TVM is for the processor of this machine."""
    found = _MACHINE.search(target)
    return found is None or found[1] == platform.machine()


def linker(target: str) -> str | None:
    """The compiler here that links for a target of TVM; None where there is none."""
    found = _MACHINE.search(target)
    here = found is None or is_for_here(target)
    return find_program("g++" if here or found is None else f"{found[1]}-linux-gnu-g++")


def write_library(executable: Executable, path: Path, compiler: str | None) -> None:
    """Write compiled functions as a library; without a compiler, as a .tar of what is linked."""
    imported()
    if compiler is None:
        from tvm.support.tar import tar as make
    else:
        from tvm.support import cc

        make = cc.cross_compiler(compiler)
    executable.export_library(str(path), fcompile=make)


def _target(text: str | None, threads: int, tvm: ModuleType) -> Mapping[str, object]:
    """A target as TVM 0.27 takes it, from one in the form of a command line."""
    if text is None:
        cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
        return {"kind": "llvm", "mcpu": str(cpu), "num-cores": threads}
    kind, *options = text.split() or [""]
    found: dict[str, object] = {"kind": kind}
    if kind == "llvm":
        found["num-cores"] = threads
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        if name == "mattr":
            found[name] = value.split(",")
        else:
            found[name] = int(value) if value.isdecimal() else value
    return found
