"""The emitters by name: what turns an operator into code, and runs that code on numpy arrays.

An emitter is imported when it is asked for, so that `syno` needs none of their packages.
"""

from __future__ import annotations

import importlib

from syno._util.errors import UserError
from syno.codegen.emitters.protocol import Case, Emitter, Function, WrongCodeError

# Name of an emitter: the module that has it as EMITTER.
_MODULES = {
    "pytorch": "syno.codegen.emitters.pytorch",
    "cpp": "syno.codegen.emitters.cpp",
    "triton": "syno.codegen.emitters.triton",
    "tvm": "syno.codegen.emitters.tvm",
}

__all__ = ["Case", "Emitter", "Function", "WrongCodeError", "get", "names"]


def names() -> tuple[str, ...]:
    """Every emitter there is, also those that cannot run here (see Emitter.available)."""
    return tuple(_MODULES)


def get(name: str) -> Emitter:
    """The emitter of that name. UserError lists what exists."""
    if name not in _MODULES:
        raise UserError(f"unknown emitter '{name}'\n  expected: one of {', '.join(names())}")
    found: Emitter = importlib.import_module(_MODULES[name]).EMITTER
    return found
