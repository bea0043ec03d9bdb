"""What all timings share: everything runs in turns, and the code of kernels is checked first."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments
from syno._util.network_copy import copy_network
from syno._util.trial_calls import tensors_of
from syno.codegen import emitters
from syno.codegen.native import Function
from syno.codegen.verify.check import CodeComparison, MismatchError
from syno.operators.operator import Operator

# The emitter whose functions are called without torch.
CPP = "cpp"
# Calls before the first that counts.
WARM_UP = 3
# A machine is noisy when the middle half of the times of a fixed computation spans more than this
# share of their median.
NOISE = 0.10
# Seconds after which the threads of an engine have stopped waiting actively. Before, they would
# take a core from the next call.
PAUSE = 0.03
# A fixed computation that caches hold: a product of matrices of this size, some 0.3 ms on one core.
_CONTROL_SIZE = 256
# One that they do not hold: a sum over so many bytes, some 5 ms.
STREAM_BYTES = 64 << 20
# How often the sum is timed before a measurement, and again after it, where it may not stand
# between calls: it would push what they need out of the caches.
_STREAM_PASSES = 3


@dataclass(frozen=True)
class Timing:
    """Times of one computation in milliseconds: median and interquartile range."""

    median_ms: float
    spread_ms: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """The median and the interquartile range of at least two times."""
        milliseconds = [1e3 * each for each in seconds]
        low, middle, high = statistics.quantiles(milliseconds, n=4, method="inclusive")
        return cls(median_ms=middle, spread_ms=high - low)

    @property
    def spread(self) -> float:
        """The interquartile range as a share of the median."""
        return self.spread_ms / self.median_ms


@dataclass(frozen=True)
class Controls:
    """Times of two fixed computations beside a measurement, which tell how quiet the machine is.

    product: of a product of matrices, which caches hold. stream: of a sum over STREAM_BYTES of
    memory, which they do not hold. Another process can slow either down without the other. Their
    medians tell whether two runs had the same machine.
    """

    product: Timing
    stream: Timing

    @property
    def noisy(self) -> bool:
        """Whether other processes used the machine."""
        return max(self.product.spread, self.stream.spread) > NOISE

    @property
    def stream_gb_s(self) -> float:
        """Bytes a second of the sum in 10^9."""
        return STREAM_BYTES / self.stream.median_ms / 1e6

    def text(self) -> str:
        """Both in words."""
        return (
            f"product {self.product.median_ms:.3f} ms (spread {self.product.spread:.0%}), "
            f"memory {self.stream_gb_s:.1f} GB/s (spread {self.stream.spread:.0%})"
        )


def control(generator: torch.Generator | None = None) -> Callable[[], object]:
    """A fixed computation that caches hold: how much its time varies tells of other processes."""
    factor = torch.randn(_CONTROL_SIZE, _CONTROL_SIZE, generator=generator)
    return lambda: factor @ factor


def stream() -> Callable[[], object]:
    """A fixed computation that reads more memory than caches hold."""
    memory = torch.ones(STREAM_BYTES // 4)
    return memory.sum


@contextmanager
def streaming() -> Iterator[list[float]]:
    """Times of `stream` before and after the block, in seconds; the list is whole at its end."""
    call = stream()
    call()
    (times,) = interleaved([call], _STREAM_PASSES, repeated=False)
    yield times
    times += interleaved([call], _STREAM_PASSES, repeated=False)[0]


def interleaved(
    calls: Sequence[Callable[[], object]],
    rounds: int,
    *,
    repeated: bool = True,
    pause: float = 0.0,
) -> list[list[float]]:
    """Seconds of each call in each round. In a round each runs once, and the order turns.

    repeated: whether each call is made once more, untimed, before the one that is timed. A kernel
    fits into the caches, which the call before has filled with something else; a network does not.
    pause: seconds of rest before each call; PAUSE where engines have threads of their own.
    """
    times: list[list[float]] = [[] for _ in calls]
    for round_ in range(rounds):
        for turn in range(len(calls)):
            which = (round_ + turn) % len(calls)
            call = calls[which]
            if pause:
                time.sleep(pause)
            if repeated:
                call()
            began = time.perf_counter()
            call()
            times[which].append(time.perf_counter() - began)
    return times


def speedup(before: Sequence[float], after: Sequence[float]) -> float:
    """How many times as fast the second is as the first: the median over rounds of both."""
    return statistics.median(a / b for a, b in zip(before, after, strict=True))


def step_slowdown(original: nn.Module, net: nn.Module, inputs: Inputs, rounds: int = 5) -> float:
    """How many times as long a training step of `net` takes as one of `original`.

    A step is a forward and a backward pass in training mode, see `training_step`. Steps of both run
    in turns, and the quickest of each counts. Both networks are copied, because a step changes the
    statistics of batch normalisation.
    """
    steps = [training_step(each, inputs) for each in (original, net)]
    times = interleaved(steps, rounds, repeated=False)
    return min(times[1]) / min(times[0])


def training_step(net: nn.Module, inputs: Inputs) -> Callable[[], object]:
    """Return a function that makes a training step, without an update, of a copy of a network.

    The loss is the mean square of the outputs, summed over several of them. In a block of
    `compiled_kernels`, the copy runs the same compiled code.
    """
    net = copy_network(net).train()
    given = arguments(inputs)

    def step() -> None:
        outputs = [each for each in tensors_of(net(*given)) if each.requires_grad]
        torch.stack([each.square().mean() for each in outputs]).sum().backward()

    return step


def check_native(
    name: str, operator: Operator, binding: dict[str, int], function: Function, threads: int
) -> int:
    """Compares the function itself with the interpreter; how many outputs. UserError if wrong."""

    def packed(x: ArrayLike, weights: Sequence[ArrayLike]) -> NDArray[np.float32]:
        function.pack(weights)
        return function(x, threads)

    comparison = CodeComparison(emitters.get(CPP), emitters.Case(operator, binding), 0)
    try:
        comparison.check(packed)
    except MismatchError as mismatch:
        raise UserError(f"the compiled code of {name} is wrong: {mismatch}") from mismatch
    return len(comparison.positions)
