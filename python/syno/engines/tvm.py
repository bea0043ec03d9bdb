"""TVM: networks as graphs of Relax, with schedules of MetaSchedule where there are any."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs
from syno.codegen import emitters
from syno.engines.engine import Engine
from syno.inference.relax.build import databases_below
from syno.inference.relax.network import compile_network

_TVM = "tvm"


class TvmEngine(Engine):
    """A network in Relax's virtual machine, with the operators in its slots as Syno's TensorIR.

    schedules: a folder of results of `syno tune`, whose databases of MetaSchedule are used; None:
    plain schedules. target: what the code is for, as TVM's command lines write it; None for the
    processor of this machine. UserError where the folder has no schedules.
    """

    name = _TVM

    def __init__(self, schedules: Path | None = None, target: str | None = None) -> None:
        self._databases = () if schedules is None else tuple(databases_below(schedules))
        self._target = target

    def missing(self) -> str | None:
        """Return None, or that the package is missing."""
        return emitters.get(_TVM).available()

    def prepare(self, net: nn.Module, example: Inputs, threads: int) -> Callable[[], torch.Tensor]:
        """Return the compiled network, with the sizes of the example."""
        if isinstance(example, tuple):
            raise UserError(
                "the engine 'tvm' runs networks of one input\n"
                f"  expected: one tensor      got: {len(example)} of them"
            )
        compiled = compile_network(
            net, example, threads=threads, databases=self._databases, target=self._target
        )
        call = compiled.prepared(example.numpy())

        def run() -> torch.Tensor:
            return torch.from_dlpack(call())

        return run


ENGINES: dict[str, Engine] = {_TVM: TvmEngine()}
