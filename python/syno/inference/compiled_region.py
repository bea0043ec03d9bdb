"""A region of a network as one call, and how a compiled network calls its regions.

A call of a kernel through PyTorch costs some microseconds, as much as a small layer computes. So a
network that is neither traced nor observed runs another graph than the one that it shows: its
regions are programs there, each of which torch.ops.syno._run_program computes in one call.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import fx, nn

from syno import _core
from syno.codegen.native import FLAGS
from syno.codegen.torch_op.library import kernel_compiler, kernel_header
from syno.inference.compiled_layer import CompiledLayer
from syno.inference.library.source import emit_hosted
from syno.inference.regions import Region, with_regions

_HEADERS = (
    "#include <chrono>\n#include <mutex>\n#include <new>\n#include <string>\n#include <vector>"
)
_lock = threading.Lock()
# Programs of the operator whose module is gone. They are dropped when the next one is made: garbage
# is collected at any moment, and what is called while torch traces becomes part of the graph.
_unused: collections.deque[int] = collections.deque()


def source_of(region: Region) -> str:
    """The C++ of a region."""
    head = [_HEADERS, _core.cpp_runtime(), kernel_header()]
    return "\n".join([*head, emit_hosted(region.program)])


class Timing:
    """The time that calls of one thread spend in the kernels of layers, until the end of `timed`.

    seconds: so far; calls: of networks whose layers were all timed.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0


class _OfThisThread(threading.local):
    timing: Timing | None = None


_of_this_thread = _OfThisThread()


@contextmanager
def timed() -> Iterator[Timing]:
    """Time the calls that this thread makes inside of the block, and no others."""
    before, timing = _of_this_thread.timing, Timing()
    _of_this_thread.timing = timing
    try:
        yield timing
    finally:
        _of_this_thread.timing = before


class _Timed(nn.Module):
    """A layer outside of regions, which is timed as they are."""

    def __init__(self, layer: CompiledLayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """What the layer computes."""
        timing = _of_this_thread.timing
        began = time.perf_counter()
        y: torch.Tensor = self.layer(*inputs)
        if timing is not None:
            timing.seconds += time.perf_counter() - began
        return y


class CompiledRegion(nn.Module):
    """A region of a network as one call, which gives a tuple of tensors.

    layers: those that its program calls, of which several calls may be. They are no modules of the
    region, but of the network.
    """

    def __init__(self, region: Region, source: str, network: fx.GraphModule) -> None:
        super().__init__()
        self._layers = [_layer(network, name) for name in region.layers]
        self._source = source
        # In place of a scale and bias the list of the layer that has them: nn.Module would take the
        # layer itself for a part of the region.
        self._constants: list[torch.Tensor | list[CompiledLayer]] = [
            tensor if name is None else [_layer(network, name)]
            for name, tensor in zip(region.constants, region.program.constants, strict=True)
        ]
        self._shapes = region.shapes
        self._sized = region.sized
        self._ids = [value.view.dtype == torch.int64 for value in region.program.inputs]
        self._sizes = [len(region.inputs)]
        for number, value in enumerate(region.program.inputs):
            shared = region.sized is None or number in region.program.shared
            self._sizes += [value.view.numel(), int(shared), int(self._ids[number])]
        self._sizes += [value.view.numel() for value in region.program.outputs]
        self._number: int | None = None  # of the operator's program, which is made when needed

    @property
    def layers(self) -> list[CompiledLayer]:
        """The layers that it computes, in this order."""
        return self._layers

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs of the region."""
        if any(self._ids):
            inputs = tuple(x.long() if ids else x for x, ids in zip(inputs, self._ids, strict=True))
        if self._sized is None:
            batch, made = 1, tuple(torch.empty(shape) for shape in self._shapes)
        else:
            number, rows = self._sized
            batch = inputs[number].shape[0] // rows
            made = tuple(torch.empty((batch * first, *rest)) for first, *rest in self._shapes)
        program = self._made() if self._number is None else self._number
        timing = _of_this_thread.timing
        spent = _run_program()(inputs, made, program, batch, timing is not None)
        if timing is not None:
            timing.seconds += spent * 1e-9
        return made

    def _made(self) -> int:
        with _lock:
            while _unused:
                torch.ops.syno._drop_program(_unused.popleft())
            if self._number is None:
                library = kernel_compiler().library(self._source, FLAGS)
                functions = library.syno_run_program, library.syno_program_error
                layers = self._layers
                made = int(
                    torch.ops.syno._add_program(
                        [*map(_address, functions), *self._sizes],
                        [torch.ops.syno._kernel_at(e.key, e.epilogue) for e in layers],
                        [layer.packed for layer in layers],
                        [c[0].channel if isinstance(c, list) else c for c in self._constants],
                    )
                )
                weakref.finalize(self, _unused.append, made).atexit = False
                self._number = made
            return self._number

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_number": None}


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


@functools.cache
def _run_program() -> Callable[..., int]:
    run: Callable[..., int] = torch.ops.syno._run_program.default
    return run


class Fast:
    """A compiled network with programs in the place of its regions. It shares its tensors.

    graph: what `own_copy` made of the network; regions, sources: in it, and their C++.
    """

    def __init__(
        self,
        network: fx.GraphModule,
        graph: fx.GraphModule,
        regions: Sequence[Region],
        sources: Sequence[str],
    ) -> None:
        self.regions = {
            f"syno_region_{number}": CompiledRegion(region, source, graph)
            for number, (region, source) in enumerate(zip(regions, sources, strict=True))
        }
        # The names of what regions compute.
        self.computed = {node.name for region in regions for node in region.nodes}
        made = with_regions(graph, regions, self.regions)
        for node in made.graph.find_nodes(op="call_module"):
            layer = made.get_submodule(node.target)
            if isinstance(layer, CompiledLayer):
                setattr(made, node.target, _Timed(layer))
        self._graph = made
        self._network = network
        self._watch()

    def _watch(self) -> None:
        """Note what regions cannot see: other tensors in the network, and hooks of its modules."""
        self._held = [
            (tensors, name, value)
            for module in self._network.modules()
            for tensors in (module._buffers, module._parameters)
            for name, value in tensors.items()
        ]
        self._hooks = [
            hooks
            for module in self._network.modules()
            for hooks in (module._forward_pre_hooks, module._forward_hooks)
        ]

    def takes(self, inputs: tuple[torch.Tensor, ...]) -> bool:
        """Whether it computes a call, as the network does."""
        for x in inputs:
            if type(x) is not torch.Tensor or x.numel() == 0:
                return False
        if torch.is_grad_enabled():  # the network says what cannot have a gradient
            held = (value for _, _, value in self._held)
            if any(each is not None and each.requires_grad for each in (*inputs, *held)):
                return False
        for tensors, name, value in self._held:
            if tensors.get(name) is not value:
                return False
        return not (any(self._hooks) or torch.jit.is_tracing())

    def __call__(self, *inputs: torch.Tensor) -> object:
        """What the network computes."""
        y = self._graph(*inputs)
        if _of_this_thread.timing is not None:
            _of_this_thread.timing.calls += 1
        return y

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()
        del state["_held"], state["_hooks"]
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._watch()


def _layer(network: fx.GraphModule, name: str) -> CompiledLayer:
    layer = network.get_submodule(name)
    assert isinstance(layer, CompiledLayer)
    return layer
