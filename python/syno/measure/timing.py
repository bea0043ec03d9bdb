"""What all timings of kernels share: the code is checked first, and everything runs in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from syno._util.errors import UserError
from syno.codegen import emitters
from syno.codegen.native import NativeFunction
from syno.codegen.verify.check import Comparison, MismatchError
from syno.operators.operator import Operator

# The emitter whose functions are called without torch.
CPP = "cpp"
# Calls before the first that counts.
WARM_UP = 3
_CONTROL_SIZE = 256


def control() -> Callable[[], object]:
    """A fixed computation: how much its time varies tells how quiet the machine is."""
    factor = torch.randn(_CONTROL_SIZE, _CONTROL_SIZE)
    return lambda: factor @ factor


def interleaved(calls: Sequence[Callable[[], object]], rounds: int) -> list[list[float]]:
    """Seconds of each call in each round. In a round each runs once, and the order turns."""
    times: list[list[float]] = [[] for _ in calls]
    for round_ in range(rounds):
        for turn in range(len(calls)):
            which = (round_ + turn) % len(calls)
            call = calls[which]
            call()  # the one before has used the caches
            began = time.perf_counter()
            call()
            times[which].append(time.perf_counter() - began)
    return times


def check_native(
    name: str, operator: Operator, binding: dict[str, int], function: NativeFunction, threads: int
) -> int:
    """Compares the function itself with the interpreter; how many outputs. UserError if wrong."""

    def packed(x: Any, weights: Any) -> Any:
        function.pack(weights)
        return function(x, threads)

    comparison = Comparison(emitters.get(CPP), emitters.Case(operator, binding), 0)
    try:
        comparison.check(packed)
    except MismatchError as mismatch:
        raise UserError(f"the compiled code of {name} is wrong: {mismatch}") from mismatch
    return len(comparison.positions)
