"""Layers one after the other as one call: what a compiled network runs outside of traces.

A call of a kernel through PyTorch costs some microseconds, as much as a small layer computes. So a
network that is neither traced nor observed runs another graph than the one that it shows: runs of
layers, poolings and reshapes are chains there, and torch.ops.syno._run_chain computes a chain. What
lies between the layers of a chain is memory that no tensor of PyTorch stands for.
"""

from __future__ import annotations

import collections
import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import fx, nn

from syno.inference import memory
from syno.inference.compiled_layer import CompiledLayer
from syno.inference.passes.clean import put_module
from syno.inference.passes.pools import Pool
from syno.inference.trace import batched_inputs, copied

_aten = torch.ops.aten
# What gives another shape to the elements of a tensor in row-major order.
_RESHAPES = {
    _aten.reshape.default,
    _aten.view.default,
    _aten._unsafe_view.default,
    _aten.flatten.using_ints,
    _aten.unflatten.int,
    _aten.squeeze.dim,
    _aten.squeeze.dims,
    _aten.unsqueeze.default,
}
_SIZE = _aten.sym_size.int
# Memory of a chain begins at multiples of a cache line, in floats.
_LINE = 16
# As `ChainValue` of chain.h numbers them.
_INPUT, _MEMORY, _OUTPUT = range(3)

_lock = threading.Lock()
# Chains of the operator whose module is gone. They are dropped when the next one is made: garbage
# is collected at any moment, and what is called while torch traces becomes part of the graph.
_unused: collections.deque[int] = collections.deque()


@dataclass(frozen=True)
class _Step:
    """A layer or a pooling. x, residual, y: numbers of values, -1 for none."""

    module: CompiledLayer | Pool
    x: int
    residual: int
    y: int


@dataclass(frozen=True)
class _Plan:
    """A chain. values: of each its room, place and floats for each of the batch; scratch: floats of
    memory; shape: of the result, without the batch where `batched`."""

    inputs: int
    steps: list[_Step]
    values: list[tuple[int, int, int]]
    scratch: int
    shape: tuple[int, ...]
    batched: bool


class KernelSeconds:
    """The time that calls of one thread spend in the kernels of layers, until the end of `timed`.

    seconds: so far; calls: of networks whose layers were all timed.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0


class _OfThisThread(threading.local):
    timing: KernelSeconds | None = None


_of_this_thread = _OfThisThread()


@contextmanager
def timed() -> Iterator[KernelSeconds]:
    """Time the calls that this thread makes inside of the block, and no others."""
    before, timing = _of_this_thread.timing, KernelSeconds()
    _of_this_thread.timing = timing
    try:
        yield timing
    finally:
        _of_this_thread.timing = before


class _Timed(nn.Module):
    """A layer outside of chains, which is timed as they are."""

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


class _NoChain(Exception):
    """A run of nodes that no chain can compute."""


class Chain(nn.Module):
    """Layers and poolings that are computed in one call.

    name: in the network.
    """

    def __init__(self, name: str, plan: _Plan) -> None:
        super().__init__()
        self.name = name
        self._plan = plan
        self._number: int | None = None  # of the operator's chain, which is made when it is needed

    @property
    def scratch(self) -> int:
        """Floats of memory that it needs for each of the batch."""
        return self._plan.scratch

    @property
    def modules_of_steps(self) -> list[CompiledLayer | Pool]:
        """What it computes, in this order. They are no modules of the chain, but of the network."""
        return [step.module for step in self._plan.steps]

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The result of the last layer, in a call of a network."""
        call = memory.of_this_call()
        assert call is not None
        y = call.tensors.get(self.name)
        if y is None:  # the network returns it
            shape = self._plan.shape
            y = torch.empty((call.batch, *shape) if self._plan.batched else shape)
        number = self._made() if self._number is None else self._number
        timing = _of_this_thread.timing
        spent = _run_chain()(inputs, call.scratch, y, number, call.batch, timing is not None)
        if timing is not None:
            timing.seconds += spent * 1e-9
        return y

    def _made(self) -> int:
        with _lock:
            while _unused:
                torch.ops.syno._drop_chain(_unused.popleft())
            if self._number is None:
                held: list[torch.Tensor] = []
                plan = self._plan
                numbers = [plan.inputs, plan.scratch, len(plan.values)]
                numbers += [each for value in plan.values for each in value]
                numbers += [each for step in plan.steps for each in _described(step, held)]
                made = int(torch.ops.syno._add_chain(numbers, held))
                weakref.finalize(self, _unused.append, made).atexit = False
                self._number = made
            return self._number

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_number": None}


def _described(step: _Step, held: list[torch.Tensor]) -> list[int]:
    """A step as `checked_chain` of chain.h reads it, and its tensors behind those in `held`."""
    module = step.module
    if isinstance(module, Pool):
        height, width = module.size
        tensors = [-1, -1]
        windows = [*module.window, height, width, int(module.average)]
        kernel = 0
    else:
        kernel = int(torch.ops.syno._kernel_at(module.key, module.epilogue))
        tensors = []
        for tensor in (module.packed, module.channel):
            tensors.append(-1 if tensor is None else len(held))
            held += [] if tensor is None else [tensor]
        windows = [0] * 9
    return [kernel, *tensors, step.x, step.residual, step.y, *windows]


@functools.cache
def _run_chain() -> Callable[..., int]:
    run: Callable[..., int] = torch.ops.syno._run_chain.default
    return run


class Fast:
    """A compiled network with chains in the place of layers. It shares the network's tensors.

    chains: in it.
    """

    def __init__(self, network: fx.GraphModule) -> None:
        graph = fx.GraphModule(network, copied(network.graph))
        batched = batched_inputs(graph)
        # The input whose first dimension is the batch of any size; None where sizes are fixed.
        self._batched = batched.index(True) if any(batched) else None
        batch = None if self._batched is None else _from_input(graph, self._batched)
        self.chains: list[Chain] = []
        for run in _runs(graph):
            self.chains += _put(graph, run, batch, len(self.chains))
        for node in graph.graph.find_nodes(op="call_module"):
            layer = graph.get_submodule(node.target)
            if isinstance(layer, CompiledLayer):
                setattr(graph, node.target, _Timed(layer))
        graph.graph.eliminate_dead_code()
        graph.delete_all_unused_submodules()
        graph.recompile()
        scratch = max((chain.scratch for chain in self.chains), default=0)
        self._graph = graph
        self._network = network
        self._memory = memory.Memory(memory.plan(graph, (Chain,)), scratch)
        self._watch()

    def _watch(self) -> None:
        """Note what chains cannot see: other tensors in the network, and hooks of its modules."""
        modules = [self._network, *(m for c in self.chains for m in c.modules_of_steps)]
        self._held = [
            (tensors, name, value)
            for module in modules
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
        batch = 1 if self._batched is None else len(inputs[self._batched])
        with self._memory.of_call(batch):
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


def _from_input(graph: fx.GraphModule, number: int) -> torch.SymInt:
    """Takes the batch from that input: a run need not end where a tensor is asked for it."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    batch: torch.SymInt = inputs[number].meta["val"].shape[0]
    for node in list(graph.graph.nodes):
        if node.target is _SIZE and node.args[1] == 0 and str(node.meta["val"]) == str(batch):
            node.args = (inputs[number], 0)
    return batch


def _runs(graph: fx.GraphModule) -> list[list[fx.Node]]:
    """Nodes one after the other that may be chains: only the last one of each is used outside."""
    runs: list[list[fx.Node]] = [[]]
    for node in graph.graph.nodes:
        if _is_part(graph, node):
            runs[-1].append(node)
        elif node.op not in ("placeholder", "get_attr") and node.target is not _SIZE and runs[-1]:
            runs.append([])
    found: list[list[fx.Node]] = []
    while runs:
        run = runs.pop(0)
        inside = set(run)
        escapes = (n for n, node in enumerate(run[:-1]) if not inside.issuperset(node.users))
        cut = next(escapes, None)
        if cut is None:
            found.append(run)
        else:
            runs[:0] = [run[: cut + 1], run[cut + 1 :]]
    return [run for run in found if any(node.op == "call_module" for node in run)]


def _is_part(graph: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_module":
        return isinstance(graph.get_submodule(str(node.target)), (CompiledLayer, Pool))
    return node.op == "call_function" and node.target in _RESHAPES


def _put(
    graph: fx.GraphModule, run: list[fx.Node], batch: torch.SymInt | None, number: int
) -> list[Chain]:
    """Puts a chain in the place of a run; nothing where none can compute it."""
    try:
        values = _Values(batch)
        steps = [_step(graph, node, values) for node in run]
        name = f"syno_chain_{number}"
        chain = Chain(name, values.plan([step for step in steps if step], run[-1]))
    except _NoChain:
        return []
    *rest, last = run
    put_module(graph, last, name, chain, *values.inputs)
    for node in reversed(rest):
        graph.graph.erase_node(node)
    return [chain]


def _step(graph: fx.GraphModule, node: fx.Node, values: _Values) -> _Step | None:
    """The step of a node; None for a reshape, which computes nothing."""
    x = values.of(node.args[0])
    if node.op == "call_function":
        values.name(node, x)
        return None
    module = graph.get_submodule(str(node.target))
    assert isinstance(module, (CompiledLayer, Pool))
    residual = values.of(node.args[1]) if len(node.args) > 1 else -1
    return _Step(module, x, residual, values.add(node))


class _Values:
    """The tensors of a chain by number. inputs: nodes outside of it that it reads."""

    def __init__(self, batch: torch.SymInt | None) -> None:
        self.inputs: list[fx.Node] = []
        self._batch = batch
        self._floats: list[int] = []
        self._numbers: dict[fx.Node, int] = {}

    def add(self, node: fx.Node) -> int:
        """A new value, which a node computes."""
        self._floats.append(_floats(node, self._batch))
        self._numbers[node] = len(self._floats) - 1
        return self._numbers[node]

    def name(self, node: fx.Node, value: int) -> None:
        """Let a node stand for a value that there is."""
        self._numbers[node] = value

    def of(self, node: object) -> int:
        """The value of a node; an input if nothing in the chain computes it."""
        if not isinstance(node, fx.Node):
            raise _NoChain
        if node not in self._numbers:
            self.inputs.append(node)
            return self.add(node)
        return self._numbers[node]

    def plan(self, steps: list[_Step], last: fx.Node) -> _Plan:
        """The chain of these steps, whose result the last node computes."""
        result = self._numbers[last]
        rooms = {self._numbers[node]: (_INPUT, n) for n, node in enumerate(self.inputs)}
        first, *rest = last.meta["val"].shape
        batched = self._batch is not None
        if result in rooms or (batched and str(first) != str(self._batch)):
            raise _NoChain
        rooms[result] = (_OUTPUT, 0)
        inner = [(n, step.y) for n, step in enumerate(steps) if step.y != result]
        until = {v: n for n, step in enumerate(steps) for v in (step.x, step.residual, step.y)}
        whole = [-(-floats // _LINE) * _LINE for floats in self._floats]
        blocks = memory.in_blocks([(n, until[v], whole[v]) for n, v in inner])
        for (_, v), block in zip(inner, blocks.block, strict=True):
            rooms[v] = (_MEMORY, sum(blocks.sizes[:block]))
        values = [(*rooms[v], floats) for v, floats in enumerate(self._floats)]
        shape = tuple(map(int, rest if batched else (first, *rest)))
        return _Plan(len(self.inputs), steps, values, sum(blocks.sizes), shape, batched)


def _floats(node: fx.Node, batch: torch.SymInt | None) -> int:
    """Floats of what a node computes, for each element of a batch of any size."""
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
        raise _NoChain
    count = value.numel()
    if batch is not None:
        ratio = count.node.expr / batch.node.expr if isinstance(count, torch.SymInt) else None
        if ratio is None or not ratio.is_Integer:
            raise _NoChain
        count = int(ratio)
    if not isinstance(count, int) or count < 1:
        raise _NoChain
    return count
