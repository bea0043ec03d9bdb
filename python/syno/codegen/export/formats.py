"""The formats by name, and what each of them is to those that export."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from syno._util.errors import UserError
from syno.codegen.export.isolated import IsolatedRun

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno.operators.layer import Layer

# Name of a format: the module that has it in its FORMATS.
_MODULES = {
    "torch": "syno.codegen.export.torch_files",
    "torch-export": "syno.codegen.export.programs",
    "onnx": "syno.inference.quantization.onnx_files",
    "aoti": "syno.codegen.export.programs",
    "cpp": "syno.codegen.export.cpp_files",
    "cpp-network": "syno.inference.library.files",
    "tvm-network": "syno.inference.relax.files",
    "torch-network": "syno.codegen.export.network_files",
    "triton": "syno.codegen.export.loop_files",
    "tvm": "syno.codegen.export.loop_files",
}


@dataclass(frozen=True)
class ExportSubject:
    """What is exported.

    module: on the CPU, in evaluation mode; inputs: an example of its arguments, which have one
    batch; batch: whether it takes any size of their first dimensions; layer: the operator in it,
    None for a whole network; seed: of the weights and of what is drawn besides. reference:
    computes the same with the same weights by the cheapest plans, what is written is compared with
    it. fold_weights: whether what depends on weights alone is computed once, when the file is
    written or its weights are loaded. precision: what convolutions, linear layers and operators
    multiply; they add in float32. tuned: whether C++ has the schedules that were found on this
    machine. target: what TVM compiles for, as its command lines write it; None for this machine.
    schedules: a folder with databases of MetaSchedule for that network.
    """

    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    batch: bool
    layer: Layer | None
    seed: int
    reference: nn.Module
    fold_weights: bool = False
    precision: str = "float32"
    tuned: bool = False
    target: str | None = None
    schedules: Path | None = None

    def with_batch(self, size: int) -> ExportSubject:
        """The same with a fixed size of the first dimension. UserError where that is no batch."""
        import torch

        if not self.batch:
            raise UserError(
                "the first dimension of the operator is no batch\n  expected: no --batch"
            )
        return replace(
            self, batch=False, inputs=tuple(torch.cat([x[:1]] * size) for x in self.inputs)
        )


@dataclass(frozen=True)
class Exported:
    """What was written: `code` runs without Syno, with what stands in `weights` if it has any.

    header: what C and C++ programs include.
    """

    code: Path
    weights: Path | None = None
    header: Path | None = None

    @property
    def files(self) -> list[Path]:
        """All of them."""
        return [path for path in (self.code, self.weights, self.header) if path is not None]


class Format(Protocol):
    """One way to write a module so that it runs without Syno.

    suffix: of `Exported.code`; networks: whether it can hold a whole network, not only an operator;
    several_inputs: and one with several arguments; folds: whether it can hold weights that are
    multiplied with each other; precisions: what its code can multiply; emitter: whose code it is
    made of. Formats are derived from it for its defaults.
    """

    name: str
    suffix: str
    networks: bool = False
    several_inputs: bool = False
    folds: bool = False
    precisions: tuple[str, ...] = ("float32",)
    emitter: str

    def available(self) -> str | None:
        """None, or why it cannot be written here and what to do, in words for the user."""
        return None

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Writes the files, each in one step. UserError for an unusable path."""

    def check(self, exported: Exported, subject: ExportSubject) -> IsolatedRun:
        """Runs the files in a process without Syno and compares what they compute."""


def check_inputs(chosen: Format, subject: ExportSubject) -> ExportSubject:
    """The subject. UserError where it has several inputs, and the format takes one."""
    if len(subject.inputs) > 1 and not chosen.several_inputs:
        able = [name for name in names(networks=True) if _get(name).several_inputs]
        raise UserError(
            f"the format '{chosen.name}' takes networks of one input\n"
            f"  expected: one of {', '.join(able)}      got: {len(subject.inputs)} inputs"
        )
    return subject


def names(*, networks: bool = False) -> tuple[str, ...]:
    """Every format, or those that can hold a network."""
    return tuple(name for name in _MODULES if not networks or _get(name).networks)


def get(
    name: str,
    *,
    networks: bool = False,
    fold_weights: bool = False,
    precision: str = "float32",
) -> Format:
    """The format of that name. UserError when it is unknown, not for this, or cannot run here.

    networks, fold_weights, precision: what it has to be able to hold.
    """
    known = names(networks=networks)
    if name not in known:
        of = " of networks" if networks and name in _MODULES else ""
        raise UserError(f"unknown format{of} '{name}'\n  expected: one of {', '.join(known)}")
    found = _get(name)
    if fold_weights and not found.folds:
        able = [other for other in known if _get(other).folds]
        raise UserError(
            f"the format '{name}' does not support weight pre-multiplication\n"
            f"  expected: one of {', '.join(able)}      got: {name}"
        )
    if precision not in found.precisions:
        raise UserError(
            f"the format '{name}' does not have the precision '{precision}'\n"
            f"  expected: {' or '.join(found.precisions)}"
        )
    reason = found.available()
    if reason is not None:
        raise UserError(f"the format '{name}' cannot be written here: {reason}")
    return found


def _get(name: str) -> Format:
    found: Format = importlib.import_module(_MODULES[name]).FORMATS[name]
    return found
