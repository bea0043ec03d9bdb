"""Operators everybody knows, by name, as text files beside this module.

Each file says in comments what it computes and gives sizes for a first try.
"""

from __future__ import annotations

from importlib.resources import files

from syno._errors import UserError
from syno.operator import Operator
from syno.spec import Specification, checked_binding

_SIZES = "# sizes:"


def names() -> list[str]:
    """The names that `load` knows."""
    return sorted(
        f.name.removesuffix(".txt") for f in files(__name__).iterdir() if _is_text(f.name)
    )


def load(name: str, specification: Specification | None = None) -> Operator:
    """The operator of that name, such as "conv2d". UserError that lists the names."""
    return Operator.from_text(_text(name), specification)


def binding(name: str) -> dict[str, int]:
    """A small binding for a first try; its sizes differ where they can."""
    (line,) = (line for line in _text(name).splitlines() if line.startswith(_SIZES))
    return checked_binding(line.removeprefix(_SIZES))


def doc(name: str) -> str:
    """What the operator computes, in index notation."""
    comments = (line for line in _text(name).splitlines() if line.startswith("#"))
    return "\n".join(line[1:].strip() for line in comments if not line.startswith(_SIZES))


def _is_text(name: str) -> bool:
    return name.endswith(".txt")


def _text(name: str) -> str:
    if name not in names():
        raise UserError(f"unknown operator '{name}'\n  expected: one of {', '.join(names())}")
    return (files(__name__) / f"{name}.txt").read_text(encoding="utf-8")


__all__ = ["binding", "doc", "load", "names"]
