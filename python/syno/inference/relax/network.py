"""Networks that TVM compiles, in Relax's virtual machine in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from syno._util.errors import UserError
from syno.codegen.emitters.tvm import EMITTER, imported
from syno.codegen.emitters.tvm_target import device_target
from syno.codegen.emitters.tvm_types import Array, Executable, Module, Tensor, TvmTarget
from syno.inference.relax.build import build, lower
from syno.inference.relax.module import relax_module
from syno.inference.relax.program import trace_program
from syno.inference.trace import checked_inputs


class TvmNetwork:
    """A network that TVM compiled for this machine.

    shape: of its input, of which the first dimension is the batch; any_batch: whether that may have
    any size. tuned: how many functions have a schedule of MetaSchedule, of so many in `functions`.
    """

    def __init__(
        self,
        executable: Executable,
        shape: Sequence[int],
        dtype: np.dtype[np.generic],
        *,
        any_batch: bool,
        threads: int,
        tuned: int,
        functions: int,
    ) -> None:
        tvm = imported()
        from tvm import relax

        self.shape = tuple(shape)
        self.any_batch = any_batch
        self.tuned = tuned
        self.functions = functions
        self._dtype = dtype
        self._threads = threads
        self._pool = tvm.get_global_func("runtime.config_threadpool")
        self._main = relax.VirtualMachine(executable, tvm.cpu())["main"]

    def __call__(self, x: Array) -> Array:
        """The output of the network.

        Raises:
            UserError: x has another shape or type than the network's input.
        """
        return self.prepared(x)().numpy()

    def prepared(self, x: Array) -> Callable[[], Tensor]:
        """A call on this input, which returns TVM's tensor. UserError as in a call."""
        expected = (*((len(x),) if self.any_batch and x.ndim else self.shape[:1]), *self.shape[1:])
        if x.shape != expected or x.dtype != self._dtype:
            shown = ["N" if self.any_batch else self.shape[0], *self.shape[1:]]
            raise UserError(
                "the network does not take this input\n"
                f"  expected: {self._dtype} [{', '.join(map(str, shown))}]"
                f"      got: {x.dtype} {list(x.shape)}"
            )
        tvm = imported()
        given = tvm.runtime.tensor(np.ascontiguousarray(x))
        self._pool(1, self._threads)
        main = self._main

        def call() -> Tensor:
            found = main(given)
            y: Tensor = found if isinstance(found, tvm.runtime.Tensor) else found[0]
            return y

        return call


def compile_network(
    net: nn.Module,
    example_input: torch.Tensor,
    *,
    any_batch: bool = False,
    threads: int = 1,
    databases: Sequence[Path] = (),
    target: str | None = None,
) -> TvmNetwork:
    """Compile a network with TVM for this machine.

    Args:
        net: a network on the CPU in evaluation mode, in float32; it stays as it is.
        example_input: an input. All sizes but that of the batch are fixed to it.
        any_batch: whether the batch may have any size; else it has that of the example.
        threads: number of threads.
        databases: folders of databases of MetaSchedule, whose schedules are used. They are for
            fixed sizes.
        target: what the code is for, as TVM's command lines write it; None for the processor of
            this machine.

    Raises:
        UserError: TVM is not installed, the network cannot be traced, Relax does not know an
            operation of it, or the batch cannot have any size.
    """
    executable, tuned, functions = compiled(
        net, example_input, device_target(target, threads), any_batch=any_batch, databases=databases
    )
    return TvmNetwork(
        executable,
        example_input.shape,
        np.dtype(str(example_input.dtype).removeprefix("torch.")),
        any_batch=any_batch,
        threads=threads,
        tuned=tuned,
        functions=functions,
    )


def lowered(
    net: nn.Module, example_input: torch.Tensor, target: TvmTarget, *, any_batch: bool
) -> Module:
    """The network as a lowered module of Relax. UserError as in `compile_network`."""
    if str(target.kind.name) != "llvm":
        raise UserError(
            f"networks are compiled by TVM for processors, and not for '{target.kind.name}'\n"
            "  expected: a target that begins with llvm"
        )
    (x,) = checked_inputs(net, example_input)
    with torch.inference_mode(False):
        program = trace_program(net, (x.clone(),), batch=any_batch)
    if any_batch and not program.batch:
        raise UserError(
            f"torch.export cannot trace the network {type(net).__name__} for any size of the "
            "batch\n  what to do: fix the size of the batch"
        )
    return lower(relax_module(program), target)


def compiled(
    net: nn.Module,
    example_input: torch.Tensor,
    target: TvmTarget,
    *,
    any_batch: bool,
    databases: Sequence[Path] = (),
) -> tuple[Executable, int, int]:
    """TVM's executable, how many of its functions have a schedule of a database, and how many it
    has. UserError as in `compile_network`."""
    missing = EMITTER.available()
    if missing is not None:
        raise UserError(f"TVM cannot compile networks here: {missing}")
    module = lowered(net, example_input, target, any_batch=any_batch)
    try:
        return build(module, target, databases)
    except UserError as error:
        if not any_batch:
            raise
        raise UserError(
            f"{error}\n  what to do: TVM compiles some operations for a fixed batch only; fix it"
        ) from error
