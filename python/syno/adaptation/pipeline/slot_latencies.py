"""Latencies of candidates in their slots, as compiled code.

They are timed as kernels of `syno.compile`, or as layers of a network library, in each number
format that layers of the delivered network may have.
"""

from __future__ import annotations

import functools
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno._util.threads import usable_cores
from syno._util.torch_threads import torch_threads
from syno.adaptation.pipeline.kinds import Kind
from syno.adaptation.pipeline.pool import (
    NO_LAYER,
    ORIGINAL,
    ORIGINAL_LAYER,
    REMOVED,
    Candidate,
)
from syno.codegen.native import no_compiler
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.kernel import Kernel, load_together
from syno.codegen.torch_op.record import KernelRecord
from syno.inference.library.built import built
from syno.inference.library.load import NetworkLibrary
from syno.inference.passes.layers import layers_of
from syno.inference.precision import FLOAT32, INT8
from syno.inference.prepare import prepare
from syno.inference.quantization.costs import step_seconds
from syno.inference.quantization.network import in_formats
from syno.measure.timing import interleaved

# What follows a layer in most networks, and is computed by its kernel.
_EPILOGUE = "bias+relu"
# Kernels of one translation unit.
_TOGETHER = 16
_WARM_UP = 5
# Channels of the layer that reads a candidate's result in a library, and steps of slots by name.
_READER = 4
_STEP = re.compile(r"slots\.(\d+)(?:\.(\w+))?")

Call = Callable[[], object]


class SlotLatency(NamedTuple):
    """A candidate in a slot: the least of its median latencies, and the format that has it."""

    ms: float
    format: str


def slot_latencies(
    kind: Kind,
    candidates: Sequence[Candidate],
    *,
    formats: Sequence[str],
    threads: int,
    rounds: int,
) -> dict[str, SlotLatency]:
    """Measure candidates in a kind of slot, in turns, as parts of the compiled network.

    The original layer is measured, too. A slot that averages its input before the operator, or
    takes it apart into phases, counts with that. Where the layer is removed, the normalization and
    the activation behind it remain, which are part of the kernels otherwise. Candidates whose code
    cannot be compiled are left out.

    Args:
        kind: the slots.
        candidates: operators; others are ignored.
        formats: of layers in a network library; none for kernels of `syno.compile`.
        threads: the number of threads.
        rounds: the number of timed calls.

    Returns:
        The latencies by the name of the candidate, `original` and `removed`.
    """
    operators = [each for each in candidates if each.is_operator]
    if not formats or no_compiler() is not None:
        found = _as_kernels(kind, operators, threads, rounds)
        return {name: SlotLatency(ms, FLOAT32) for name, ms in found.items()}
    least: dict[str, SlotLatency] = {}
    for start in range(0, max(len(operators), 1), _TOGETHER):
        part = operators[start : start + _TOGETHER]
        both = [ORIGINAL_LAYER, *([NO_LAYER] if kind.removable else [])] if start == 0 else []
        for form, times in _as_layers(kind, [*both, *part], formats, threads, rounds).items():
            for name, ms in times.items():
                least[name] = min(least.get(name, SlotLatency(ms, form)), SlotLatency(ms, form))
    if ORIGINAL not in least or (kind.removable and REMOVED not in least):
        # A slot that is no library alone, with whatever candidate: times of both would not compare.
        return slot_latencies(kind, candidates, formats=(), threads=threads, rounds=rounds)
    return least


# --- as layers of a library ----------------------------------------------------------------------


class _Slot(nn.Module):
    """A slot with a candidate between its neighbours, so that it gives what a layer reads."""

    def __init__(self, kind: Kind, candidate: Candidate) -> None:
        super().__init__()
        slot = copy_network(kind.slot)
        kind.fill(slot, candidate)
        self.slot = slot
        layer = kind.slot.original
        assert layer is not None
        if isinstance(layer, nn.modules.conv._ConvNd):
            d = len(layer.kernel_size)
            norms = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
            layers = nn.Conv1d, nn.Conv2d, nn.Conv3d
            self.norm: nn.Module = norms[d - 1](layer.out_channels)
            self.reader: nn.Module = layers[d - 1](layer.out_channels, _READER, 1)
        else:
            assert isinstance(layer, nn.Linear)
            self.norm = nn.Identity()
            self.reader = nn.Linear(layer.out_features, _READER)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.reader(torch.relu(self.norm(self.slot(x))))
        return y


class _Beside(nn.Module):
    """Slots that read the same input."""

    def __init__(self, slots: Sequence[nn.Module]) -> None:
        super().__init__()
        self.slots = nn.ModuleList(slots)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(slot(x) for slot in self.slots)


def _as_layers(
    kind: Kind,
    candidates: Sequence[Candidate],
    formats: Sequence[str],
    threads: int,
    rounds: int,
) -> dict[str, dict[str, float]]:
    """For each format, the milliseconds of the candidates by name, as layers of one library.

    If a compiler refuses it, the candidates are compiled one by one.
    """
    x = torch.randn(kind.input_shape, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode(False), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = _Beside([_Slot(kind, each) for each in candidates]).eval()
        try:
            libraries = _libraries(net, x, formats)
        except UserError:
            if len(candidates) == 1:
                return {}
            found: dict[str, dict[str, float]] = {form: {} for form in formats}
            for one in candidates:
                for form, of in _as_layers(kind, [one], formats, threads, rounds).items():
                    found[form] |= of
            return found
    times = step_seconds(libraries, x, threads, calls=rounds)
    found = {}
    for form, steps in times.items():
        of_form = found[form] = dict.fromkeys((each.name for each in candidates), 0.0)
        for step in steps:
            place = _STEP.match(step.name)
            if place is not None and place[2] != "reader":
                of_form[candidates[int(place[1])].name] += 1e3 * step.seconds
    return found


def _libraries(
    net: nn.Module, x: torch.Tensor, formats: Sequence[str]
) -> dict[str, NetworkLibrary]:
    """A network as a library, in which all layers that have a format are in it."""
    integers = in_formats(net, [x], {})
    names = [row.name for row in integers.rows]
    made = {
        form: integers if form == INT8 else in_formats(net, [x], dict.fromkeys(names, form))
        for form in formats
    }
    with ThreadPoolExecutor(usable_cores()) as pool:
        found = pool.map(lambda network: built(network.graph, INT8), made.values())
        return dict(zip(made, found, strict=True))


# --- as kernels ----------------------------------------------------------------------------------


def _as_kernels(
    kind: Kind, candidates: Sequence[Candidate], threads: int, rounds: int
) -> dict[str, float]:
    """The median latencies in milliseconds of candidates as kernels of `syno.compile`."""
    with torch_threads(threads), torch.inference_mode():
        calls = {ORIGINAL: _original(kind), REMOVED: _what_remains(kind)}
        calls |= _operators(kind, candidates)
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
