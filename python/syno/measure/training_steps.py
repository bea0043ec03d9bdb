"""Training steps of networks with operators, as times of the original network's step."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.threads import check_threads
from syno._util.torch_threads import torch_threads
from syno.codegen.native.kernels import compiled_kernels
from syno.measure.timing import (
    Controls,
    Timing,
    control,
    interleaved,
    streaming,
    training_step,
)

LEAST_ROUNDS = 2
_WARM_UP = 2


@dataclass(frozen=True)
class StepTime:
    """A training step of a network with an operator.

    original_ms: the step of the original network in eager PyTorch, in the same rounds; eager_ms,
        compiled_ms: medians with the operator in eager PyTorch and as compiled code. eager_ms is
        None if it was not measured.
    eager, compiled: times the original's step, below 1 if it is faster; the best round of both.
    compile_s: seconds until the compiled code was ready and compared, less if it was in the cache.
    """

    name: str
    formula: str
    original_ms: float
    eager_ms: float | None
    compiled_ms: float
    eager: float | None
    compiled: float
    compile_s: float


@dataclass
class TrainingSteps:
    """Training steps of networks with operators.

    input: the shape of the input of a step.
    product_times, stream_times: seconds of the two computations of `Controls`.
    """

    input: tuple[int, ...]
    threads: int
    rounds: int
    times: list[StepTime] = field(default_factory=list)
    product_times: list[float] = field(default_factory=list)
    stream_times: list[float] = field(default_factory=list)

    @property
    def controls(self) -> Controls | None:
        """The fixed computations, None if nothing was measured."""
        if not self.product_times:
            return None
        return Controls(Timing.of(self.product_times), Timing.of(self.stream_times))

    @property
    def noisy(self) -> bool:
        """Whether other processes used the machine."""
        return self.controls is not None and self.controls.noisy

    @property
    def geometric_mean(self) -> float | None:
        """The geometric mean of `compiled` over all operators."""
        return statistics.geometric_mean(t.compiled for t in self.times) if self.times else None

    @property
    def eager_geometric_mean(self) -> float | None:
        """The geometric mean of `eager` over the operators with that time."""
        times = [t.eager for t in self.times if t.eager is not None]
        return statistics.geometric_mean(times) if times else None


def bench_training_steps(
    original: nn.Module,
    networks: Iterable[tuple[str, str, nn.Module]],
    inputs: torch.Tensor,
    *,
    threads: int = 1,
    rounds: int = 10,
    eager: bool = True,
    progress: Callable[[str], object] = lambda _: None,
) -> TrainingSteps:
    """Measure a training step of networks, each in turns with that of the original network.

    A step is a forward and a backward pass in training mode, with the mean square of the outputs
    as the loss.

    Args:
        original: the original network, which runs in eager PyTorch.
        networks: of each its name, the formula of its operator, and the network.
        inputs: the input of a step.
        threads: number of threads.
        rounds: number of steps of each network, at least 2.
        eager: also measure the networks in eager PyTorch.
        progress: called with the name of a network before it is measured.

    Raises:
        UserError: there is no C++ compiler.
    """
    check_threads(threads)
    if rounds < LEAST_ROUNDS:
        raise UserError(
            f"'rounds' is too small\n  expected: at least {LEAST_ROUNDS}      got: {rounds}"
        )
    found = TrainingSteps(tuple(inputs.shape), threads, rounds)
    with torch_threads(threads):
        for name, formula, net in networks:
            progress(name)
            calls = [training_step(original, inputs)]
            if eager:
                calls.append(training_step(net, inputs))
            with contextlib.ExitStack() as stack:
                began = time.perf_counter()
                stack.enter_context(compiled_kernels(net))
                ready = time.perf_counter() - began
                calls.append(training_step(net, inputs))
                for call in calls * _WARM_UP:
                    call()
                with streaming() as streamed:
                    *times, products = interleaved([*calls, control()], rounds, repeated=False)
            found.product_times += products
            found.stream_times += streamed
            middle = [1e3 * statistics.median(each) for each in times]
            ratios = [min(each) / min(times[0]) for each in times]
            found.times.append(
                StepTime(
                    name=name,
                    formula=formula,
                    original_ms=middle[0],
                    eager_ms=middle[1] if eager else None,
                    compiled_ms=middle[-1],
                    eager=ratios[1] if eager else None,
                    compiled=ratios[-1],
                    compile_s=ready,
                )
            )
    return found
