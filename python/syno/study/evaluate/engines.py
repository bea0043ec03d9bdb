"""What runs the networks of a study: compiled code where there is a compiler, or eager PyTorch."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from syno import inference, options
from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments, mapped
from syno._util.network_copy import copy_network
from syno._util.torch_threads import torch_threads
from syno.codegen.native import no_compiler
from syno.codegen.native.compiler import TRAINING_FLAGS, find_compiler
from syno.codegen.native.kernels import compiled_kernels
from syno.codegen.torch_op.library import kernel_compiler
from syno.engines import engine as engines
from syno.inference.compiling import compile_layers, compile_prepared
from syno.inference.prepare import folded, prepare
from syno.inference.trace import Outline
from syno.measure.timing import PAUSE, Timing, interleaved
from syno.options import TimingOptions, TrainOptions
from syno.store.documents import EngineTime
from syno.study.evaluate.network import Network

EAGER = "eager"
COMPILED = "compiled"
# Engines of others that run the original network beside Syno's, where they are installed.
_RIVALS = ("openvino", "onnxruntime")
# The priority of compilations beside a training, as `nice` counts it.
_NICE = 10


def decide(
    train: TrainOptions, timing: TimingOptions, device: str = "cpu"
) -> tuple[TrainOptions, TimingOptions, str | None]:
    """Decide what computes and times networks, where the options leave it open.

    Returns:
        The options, and a note for the user where compiled code is not possible.
    """
    reason = no_compiler()
    usual = options.DEFAULT_ENGINE if reason is None and device == "cpu" else EAGER
    train = dataclasses.replace(train, kernels=train.kernels or usual)
    timing = dataclasses.replace(timing, latency=timing.latency or usual)
    if reason is None or device != "cpu":
        return train, timing, None
    first = reason.partition("\n")[0]
    if COMPILED in (train.kernels, timing.latency):
        train = dataclasses.replace(train, kernels=EAGER)
        timing = dataclasses.replace(timing, latency=EAGER)
    return train, timing, f"operators are trained and measured in eager PyTorch: {first}"


class SharedCompilation:
    """What the compiled networks of all evaluations have in common.

    Args:
        network: the network of the study.

    Raises:
        UserError: the network cannot be compiled.
    """

    def __init__(self, network: Network) -> None:
        self._example = network.inputs(1)
        with torch.inference_mode(False):
            net = network.original().eval()
            self._outline = Outline(net, arguments(self._example))
            self._original = inference.compile(net, self._example)

    def prepared(self, net: nn.Module, x: Inputs, *, is_original: bool) -> Callable[[], object]:
        """Return a function that runs a network, compiled.

        Args:
            net: a copy of the network of the study, with operators or, if `is_original`, as it is.
            x: the input of every call.
            is_original: whether its layers and weights are those of the network of the study.
        """
        if is_original:
            compiled = self._original
        else:
            with torch.inference_mode(False):
                inputs = arguments(mapped(torch.clone, x))
                graph = prepare(net, inputs, batch=True, outline=self._outline)
                compiled = compile_prepared(net, inputs, graph)
        given = arguments(x)
        return lambda: compiled(*given)

    @contextlib.contextmanager
    def compiling(self, net: nn.Module) -> Iterator[None]:
        """Compile the kernels of a network for `prepared` during the block, beside what runs in it.

        The block may train the network: kernels do not depend on its weights.
        """
        traced = self._outline.traced(copy_network(net).eval())
        if traced is None:  # it would be traced, which must not happen beside other work of torch
            yield
            return
        with ThreadPoolExecutor(1, initializer=_give_way) as pool:
            made = pool.submit(lambda: compile_layers(folded(traced)))
            yield
            made.exception()  # it is met again, and reported, when the network is measured


def _give_way() -> None:
    """Lower the priority of this thread and of the compilers that it starts."""
    with contextlib.suppress(OSError, AttributeError):  # of Linux
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def prepare_compilers() -> None:
    """Prepare what is the same for the compilations of all evaluations."""
    with contextlib.suppress(UserError):  # what goes wrong here does so in each evaluation
        kernel_compiler().precompile()
        find_compiler().precompile(TRAINING_FLAGS)


@contextlib.contextmanager
def kernels(net: nn.Module, wanted: str, note: Callable[[str], object]) -> Iterator[str | None]:
    """Run the operators of a network as compiled code inside of the block, if that is wanted.

    Args:
        net: the network.
        wanted: `compiled` or `eager`.
        note: is told why operators are not compiled.

    Yields:
        Why operators are not compiled although that is wanted; otherwise None.

    Raises:
        WrongKernelError: compiled code differs from the emitted module.
    """
    reason = None
    with contextlib.ExitStack() as stack:
        if wanted == COMPILED:
            try:
                stack.enter_context(compiled_kernels(net))
            except UserError as error:
                reason = str(error)
                note(f"operators are trained in eager PyTorch: {reason.partition(chr(10))[0]}")
        yield reason


def rivals(
    net: nn.Module, example: Inputs, *, threads: int, repeats: int, warmup: int
) -> dict[str, EngineTime]:
    """Measure a network in the engines of others that are installed.

    Args:
        net: the network, on the CPU.
        example: its input.
        threads, repeats, warmup: as for the latency of a network.

    Returns:
        Median and spread by the name of the engine, without engines that cannot run the network.
    """
    calls: dict[str, Callable[[], object]] = {}
    net = net.eval()
    with torch_threads(threads), torch.inference_mode():
        for name in engines.available(_RIVALS):
            with contextlib.suppress(UserError):  # it covers not every network
                calls[name] = engines.get(name).prepare(net, example, threads)
        for call in calls.values():
            for _ in range(warmup):
                call()
        times = interleaved(list(calls.values()), repeats, repeated=False, pause=PAUSE)
    timings = dict(zip(calls, map(Timing.of, times), strict=True))
    return {
        name: {"median_ms": timing.median_ms, "spread_ms": timing.spread_ms}
        for name, timing in timings.items()
    }
