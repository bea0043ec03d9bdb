"""Latencies of candidates in their slots, and of whole networks, as compiled code."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno._util.torch_threads import torch_threads
from syno.adaptation.pipeline.kinds import Kind
from syno.adaptation.pipeline.pool import ORIGINAL, REMOVED, Candidate
from syno.codegen.native import no_compiler
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.kernel import Kernel, load_together
from syno.codegen.torch_op.record import KernelRecord
from syno.engines import engine as engines
from syno.inference.passes.layers import layers_of
from syno.inference.prepare import prepare
from syno.measure.timing import PAUSE, interleaved

# What follows a layer in most networks, and is computed by its kernel.
_EPILOGUE = "bias+relu"
# Kernels of one translation unit.
_TOGETHER = 16
_WARM_UP = 5

Call = Callable[[], object]


def slot_latencies(
    kind: Kind, candidates: Sequence[Candidate], *, threads: int, rounds: int
) -> dict[str, float]:
    """Measure candidates in a kind of slot, in turns, as kernels of the compiled network.

    The original layer is measured, too. A slot that averages its input before the operator, or
    takes it apart into phases, counts with that. Where the layer is removed, the normalization and
    the activation behind it remain, which are part of the kernels otherwise. Candidates whose code
    cannot be compiled are left out.

    Returns:
        The median latencies in milliseconds by the name of the candidate, `original` and `removed`.
    """
    with torch_threads(threads), torch.inference_mode():
        calls = {ORIGINAL: _original(kind), REMOVED: _what_remains(kind)}
        calls |= _operators(kind, [each for each in candidates if each.is_operator])
        pool: Call | None = None
        if kind.slot.moves is not None:
            pooled, given = kind.slot.moves, torch.randn(kind.input_shape)
            pool = lambda: pooled(given)  # noqa: E731
        every = [*calls.values(), *([pool] if pool is not None else [])]
        for call in every:
            for _ in range(_WARM_UP):
                call()
        times = [1e3 * statistics.median(each) for each in interleaved(every, rounds)]
    before = times.pop() if pool is not None else 0.0
    found = dict(zip(calls, times, strict=True))
    return {name: ms + (0.0 if name == ORIGINAL else before) for name, ms in found.items()}


def _original(kind: Kind) -> Call:
    """The original layer as the kernel that it becomes, or in PyTorch where it does not."""
    assert kind.slot.original is not None
    layer = copy_network(kind.slot.original).eval()
    x = torch.randn(kind.input_shape)
    with torch.inference_mode(False), torch.no_grad():
        prepared = prepare(nn.Sequential(layer), (x.clone(),), batch=False)
    found = list(layers_of(prepared.graph).values())
    if len(found) != 1 or no_compiler() is not None:
        return lambda: layer(x)
    computed = found[0].computation
    kernel = Kernel.of(
        computed.operator,
        computed.binding,
        epilogue=_EPILOGUE,
        channel=found[0].channel,
        plan=computed.plan,
        fold_weights=computed.fold_weights,
    )
    return _call(kernel, found[0].channel)


def _what_remains(kind: Kind) -> Call:
    """A product and a sum in each channel, and an activation."""
    assert kind.slot.shapes is not None
    y = torch.randn(1, *kind.slot.shapes[1])
    size = [1, -1, *[1] * (y.dim() - 2)] if _is_map(kind) else [-1]
    scale = torch.randn(y.shape[1 if _is_map(kind) else -1]).reshape(size)
    return lambda: torch.relu_(torch.addcmul(scale, y, scale))


def _is_map(kind: Kind) -> bool:
    return isinstance(kind.slot.original, nn.modules.conv._ConvNd)


def _operators(kind: Kind, candidates: Sequence[Candidate]) -> dict[str, Call]:
    channel = 1 if _is_map(kind) else len(_shape(kind))
    wanted = [
        (each.name, KernelRecord.of(each.operator, kind.binding(each), channel=channel))
        for each in candidates
    ]
    calls: dict[str, Call] = {}
    if no_compiler() is not None:
        for each in candidates:
            pack = each.operator.kernel_pack(kind.binding(each))
            given = torch.randn(pack.operator.shapes(pack.binding).input)
            calls[each.name] = functools.partial(pack.eval(), given)
        return calls
    for start in range(0, len(wanted), _TOGETHER):
        for name, kernel in _compiled(wanted[start : start + _TOGETHER]):
            calls[name] = _call(kernel, channel, kind.slot.phases)
    return calls


def _shape(kind: Kind) -> tuple[int, ...]:
    assert kind.slot.shapes is not None
    return kind.slot.shapes[1]


def _compiled(wanted: Sequence[tuple[str, KernelRecord]]) -> Iterable[tuple[str, Kernel]]:
    """Kernels from one translation unit; one by one where a compiler refuses it."""
    epilogue = Epilogue(_EPILOGUE)
    try:
        made = load_together([(record, epilogue) for _, record in wanted])
    except UserError:
        if len(wanted) == 1:
            return
        for one in wanted:
            yield from _compiled([one])
        return
    yield from zip([name for name, _ in wanted], made, strict=True)


def _call(kernel: Kernel, channel: int, samples: int = 1) -> Call:
    shapes = kernel.record.shapes
    x = torch.randn([samples, *shapes.input[1:]] if kernel.record.batched else shapes.input)
    packed = kernel.pack([torch.randn(shape) for shape in kernel.weight_shapes])
    bias = torch.zeros(shapes.output[channel])
    return lambda: kernel(x, packed, bias)


@dataclass
class InterleavedTimer:
    """Measures networks in turns with the original network.

    engine: of `syno.engines`; example: an input with the batch as first dimension.
    """

    original: nn.Module
    example: torch.Tensor
    engine: str
    threads: int
    rounds: int

    def ratio(self, net: nn.Module, engine: str | None = None) -> float:
        """The latency of a network relative to that of the original: the median of rounds.

        engine: of the network; default: that of the original.
        """
        return self.ratio_of(self._prepared(net, engine or self.engine))

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
        return self._prepared(self.original, self.engine)

    def _prepared(self, net: nn.Module, engine: str) -> Call:
        with torch_threads(self.threads), torch.inference_mode():
            found = engines.get(engine)
            return found.prepare(copy_network(net).eval(), self.example, self.threads)

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
