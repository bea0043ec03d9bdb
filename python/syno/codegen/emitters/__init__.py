"""The emitters by name: what turns an operator into code, and runs that code on numpy arrays.

An emitter is imported when it is asked for, so that `syno` needs none of their packages.
"""

from __future__ import annotations

import importlib

from syno._util.errors import UserError
from syno.codegen.emitters.protocol import Case, Code, Emitter, WrongCodeError

# Name of an emitter: the module that has it as EMITTER.
_MODULES = {
    "pytorch": "syno.codegen.emitters.pytorch",
    "cpp": "syno.codegen.emitters.cpp",
    "training": "syno.codegen.emitters.training",
    "triton": "syno.codegen.emitters.triton",
    "tvm": "syno.codegen.emitters.tvm",
}

__all__ = ["Case", "Code", "Emitter", "WrongCodeError", "get", "named", "names"]


def names() -> tuple[str, ...]:
    """Every emitter there is, also those that cannot run here (see Emitter.available)."""
    return tuple(_MODULES)


def get(name: str) -> Emitter:
    """The emitter of that name. UserError lists what exists."""
    if name not in _MODULES:
        raise UserError(f"unknown emitter '{name}'\n  expected: one of {', '.join(names())}")
    found: Emitter = importlib.import_module(_MODULES[name]).EMITTER
    return found


def named(given: str) -> tuple[str, ...]:
    """The emitters with commas between them, each once; `all` is every one that can run here."""
    if given.strip() == "all":
        return tuple(name for name in names() if get(name).available() is None)
    wanted = tuple(dict.fromkeys(name.strip() for name in given.split(",")))
    for name in wanted:
        get(name)
    return wanted
