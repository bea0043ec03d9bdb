"""Which parts of a network one call computes each.

A *region* is a set of nodes of a graph that a program (`library/lower.py`) has code for, and whose
results do not depend on each other through other nodes. What lies between regions stays PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.layer import TracedLayer
from syno.inference.library.lower import IDS, VIEWS, lower, nodes_with_code
from syno.inference.library.program import Program
from syno.inference.samples.place import Meets, SamplePlace, batch_of, factor
from syno.inference.samples.proof import places_of_values
from syno.inference.samples.single import for_one
from syno.inference.trace import attribute, batched_inputs, copied

_SIZE = torch.ops.aten.sym_size.int


@dataclass(frozen=True)
class Region:
    """A part of a graph.

    nodes: its own; inputs, outputs: nodes outside of it that it reads, and its own that others
    read; program: what computes them; layers: the names of the modules of its layers; constants:
    of each of its constants the name of the module whose scale and bias it is, or None. shapes: of
    the outputs for one sample; sized: the number of an input with samples and its first dimension
    for one, or None where sizes are fixed.
    """

    nodes: list[fx.Node]
    inputs: list[fx.Node]
    outputs: list[fx.Node]
    program: Program
    layers: list[str]
    constants: list[str | None]
    shapes: list[tuple[int, ...]]
    sized: tuple[int, int] | None


def own_copy(network: fx.GraphModule) -> fx.GraphModule:
    """A graph of the same modules whose sizes are those of its inputs.

    A region keeps its values to itself; so nothing may ask one of them for its size.
    """
    graph = fx.GraphModule(network, copied(network.graph))
    batched = batched_inputs(graph)
    if not any(batched):
        return graph
    batch = batch_of(graph)
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    source = inputs[batched.index(True)]
    with graph.graph.inserting_after(inputs[-1]):
        size = graph.graph.call_function(_SIZE, (source, 0))
    size.meta["val"] = batch
    for node in list(graph.graph.nodes):
        if node.target is not _SIZE or node is size:
            continue
        ratio = node.meta["val"].node.expr / batch.node.expr
        if ratio == 1:
            node.replace_all_uses_with(size)
        elif ratio.is_Integer:
            node.target, node.args = operator.mul, (size, int(ratio))
    graph.graph.eliminate_dead_code()
    return graph


def regions_of(graph: fx.GraphModule, layers: Mapping[str, TracedLayer]) -> list[Region]:
    """The regions of a graph that `own_copy` made; none where it changes tensors in place.

    layers: by the names of their modules, those whose kernels a program may call.
    """
    if any(_changes(node) for node in graph.graph.nodes):
        return []
    single: dict[fx.Node, fx.Node] = {}
    one = fx.GraphModule(graph, copied(graph.graph, single))
    batch = batch_of(graph) if any(batched_inputs(graph)) else None
    places: dict[fx.Node, SamplePlace | None] = dict.fromkeys(graph.graph.nodes)
    if batch is not None:
        places = places_of_values(graph)
        try:
            for_one(one)
        except (UserError, Meets):
            # A value has another number of dimensions for one sample, or a size of its own.
            return []
    code = nodes_with_code(one, layers)
    parts = _Parts(graph, {node for node in places if single.get(node) in code}, places, batch)
    channels = {
        (held.data_ptr(), held.numel()): name
        for name, layer in layers.items()
        if (held := layer.held_channel) is not None
    }
    names = {id(layer): name for name, layer in layers.items()}
    found = []
    for nodes in parts.by_level():
        inputs, outputs = parts.boundary(nodes)
        part = _extracted(one, *([single[n] for n in each] for each in (nodes, inputs, outputs)))
        shared = {single[n].name for n in inputs if parts.shared(n)}
        sized = None
        if batch is not None:
            number = next(n for n, node in enumerate(inputs) if not parts.shared(node))
            sized = number, factor(inputs[number].meta["val"].shape[0], batch)
        shapes = [tuple(map(int, single[n].meta["val"].shape)) for n in outputs]
        program = lower(part, layers=layers, shared=shared)
        used = [names[id(called.layer)] for called in program.layers]
        named = [channels.get((c.data_ptr(), c.numel())) for c in program.constants]
        found.append(Region(nodes, inputs, outputs, program, used, named, shapes, sized))
    return found


def with_regions(
    graph: fx.GraphModule, regions: Sequence[Region], modules: Mapping[str, torch.nn.Module]
) -> fx.GraphModule:
    """The graph with a call of a module in the place of each region. modules: by their names."""
    first = {region.nodes[0]: (region, name) for region, name in zip(regions, modules, strict=True)}
    inside = {node for region in regions for node in region.nodes}
    level = _levels(graph, inside)
    made = fx.Graph(tracer_cls=graph.graph._tracer_cls)
    values: dict[fx.Node, fx.Node] = {}
    held: dict[str, object] = dict(modules)
    output = graph.graph.output_node()
    for node in sorted((n for n in graph.graph.nodes if n is not output), key=level.__getitem__):
        if node in first:
            region, name = first[node]
            call = made.call_module(name, tuple(values[each] for each in region.inputs))
            for number, each in enumerate(region.outputs):
                values[each] = made.call_function(operator.getitem, (call, number))
        elif node not in inside and not (node.op == "get_attr" and inside.issuperset(node.users)):
            values[node] = made.node_copy(node, values.__getitem__)
            if node.op == "call_module":
                held[str(node.target)] = graph.get_submodule(str(node.target))
            elif node.op == "get_attr":
                held[str(node.target)] = attribute(graph, str(node.target))
    made.node_copy(output, values.__getitem__)
    made._codegen = graph.graph._codegen
    return fx.GraphModule(held, made)


class _Parts:
    """Which nodes are in regions.

    nodes: those that may be; places: of the samples in values, which a value of unknown place
    lacks; batch: its size, None where sizes are fixed.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        nodes: set[fx.Node],
        places: Mapping[fx.Node, SamplePlace | None],
        batch: torch.SymInt | None,
    ) -> None:
        self._graph = graph
        self._nodes = nodes
        self._places = places
        self._batch = batch
        while self._without_bad_boundaries() or self._without_idle_regions():
            pass

    def by_level(self) -> list[list[fx.Node]]:
        """The nodes of each region, in the order of the graph; a region only reads earlier ones."""
        level = _levels(self._graph, self._nodes)
        found: dict[int, list[fx.Node]] = {}
        for node in self._graph.graph.nodes:
            if node in self._nodes:
                found.setdefault(level[node], []).append(node)
        return [nodes for _, nodes in sorted(found.items())]

    def boundary(self, nodes: list[fx.Node]) -> tuple[list[fx.Node], list[fx.Node]]:
        """What a region reads, and what others read of it."""
        own = set(nodes)
        read = dict.fromkeys(n for node in nodes for n in _tensors(node) if n not in own)
        outputs = [node for node in nodes if not own.issuperset(node.users)]
        return list(read), outputs

    def shared(self, node: fx.Node) -> bool:
        """Whether a value that a region reads is the same for all samples."""
        return self._batch is None or self._places[node] is None

    def _without_bad_boundaries(self) -> bool:
        """Take nodes out whose values cannot be handed over, and views, which cost PyTorch nothing;
        whether there were any."""
        level = _levels(self._graph, self._nodes)

        def outside(node: fx.Node, other: fx.Node) -> bool:
            return other not in self._nodes or level[other] != level[node]

        def bad(node: fx.Node) -> bool:
            if any(outside(node, each) and not self._read(each) for each in _tensors(node)):
                return True
            if not any(outside(node, user) for user in node.users):
                return False
            view = node.target in VIEWS and all(user not in self._nodes for user in node.users)
            return view or not self._written(node)

        found = {node for node in self._nodes if bad(node)}
        self._nodes -= found
        return bool(found)

    def _without_idle_regions(self) -> bool:
        """Take regions out that have no layer, or read nothing that says how many samples there
        are; whether there were any."""
        idle = [nodes for nodes in self.by_level() if not self._is_of_use(nodes)]
        for nodes in idle:
            self._nodes -= set(nodes)
        return bool(idle)

    def _is_of_use(self, nodes: list[fx.Node]) -> bool:
        inputs, _ = self.boundary(nodes)
        sized = self._batch is None or any(not self.shared(node) for node in inputs)
        return sized and any(node.op == "call_module" for node in nodes)

    def _read(self, node: fx.Node) -> bool:
        """Whether a region can read a value of others."""
        known = _has_elements(node, torch.float32, *IDS)
        return known and node in self._places and self._in_rows(node, also_shared=True)

    def _written(self, node: fx.Node) -> bool:
        """Whether others can read a value of a region."""
        return _has_elements(node, torch.float32) and self._in_rows(node, also_shared=False)

    def _in_rows(self, node: fx.Node, also_shared: bool) -> bool:
        """Whether samples lie one after the other, or there are none."""
        if self._batch is None:
            return True
        place = self._places[node]
        return also_shared if place is None else (place.dim, place.outer) == (0, 1)


def _levels(graph: fx.GraphModule, nodes: set[fx.Node]) -> dict[fx.Node, int]:
    """Even numbers for what is PyTorch, odd ones for nodes of regions. What a node reads has a
    lower number, or the same one and is of the same kind."""
    level: dict[fx.Node, int] = {}
    for node in graph.graph.nodes:
        own = node in nodes
        before = [
            level[each] + ((each in nodes) != own)
            for each in node.all_input_nodes
            if each.op != "get_attr" or not own
        ]
        level[node] = max(before, default=0) if not own else max([1, *before])
    return level


def _tensors(node: fx.Node) -> list[fx.Node]:
    """The values that a node reads, without constants and sizes."""
    return [
        each
        for each in node.all_input_nodes
        if each.op != "get_attr" and not isinstance(each.meta.get("val"), (int, torch.SymInt))
    ]


def _has_elements(node: fx.Node, *types: torch.dtype) -> bool:
    """Whether a node gives a tensor of one of these types, and not without elements."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dtype not in types:
        return False
    return 0 not in [size for size in value.shape if isinstance(size, int)]


def _changes(node: fx.Node) -> bool:
    """Whether a node changes a tensor."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _extracted(
    one: fx.GraphModule, nodes: list[fx.Node], inputs: list[fx.Node], outputs: list[fx.Node]
) -> fx.GraphModule:
    """A graph of these nodes alone, which gives a tuple."""
    part, inside = fx.Graph(), set(nodes)
    values: dict[fx.Node, fx.Node] = {}
    for node in inputs:
        values[node] = part.placeholder(node.name)
        values[node].meta = dict(node.meta)
    for node in one.graph.nodes:
        if node in inside or (node.op == "get_attr" and not inside.isdisjoint(node.users)):
            values[node] = part.node_copy(node, values.__getitem__)
    part.output(tuple(values[node] for node in outputs))
    return fx.GraphModule(one, part)
