"""The places of samples in a graph, shown node by node."""

from __future__ import annotations

import operator

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.decompose import draws
from syno.inference.samples.place import Meets, OperatorCall, SamplePlace, batch_of, called, factor
from syno.inference.samples.rules import place_of_result
from syno.inference.trace import attribute, batched_inputs, module_name, shape_of


def places_of_results(graph: fx.GraphModule) -> list[SamplePlace | None]:
    """Where the samples lie in the results of a graph that was traced for a batch of any size.

    None for a result that has no samples.

    UserError naming the module where samples may meet.
    """
    found = _Places(graph)
    for node in graph.graph.nodes:
        try:
            if node.op == "output":
                return [found.of(n) for n in node.all_input_nodes if _is_tensor(n)]
            found.visit(node)
        except Meets as reason:
            raise UserError(
                f"the samples of a batch may depend on each other: {reason}\n"
                f"  in the module {module_name(node)}, at {node.target}\n"
                "  expected: a network that computes each sample by itself\n"
                "  what to do: use syno.compile, or the format torch-export, onnx or aoti"
            ) from None
    raise AssertionError("a graph without an output")


def places_of_values(graph: fx.GraphModule) -> dict[fx.Node, SamplePlace | None]:
    """Where the samples lie in the values of a graph with layers; None for a value without any.

    A value is missing where samples may meet in it. What is computed from it is seen as of other
    samples, if its first dimension has the size of the batch.
    """
    found, known = _Places(graph), {}
    for node in graph.graph.nodes:
        if node.op == "output":
            break
        try:
            found.visit(node)
            known[node] = found.of(node)
        except Meets:
            found.begin(node)
    return known


def readers_of_results(graph: fx.GraphModule) -> list[frozenset[int]] | None:
    """The numbers of the inputs that each result depends on.

    None for a graph with one input of any batch size, and where samples may meet.
    """
    if sum(batched_inputs(graph)) < 2:
        return None
    try:
        if None in places_of_results(graph):
            return None
    except UserError:
        return None
    read: dict[fx.Node, frozenset[int]] = {}
    inputs = 0
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            read[node] = frozenset({inputs})
            inputs += 1
        elif node.op == "output":
            break
        else:
            read[node] = frozenset().union(*(read[each] for each in node.all_input_nodes))
    return [read[each] for each in node.all_input_nodes if _is_tensor(each)]


class _Places:
    """Places of samples, node by node in the order of a graph."""

    def __init__(self, graph: fx.GraphModule) -> None:
        self._batch = batch_of(graph)
        self._places: dict[fx.Node, SamplePlace] = {}
        self._unknown: set[fx.Node] = set()
        self._constants = _Constants(graph, self._batch)

    def of(self, node: fx.Node) -> SamplePlace | None:
        """The place of the samples in a tensor; None where it has none."""
        if node not in self._places and node in self._constants.sized:
            return self._constants.place(node)
        return self._places.get(node)

    def begin(self, node: fx.Node) -> None:
        """Take the elements of the first dimension of a node to be samples, or its values to have
        no place."""
        value = node.meta.get("val")
        sizes = list(value.shape[:1]) if isinstance(value, torch.Tensor) else []
        if [str(size) for size in sizes] == [str(self._batch)]:
            self._places[node] = SamplePlace(0)
        else:
            self._unknown.add(node)

    def visit(self, node: fx.Node) -> None:
        """Find the place of a node whose arguments have theirs."""
        if not self._unknown.isdisjoint(node.all_input_nodes):
            raise Meets("samples may have met before")
        if node.op == "placeholder" and isinstance(node.meta["val"].shape[0], torch.SymInt):
            self._places[node] = SamplePlace(0)
        if node.op == "call_module":
            self._places[node] = self._of_layer(node)
        if node.op != "call_function" or node.meta.get("val") is None or self._constants.add(node):
            return
        if node.target is operator.getitem:
            whole = node.args[0]
            if whole in self._places:
                self._places[node] = self._places[whole]  # type: ignore[index]
            return
        own = {n: place for n in node.all_input_nodes if (place := self.of(n)) is not None}
        call = OperatorCall(node, own, _arguments(node), self._batch)
        if own:
            self._places[node] = place_of_result(call)
            _check(call, self._places[node])
        elif self._constants.is_sized(node):
            raise Meets("a value depends on the size of the batch")

    def _of_layer(self, node: fx.Node) -> SamplePlace:
        """The place in the result of a layer, which computes each row of the first dimension."""
        places = {self.of(each) for each in node.all_input_nodes}
        rows = factor(node.meta["val"].shape[0], self._batch)
        if places != {SamplePlace(0, 1, rows)}:
            raise Meets("its samples are not in the first dimension")
        return SamplePlace(0, 1, rows)


class _Constants:
    """Tensors that no input has a part in. Some depend on the size of the batch.

    Those must have one value for all samples, which is that of a batch of one; a few sizes stand
    for all. sized: the tensors that do.
    """

    _SIZES = (1, 2, 3, 7)

    def __init__(self, graph: fx.GraphModule, batch: torch.SymInt) -> None:
        self.sized: set[fx.Node] = set()
        self._graph = graph
        self._batch = batch
        self._sizes: set[fx.Node] = set()
        self._constant: set[fx.Node] = set()
        self._values: dict[tuple[fx.Node, int], object] = {}

    def add(self, node: fx.Node) -> bool:
        """Whether a call gives a size or a constant, which is noted."""
        if isinstance(node.meta["val"], (int, float, bool, torch.SymInt, torch.SymFloat)):
            self._sizes.add(node)
            return True
        tensors = [n for n in node.all_input_nodes if n not in self._sizes]
        if not all(n.op == "get_attr" or n in self._constant for n in tensors):
            return False
        self._constant.add(node)
        if self.is_sized(node):
            self.sized.add(node)
        return True

    def is_sized(self, node: fx.Node) -> bool:
        """Whether a call has the size of the batch, or what depends on it, as an argument."""
        return any(n in self._sizes or n in self.sized for n in node.all_input_nodes)

    def place(self, node: fx.Node) -> SamplePlace | None:
        """The place of the samples, each of which is the same; None for a tensor without any."""
        shape = shape_of(node)
        factors = {d: f for d, size in enumerate(shape) if (f := factor(size, self._batch))}
        if len(factors) > 1:
            raise Meets("a constant has several dimensions as large as the batch")
        dim, inner = next(iter(factors.items()), (0, 0))
        one = self._tensor(node, 1)
        for size in self._SIZES:
            copies = [size if d == dim and factors else 1 for d in range(len(shape))]
            if not torch.equal(self._tensor(node, size), one.repeat(copies)):
                raise Meets("a constant depends on the sample or on the size of the batch")
        return SamplePlace(dim, 1, inner) if factors else None

    def _tensor(self, node: fx.Node, batch: int) -> torch.Tensor:
        value = self._value(node, batch)
        if not isinstance(value, torch.Tensor):
            raise Meets("it takes what is no tensor")
        return value

    def _value(self, node: fx.Node, batch: int) -> object:
        if node in self._sizes:
            size = node.meta["val"]
            if not isinstance(size, torch.SymInt):
                return size
            return int(size.node.expr.subs(self._batch.node.expr, batch))
        if node.op == "get_attr":
            return attribute(self._graph, str(node.target))
        key = node, batch if node in self.sized else 0
        if key not in self._values:
            if draws(node):
                raise Meets("it draws random numbers")
            known = {n: self._value(n, batch) for n in node.all_input_nodes}
            with torch.no_grad():
                self._values[key] = called(node, known)
        return self._values[key]


def _check(call: OperatorCall, place: SamplePlace) -> None:
    """The result has as many elements of each sample as its place says, and no other batch."""
    for dim, size in enumerate(call.shape):
        expected = place.outer * place.inner if dim == place.dim else 0
        if factor(size, call.batch) != expected:
            raise Meets(f"dimension {dim} of its result has the size {size}")
    if not -1 < place.dim < len(call.shape):
        raise Meets("its result has no batch")


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _arguments(node: fx.Node) -> dict[str, object]:
    """The arguments of a call by their names; those that are not given have their defaults."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {}
    found = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    names = [argument.name for argument in schema.arguments]
    return found | dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
