"""Which layers compute on integers, which values are stored as codes, and their ranges."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.codes import LEAST_CODE, MOST_CODE, ROUND, Codes, Contractions
from syno.inference.layer import TracedLayer
from syno.inference.library.lower import RESHAPES, VIEWS
from syno.inference.library.pooling import MAXIMA
from syno.inference.passes.layers import layers_of
from syno.inference.quantization.layers import KEPT, StaysFloat, contractions_of, with_codes
from syno.inference.quantization.ranges import Range
from syno.inference.quantization.words import WORDS, pad_channels
from syno.inference.trace import module_name

_aten = torch.ops.aten
_JOINS = (_aten.cat.default, _aten.concat.default, _aten.concatenate.default, _aten.stack.default)
_MEANS = (
    _aten.mean.dim,
    _aten.adaptive_avg_pool2d.default,
    _aten.avg_pool2d.default,
)
_PADS = (_aten.constant_pad_nd.default, _aten.pad.default)
_MOVES = {operator.getitem, *VIEWS, *RESHAPES, *MAXIMA}


class Chosen:
    """Which layers of a graph are to compute on integers, and which values are stored as codes.

    keep: names of modules whose layers are not to; others: names of further layers, and why.

    sources: of each such layer, the nodes whose values it reads, perhaps in other places; groups:
    of each node that is rounded, one node for all that have the same codes.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        keep: Sequence[str],
        others: Mapping[str, str] | None = None,
    ) -> None:
        self.graph = graph
        self.layers = layers_of(graph)
        self.reasons: dict[str, str] = {}
        self.steps: dict[fx.Node, int] = {}
        self.sources: dict[fx.Node, list[fx.Node]] = {}
        self.groups: dict[fx.Node, fx.Node] = {}
        self._rounded: dict[fx.Node, fx.Node] = {}
        self._weights: dict[fx.Node, list[torch.Tensor]] = {}
        names = {layer.name for layer in self.layers.values()}
        for name in keep:
            if not any(other == name or other.startswith(f"{name}.") for other in names):
                raise UserError(
                    f"no layer to keep in float32 is called '{name}'\n"
                    f"  expected: some of {', '.join(sorted(names)[:20])}"
                )
        for node, layer in self.layers.items():
            try:
                if any(layer.name == name or layer.name.startswith(f"{name}.") for name in keep):
                    raise StaysFloat(KEPT)
                if others and layer.name in others:
                    raise StaysFloat(others[layer.name])
                sources = _sources(node.args[0])
                self.steps[node] = contractions_of(layer)
                self.sources[node] = sources
            except StaysFloat as reason:
                self.reasons[layer.name] = str(reason)
        for node in self.sources:
            pad_channels(graph, node, self.layers[node])
            self.sources[node] = _sources(node.args[0])
            self._join(self.sources[node])
        for node, layer in self.layers.items():
            if node in self.sources and node not in self.groups and _is_map_between(node, layer):
                self._join([node])
        for node in self.sources:  # what a layer adds is stored as its result is
            if node in self.groups and len(node.args) > 1:
                try:
                    self._join(_sources(node.args[1]))
                except StaysFloat:
                    continue

    def group(self, node: fx.Node) -> fx.Node:
        """The node that stands for all with the same codes."""
        while self.groups[node] is not node:
            node = self.groups[node]
        return node

    def _join(self, nodes: Sequence[fx.Node]) -> None:
        for node in nodes:
            self.groups.setdefault(node, node)
        for node in nodes[1:]:
            self.groups[self.group(node)] = self.group(nodes[0])

    def apply(self, recorder: Recorder, *, whole: bool) -> None:
        """Rounds values, and makes layers multiply integers, also with other codes than before.

        whole: as `Range.codes` has it.
        """
        ranges: dict[fx.Node, Range] = {}
        for node in self.groups:
            ranges.setdefault(self.group(node), Range()).join(recorder.ranges[node])
        codes = {node: found.codes(whole=whole) for node, found in ranges.items()}
        for node, sources in self.sources.items():
            layer = self.layers[node]
            layer.codes = None
            layer.set_weights(self._weights.setdefault(node, layer.weights))
            between = [each.codes(whole=whole) for each in recorder.between[node]]
            with_codes(layer, codes[self.group(sources[0])], between)
        for node in self.groups:
            found = codes[self.group(node)]
            if node not in self._rounded:
                self._rounded[node] = _round(self.graph, node, found)
            made = self._rounded[node]
            made.args = (made.args[0], found.scale, found.zero, *made.args[3:])
        self.graph.recompile()


def _round(graph: fx.GraphModule, node: fx.Node, codes: Codes) -> fx.Node:
    """Rounds what a node gives, for all that read it."""
    with graph.graph.inserting_after(node):
        made = graph.graph.call_function(
            ROUND, (node, codes.scale, codes.zero, LEAST_CODE, MOST_CODE)
        )
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)
    return made


def _is_map_between(node: fx.Node, layer: TracedLayer) -> bool:
    """Whether a layer gives a map that is read element by element or channel by channel alone."""
    value = node.meta["val"]
    users = list(node.users)
    return (
        layer.channel == 1
        and value[0, 0].numel() > 1
        and bool(users)
        and all(user.target in _MEANS or _is_pointwise(user) for user in users)
    )


def _is_pointwise(node: fx.Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return node.op == "call_function" and torch.Tag.pointwise in tags


def _sources(node: object) -> list[fx.Node]:
    """The nodes whose values are in that of a node, perhaps in other places, and beside zeros."""
    assert isinstance(node, fx.Node)
    if node.op == "get_attr":
        raise StaysFloat("it reads numbers that the network holds")
    if node.op != "call_function" or WORDS in node.meta:
        return [node]
    if node.target in _JOINS:
        found = [each for part in node.args[0] for each in _sources(part)]  # type: ignore[union-attr]
        return list(dict.fromkeys(found))
    if node.target is operator.getitem and node.args[0].target not in _MOVES:  # type: ignore[union-attr]
        return [node]
    zeros = node.target in _PADS and not any(node.args[2:]) and not node.kwargs
    if node.target in _MOVES or zeros:
        return _sources(node.args[0])
    return [node]


class Recorder(fx.Interpreter):
    """Runs a graph, and keeps what its values were."""

    def __init__(self, graph: fx.GraphModule, chosen: Chosen) -> None:
        super().__init__(graph)
        self.extra_traceback = False
        self.chosen = chosen
        self.ranges = {node: Range() for node in chosen.groups}
        self.between = {
            node: [Range() for _ in range(count - 1)] for node, count in chosen.steps.items()
        }

    def run_node(self, node: fx.Node) -> object:
        """The value of a node."""
        between = self.between.get(node, [])
        if between:

            def visit(number: int, y: torch.Tensor) -> torch.Tensor:
                if number < len(between):
                    between[number].add(y)
                return y

            with Contractions(visit):
                value = super().run_node(node)
        else:
            value = super().run_node(node)
        if node in self.ranges:
            assert isinstance(value, torch.Tensor)
            if not value.isfinite().all():
                raise UserError(
                    "the network computes numbers that are not finite for the calibration data\n"
                    f"  in the module {module_name(node)}\n"
                    "  expected: a trained network, and the inputs that it was trained on"
                )
            self.ranges[node].add(value)
        return value
