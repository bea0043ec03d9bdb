"""Operators everybody knows, by name, as text files beside this module.

Each file says in comments what it computes and gives sizes for a first try. The tests of the C++
library read the same files. `published_names` are the operators of the paper's artifact by the
numbers that it gives them; those that have another name here are the same operators. Three
baselines that are no operators are torch modules (`module_names`, `module`).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, TypedDict

from syno._util import checks
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.operators.specification import Specification, checked_binding

if TYPE_CHECKING:
    from torch import nn

_SIZES = "# sizes:"
_PUBLISHED = "published"
# Published operators that the zoo has under a name of the paper.
_ALIASES = {"operator-07754": "operator-2", "operator-07889": "operator-1"}
# Published operators that are among `names`.
_BOTH = ("operator-07720", "operator-07795", "operator-07821")


def names() -> list[str]:
    """The names of the well-known operators, without those that only the artifact names."""
    return _texts(files(__name__))


def published_names() -> list[str]:
    """The operators of the paper's artifact, such as "operator-07889", which is Operator 1."""
    return sorted([*_texts(files(__name__) / _PUBLISHED), *_ALIASES, *_BOTH])


def known(name: str) -> bool:
    """Whether `load` knows the name."""
    return name in all_names()


def all_names() -> list[str]:
    """The names that `load` knows."""
    return sorted({*names(), *published_names()})


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


class ZooEntry(TypedDict):
    """An operator of the zoo as plain values, its costs under its small binding."""

    name: str
    doc: str
    formula: str
    binding: dict[str, int]
    macs: int
    params: int
    text: str


def entry(name: str) -> ZooEntry:
    """The operator of that name as plain values."""
    operator, sizes = load(name), binding(name)
    return {
        "name": name,
        "doc": doc(name),
        "formula": operator.formula(),
        "binding": sizes,
        "macs": operator.macs(sizes),
        "params": operator.params(sizes),
        "text": operator.text,
    }


_MODULES = {
    "nas-pte-1": "outputs in two halves: convolutions with 2 and with 4 groups",
    "nas-pte-2": "16 outputs from all inputs, the rest from inputs 16 onward with 2 groups",
    "nas-pte-3": "rows in two halves, a convolution each",
}


def module_names() -> list[str]:
    """The names that `module` knows: baselines that concatenate, which no operator does."""
    return sorted(_MODULES)


def module_doc(name: str) -> str:
    """What the module computes. UserError that lists the names."""
    _check(name, module_names(), "module")
    return _MODULES[name]


def module(name: str, c_in: int, c_out: int, kernel: int = 3) -> nn.Module:
    """A baseline as a torch module, [N, c_in, H, W] -> [N, c_out, H, W]. Needs torch.

    UserError that lists the names, and for channels that do not divide.
    """
    _check(name, module_names(), "module")
    from syno.operators.zoo.nas_pte import MODULES

    return MODULES[name](c_in, c_out, kernel)


def _check(name: str, known: list[str], what: str) -> None:
    if name not in known:
        raise UserError(f"unknown {what} '{name}'\n  expected: one of {', '.join(known)}")


def _texts(folder: Traversable) -> list[str]:
    return sorted(f.name.removesuffix(".txt") for f in folder.iterdir() if f.name.endswith(".txt"))


def _text(name: str) -> str:
    return _read(checks.text("the name of an operator", name))


@cache
def _read(name: str) -> str:
    _check(name, all_names(), "operator")
    name = _ALIASES.get(name, name)
    folder = files(__name__)
    if name not in names():
        folder = folder / _PUBLISHED
    return (folder / f"{name}.txt").read_text(encoding="utf-8")


__all__ = [
    "all_names",
    "binding",
    "doc",
    "known",
    "load",
    "module",
    "module_doc",
    "module_names",
    "names",
    "published_names",
]
