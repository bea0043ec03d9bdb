"""Memory for what a compiled network computes on its way, which its next call uses again."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import fx, nn

_aten = torch.ops.aten
# Operators whose results are memory of their own. All others are taken to give a view of it.
_FRESH = {
    _aten.add.Tensor,
    _aten.sub.Tensor,
    _aten.mul.Tensor,
    _aten.div.Tensor,
    _aten.relu.default,
    _aten.relu6.default,
    _aten.hardtanh.default,
    _aten.silu.default,
    _aten.gelu.default,
    _aten.hardswish.default,
    _aten.hardsigmoid.default,
    _aten.sigmoid.default,
    _aten.tanh.default,
    _aten.max_pool2d.default,
    _aten.avg_pool2d.default,
    _aten.adaptive_avg_pool2d.default,
    _aten.mean.dim,
    _aten.softmax.int,
    _aten.layer_norm.default,
    _aten._native_batch_norm_legit_no_training.default,
    _aten.scaled_dot_product_attention.default,
    _aten.cat.default,
    _aten.conv2d.default,
    _aten.linear.default,
}
# Memory of more bytes is not kept for the next call.
_MOST_KEPT = 256 << 20


@dataclass(frozen=True)
class ResultPlace:
    """Where the result of a module lies: in the block of that number. shape: without the batch,
    where `batched`."""

    block: int
    shape: tuple[int, ...]
    batched: bool

    @property
    def floats(self) -> int:
        """Floats of the result, or of one image of it."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Blocks:
    """Blocks of memory for values. block: the number of that of each value; sizes: of the
    blocks."""

    block: list[int]
    sizes: list[int]


def in_blocks(values: Sequence[tuple[int, int, int]]) -> Blocks:
    """Blocks for values, of which those in one block are not needed at the same time.

    values: of each, the numbers of the step that makes it and of the last one that needs it, and
    its size; in the order in which they are made.
    """
    chosen: list[int] = []
    sizes: list[int] = []
    until: list[int] = []  # the number of the last step that needs what is in a block
    for first, last, size in values:
        free = [block for block, end in enumerate(until) if end < first]
        # The smallest that is large enough, or else the largest.
        free.sort(key=lambda block: (sizes[block] < size, abs(sizes[block] - size)))
        if free:
            block = free[0]
        else:
            block = len(sizes)
            sizes.append(0)
            until.append(0)
        sizes[block], until[block] = max(sizes[block], size), last
        chosen.append(block)
    return Blocks(chosen, sizes)


def plan(graph: fx.GraphModule, modules: Sequence[type[nn.Module]]) -> dict[str, ResultPlace]:
    """Places of the results of modules of these types, by their names in the graph.

    What the network returns has none, and may be kept by whoever called it.
    """
    nodes = list(graph.graph.nodes)
    sizes = [n.meta["val"].shape[0] for n in nodes if n.op == "placeholder"]
    batch = next((str(size) for size in sizes if isinstance(size, torch.SymInt)), "")
    held: dict[fx.Node, set[fx.Node]] = {}  # results whose memory the value of a node may be
    last: dict[fx.Node, int] = {}
    returned: set[fx.Node] = set()
    for number, node in enumerate(nodes):
        used = set().union(*(held[each] for each in node.all_input_nodes))
        last |= dict.fromkeys(used, number)
        own = node.op == "call_module" and isinstance(
            graph.get_submodule(str(node.target)), tuple(modules)
        )
        if node.op == "output":
            returned = used
        held[node] = {node} if own else set() if node.target in _FRESH else used
        last |= {node: number} if own else {}
    shapes: dict[str, tuple[tuple[int, ...], bool]] = {}
    values = []
    for number, node in enumerate(nodes):
        shape = _shape(node, batch) if node in last and node not in returned else None
        if shape is not None:
            shapes[str(node.target)] = shape
            values.append((number, last[node], math.prod(shape[0])))
    blocks = in_blocks(values).block
    return {
        name: ResultPlace(block, *shape)
        for (name, shape), block in zip(shapes.items(), blocks, strict=True)
    }


def _shape(node: fx.Node, batch: str) -> tuple[tuple[int, ...], bool] | None:
    """The shape without a batch of any size, and whether there is one. None for other sizes."""
    first, *rest = node.meta["val"].shape
    if not all(isinstance(size, int) for size in rest):
        return None
    if isinstance(first, int):
        return (first, *rest), False
    return (tuple(rest), True) if str(first) == batch else None


class Memory:
    """Results of modules for calls of a network: each call in flight has its own.

    places: of the results; scratch: floats of memory for each image, which modules use while they
    compute.
    """

    def __init__(self, places: Mapping[str, ResultPlace], scratch: int = 0) -> None:
        self.places = dict(places)
        self.scratch = scratch
        self._idle: dict[int, list[ResultMemory]] = {}

    @contextmanager
    def of_call(self, batch: int) -> Iterator[None]:
        """Until its end, `of_this_call` gives the results of this thread's call their memory."""
        before = _call.results
        try:
            results = self._idle[batch].pop()
        except (KeyError, IndexError):
            results = self._made(batch)
        _call.results = results
        try:
            yield
        finally:
            _call.results = before
            self._give(batch, results)

    def _made(self, batch: int) -> ResultMemory:
        sizes: dict[int, int] = {}
        for place in self.places.values():
            floats = place.floats * (batch if place.batched else 1)
            sizes[place.block] = max(sizes.get(place.block, 0), floats)
        with torch.inference_mode(False):  # calls outside of that mode write to it, too
            blocks = {block: torch.empty(size) for block, size in sizes.items()}
            scratch = torch.empty(self.scratch * batch)
            tensors = {}
            for name, place in self.places.items():
                shape = (batch, *place.shape) if place.batched else place.shape
                tensors[name] = blocks[place.block][: math.prod(shape)].view(shape)
        return ResultMemory(batch, tensors, scratch, sum(sizes.values()) + scratch.numel())

    def _give(self, batch: int, results: ResultMemory) -> None:
        if results.floats * results.scratch.element_size() > _MOST_KEPT:
            return
        if batch not in self._idle and len(self._idle) > 1:
            self._idle.clear()
        self._idle.setdefault(batch, []).append(results)


@dataclass(frozen=True)
class ResultMemory:
    """Memory of a call. batch: its size; tensors: the results of modules by name; scratch: what
    modules use while they compute; floats: of all of it."""

    batch: int
    tensors: Mapping[str, torch.Tensor]
    scratch: torch.Tensor
    floats: int


class _Call(threading.local):
    results: ResultMemory | None = None


_call = _Call()


def of_this_call() -> ResultMemory | None:
    """The memory of this thread's call; None outside of one."""
    return _call.results
