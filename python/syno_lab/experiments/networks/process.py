"""Engines of one network in a process of their own."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psutil
import torch

from syno._util.errors import UserError, first_line
from syno._util.torch_threads import torch_threads
from syno.engines import engine as engines
from syno.engines.compare import computed, relative_error
from syno.measure.timing import PAUSE, Controls, Timing, control, interleaved, stream
from syno_lab.experiments.child import obey
from syno_lab.experiments.networks.zoo import images, network

# Random images that ranges of INT8 come from.
_SAMPLES = 16


@dataclass(frozen=True)
class EngineTime:
    """A network in an engine.

    median_ms, low_ms, high_ms: median and quartiles of the times; prepare_s: until it could be
    called, compilation included; load_ms: until one that was compiled or written before could be;
    size_mb: of the files that are loaded then; memory_mb: what the process takes up more than
    before the engine, after all calls, where the engine is alone; error: the largest difference
    from eager PyTorch, relative to the largest output; reason: why it has no time, empty if it has
    one. None where it is not known.
    """

    median_ms: float = 0.0
    low_ms: float = 0.0
    high_ms: float = 0.0
    prepare_s: float = 0.0
    error: float = 0.0
    reason: str = ""
    load_ms: float | None = None
    size_mb: float | None = None
    memory_mb: float | None = None


@dataclass(frozen=True)
class ProcessTimes:
    """What one process measured: a time for each engine, and how quiet the machine was.

    product_ms: of a product of matrices; stream_gb_s: of a sum over memory; noisy: whether one of
    them varied.
    """

    engines: dict[str, EngineTime]
    product_ms: float
    stream_gb_s: float
    noisy: bool


def measured(
    name: str, names: Sequence[str], *, batch: int, threads: int, rounds: int
) -> ProcessTimes:
    """Measure a network in engines, which run in turns; one engine is alone in the process."""
    net, x = network(name), images(batch)
    samples = images(_SAMPLES, seed=1).split(batch)
    calls: dict[str, Callable[[], object]] = {}
    found: dict[str, EngineTime] = {}
    process = psutil.Process()
    with torch_threads(threads), torch.inference_mode():
        expected = computed(name, net, x)
        before = process.memory_info().rss
        for each in names:
            began = time.perf_counter()
            try:
                run = engines.get(each).calibrated(samples).prepare(net, x, threads)
                outputs = run()
                took = time.perf_counter() - began
                error = relative_error(outputs, expected)
            except UserError as refusal:
                found[each] = EngineTime(reason=first_line(refusal))
                continue
            calls[each] = run
            load_s, size = getattr(run, "load_s", None), getattr(run, "size", None)
            found[each] = EngineTime(
                prepare_s=took,
                error=error,
                load_ms=None if load_s is None else 1e3 * load_s,
                size_mb=None if size is None else size / 2**20,
            )
        *times, products, streams = interleaved(
            [*calls.values(), control(), stream()], rounds, pause=PAUSE
        )
        if len(names) == 1:
            more = (process.memory_info().rss - before) / 2**20
            found = {
                each: dataclasses.replace(time, memory_mb=more) for each, time in found.items()
            }
    for each, seconds in zip(calls, times, strict=True):
        low, middle, high = (
            1e3 * one for one in statistics.quantiles(seconds, n=4, method="inclusive")
        )
        found[each] = dataclasses.replace(found[each], median_ms=middle, low_ms=low, high_ms=high)
    controls = Controls(Timing.of(products), Timing.of(streams))
    return ProcessTimes(found, controls.product.median_ms, controls.stream_gb_s, controls.noisy)


def main() -> None:
    """Measure what the orders name, and answer with a line of JSON."""
    obey(_answer)


def _answer(orders: Any) -> dict[str, Any]:
    del orders["memory"], orders["parent"]
    return dataclasses.asdict(measured(orders.pop("network"), orders.pop("engines"), **orders))
