"""The process in which functions of TVM are compiled and run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from syno.codegen.emitters import code_process
from syno.codegen.emitters.protocol import Array, WrongCodeError
from syno.codegen.emitters.tvm import Source, imported
from syno.codegen.emitters.tvm_types import PrimFunc


def load(sources: Sequence[Source]) -> list[_Compiled]:
    """One module with all functions; of one with a batch, also that for any batch."""
    tvm = imported()
    from tvm import te

    functions: dict[str, PrimFunc] = {}
    for number, (text, tensors, batched) in enumerate(sources):
        namespace: dict[str, Callable[..., PrimFunc]] = {}
        exec(compile(text, "<emitted for tvm>", "exec"), namespace)
        prim_func = namespace["prim_func"]
        functions[f"f{number}"] = _checked(prim_func(), tensors)
        if batched:
            functions[f"any{number}"] = prim_func(batch=te.var("batch", "int32"))
    named = {name: f.with_attr("global_symbol", name) for name, f in functions.items()}
    executable = tvm.compile(tvm.IRModule(named), target=tvm.target.Target({"kind": "llvm"}))
    return [
        _Compiled(
            tensors[-1],
            executable[f"f{number}"],
            executable[f"any{number}"] if batched else None,
        )
        for number, (_, tensors, batched) in enumerate(sources)
    ]


def _checked(function: PrimFunc, expected: Sequence[tuple[int, ...]]) -> PrimFunc:
    found = [tuple(int(extent) for extent in buffer.shape) for buffer in function.params]
    if found != expected:
        raise WrongCodeError(f"the function takes tensors {found}, the operator {expected}")
    return function


class _Compiled:
    """Compiled functions of x, the weights and y: for the case's batch, and for others."""

    def __init__(
        self,
        output: tuple[int, ...],
        own: Callable[..., object],
        any_batch: Callable[..., object] | None,
    ) -> None:
        self._output, self._own, self._any = output, own, any_batch

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        tvm = imported()
        output, function = self._output, self._own
        if self._any is not None and len(x) != output[0]:
            output, function = (len(x), *output[1:]), self._any
        # What is not written shows.
        y = tvm.runtime.tensor(np.full(output, np.nan, np.float32))
        function(*(tvm.runtime.tensor(array) for array in (x, *weights)), y)
        result: Array = y.numpy()
        return result


def main() -> None:
    """Answers until stdin ends."""
    code_process.serve(load)
