"""Latency of a network on the CPU, relative to its baseline in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from syno._util import checks
from syno._util.arguments import checked, instance, integer, items, optional
from syno._util.errors import UserError, first_line
from syno._util.inputs import Inputs, arguments, shown
from syno._util.threads import check_threads
from syno._util.torch_threads import torch_threads
from syno.codegen.verify import Verification
from syno.measure.timing import Controls, Timing, control, interleaved, streaming
from syno.operators.layer import Layer

LEAST_REPEATS = 20
# From a network, its input and a number of threads, a function that runs the network once.
Prepare = Callable[[nn.Module, Inputs, int], Callable[[], object]]


def eager(net: nn.Module, x: Inputs, threads: int) -> Callable[[], object]:
    """Return a function that runs a network in eager PyTorch."""
    given = arguments(x)
    return lambda: net(*given)


@dataclass(frozen=True)
class Measurement:
    """The latency of a network: median and interquartile range in milliseconds.

    ratio: median divided by that of the baseline, below 1 if the network is faster; None without a
    baseline. control, stream: times of two fixed computations beside it, in the caches and in
    memory; noisy: whether their spread shows that other processes used the machine.
    """

    median_ms: float
    spread_ms: float
    ratio: float | None
    baseline: Timing | None
    control: Timing
    stream: Timing
    noisy: bool
    threads: int
    repeats: int
    warmup: int
    batch: int = 1


@checked(
    net=instance(nn.Module, "a torch.nn.Module"),
    input_shape=items,
    baseline=optional(instance(nn.Module, "a torch.nn.Module")),
    verifications=items,
    tokens=optional(integer(1)),
)
def latency(
    net: nn.Module,
    input_shape: Sequence[int],
    *,
    baseline: nn.Module | None = None,
    verifications: Iterable[Verification] = (),
    repeats: int = 30,
    warmup: int = 5,
    threads: int = 1,
    tokens: int | None = None,
    example: Inputs | None = None,
    prepare: Prepare = eager,
) -> Measurement:
    """Measure the latency of a network at batch size 1, in evaluation mode without gradients.

    Args:
        net: the network.
        input_shape: the shape of the input without the batch.
        baseline: a network to measure alternately with `net`, so that other load affects both.
        verifications: verifications of the operators in the network.
        tokens: for a language model, the number of token ids of the input.
        example: the input itself, with a batch of 1: a tuple for a network of several. Default:
            random values of `input_shape`, or token ids.
        repeats: number of timed runs, at least 20.
        warmup: number of runs before the timed runs.
        threads: number of threads of PyTorch; the former number is restored afterwards.
        prepare: makes of a network, the input and the number of threads the function that is
            timed, such as `prepare` of an engine of `syno.engines`. Default: eager PyTorch.

    Raises:
        UserError: an operator in the network has no passed verification.
    """
    _check_counts(repeats, warmup, threads)
    for size in input_shape:
        checks.whole("a size of 'input_shape'", size, least=1)
    _check_verified(net, verifications)
    random = torch.Generator().manual_seed(0)
    x: Inputs = torch.randn(1, *input_shape, generator=random)
    if tokens is not None:
        x = torch.randint(tokens, (1, *input_shape), generator=random)
    if example is not None:
        x = example
    nets = [net] if baseline is None else [net, baseline]
    with _quiet(nets, threads), torch.inference_mode():
        prepared = [prepare(each, x, threads) for each in nets]
        calls = [prepared[0], control(random), *prepared[1:]]
        for owner, call in zip((net, None, *nets[1:]), calls, strict=True):
            for _ in range(warmup):
                _try(owner, call, x)
        with streaming() as streamed:
            times = [Timing.of(each) for each in interleaved(calls, repeats, repeated=False)]
    own = times[0]
    controls = Controls(times[1], Timing.of(streamed))
    other = times[2] if baseline is not None else None
    return Measurement(
        median_ms=own.median_ms,
        spread_ms=own.spread_ms,
        ratio=None if other is None else own.median_ms / other.median_ms,
        baseline=other,
        control=controls.product,
        stream=controls.stream,
        noisy=controls.noisy,
        threads=threads,
        repeats=repeats,
        warmup=warmup,
    )


class FailingNetworkError(UserError):
    """A network that does not take the input that it is measured with."""


def _try(net: nn.Module | None, call: Callable[[], object], x: Inputs) -> None:
    """Run a network once, or the control computation."""
    try:
        call()
    except UserError:
        raise
    except Exception as error:  # whatever a network raises
        if net is None:
            raise
        raise FailingNetworkError(
            f"the network {type(net).__name__} fails on an input of the shape {shown(x)}: "
            f"{first_line(error)}\n"
            "  expected: the shape of an input without the batch, or an example of the inputs"
        ) from error


@contextmanager
def _quiet(nets: Sequence[nn.Module], threads: int) -> Iterator[None]:
    """Evaluation mode and so many threads inside; everything as it was afterwards."""
    modes = [(module, module.training) for net in nets for module in net.modules()]
    for net in nets:
        net.eval()
    try:
        with torch_threads(threads):
            yield
    finally:
        for module, training in modes:
            module.training = training


def _check_counts(repeats: int, warmup: int, threads: int) -> None:
    check_threads(threads)
    for name, value, least in (("repeats", repeats, LEAST_REPEATS), ("warmup", warmup, 1)):
        checks.whole(f"'{name}'", value, least)


def _check_verified(net: nn.Module, verifications: Iterable[Verification]) -> None:
    passed = {v.source_hash for v in verifications if isinstance(v, Verification) and v.passed}
    for name, module in net.named_modules():
        if isinstance(module, Layer) and module.source_hash not in passed:
            raise UserError(
                f"the operator in '{name}' has no passed verification\n"
                f"  in binding {module.binding}\n"
                f"  expected: a passed check of the code {module.source_hash[:12]}      "
                f"got: {len(passed)} passed, of other code\n"
                "  hint: latency(net, ..., verifications=[verify(operator, binding)])"
            )
