"""Latencies of whole networks, in turns with the original one, and a model of them from slots."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from syno._util.inputs import Inputs
from syno._util.network_copy import copy_network
from syno._util.torch_threads import torch_threads
from syno.adaptation.pipeline.delivery import Delivery
from syno.engines import engine as engines
from syno.measure.timing import PAUSE, interleaved

_WARM_UP = 5
_NONE: Mapping[str, str] = {}

Call = Callable[[], object]


@dataclass
class InterleavedTimer:
    """Measures networks in turns with the original network.

    example: an input with the batch as first dimension; delivery: the engine of both.
    """

    original: nn.Module
    example: Inputs
    delivery: Delivery
    threads: int
    rounds: int

    def ratio(self, net: nn.Module, formats: Mapping[str, str] = _NONE) -> float:
        """The latency of a network relative to that of the original: the median of rounds.

        formats: of layers, as `Delivery.call` has them.
        """
        return self.ratio_of(self._prepared(net, formats))

    def ratio_in(self, engine: str, net: nn.Module) -> float:
        """As `ratio`, for a network in another engine than the original."""
        with torch_threads(self.threads), torch.inference_mode():
            made = engines.get(engine)
            call = made.prepare(copy_network(net).eval(), self.example, self.threads)
        return self.ratio_of(call)

    def ratio_of(self, call: Call) -> float:
        """The time of a call relative to that of the original network: the median of rounds."""
        first, other = self._times([self._baseline, call])
        return statistics.median(b / a for a, b in zip(first, other, strict=True))

    def original_ms(self) -> float:
        """The median latency of the original network in milliseconds."""
        (times,) = self._times([self._baseline])
        return 1e3 * statistics.median(times)

    @functools.cached_property
    def _baseline(self) -> Call:
        return self._prepared(self.original, _NONE)

    def _prepared(self, net: nn.Module, formats: Mapping[str, str]) -> Call:
        with torch_threads(self.threads), torch.inference_mode():
            return self.delivery.call(net, formats)

    def _times(self, calls: Sequence[Call]) -> list[list[float]]:
        with torch_threads(self.threads), torch.inference_mode():
            for call in calls:
                for _ in range(_WARM_UP):
                    call()
            return interleaved(calls, self.rounds, pause=PAUSE if self.threads > 1 else 0.0)


class NetworkLatency:
    """The latency of a network from that of its slots: rest + factor * sum of slots.

    It begins with a factor of 1, and the rest of the original network. `learn` corrects it by
    networks that were measured.
    """

    def __init__(self, original_ms: float, slots_ms: float) -> None:
        self._points = [(slots_ms, original_ms)]
        self.rest, self.factor = original_ms - slots_ms, 1.0

    def predicted(self, slots_ms: float) -> float:
        """The latency of a network whose slots take so long together, in milliseconds."""
        return self.rest + self.factor * slots_ms

    def slots(self, network_ms: float) -> float:
        """The time of all slots together in a network of this latency."""
        return (network_ms - self.rest) / self.factor

    def learn(self, slots_ms: float, network_ms: float) -> None:
        """Take a measured network into account: the line through all of them, least squares."""
        self._points.append((slots_ms, network_ms))
        x = [a for a, _ in self._points]
        y = [b for _, b in self._points]
        if max(x) - min(x) < 0.05 * max(x):
            return
        fit = statistics.linear_regression(x, y)
        if fit.slope > 0.0:
            self.factor, self.rest = fit.slope, fit.intercept
