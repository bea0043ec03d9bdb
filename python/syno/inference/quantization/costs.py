"""What each layer of a network takes, and what it changes, in each number format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx, nn
from torch.utils._pytree import tree_leaves

from syno._util.inputs import Inputs, arguments
from syno._util.network_copy import copy_network
from syno._util.trial_calls import relative_square
from syno.inference.layer import TracedLayer
from syno.inference.library.built import built
from syno.inference.library.load import NetworkLibrary, StepSeconds
from syno.inference.passes.layers import layers_of
from syno.inference.precision import BFLOAT16, FLOAT32, INT8
from syno.inference.quantization.network import QuantizedNetwork, quantized

# Calls of each library that the times of its steps are the least of.
_CALLS = 24
# The network that conversions are timed in: layers [N, C, H, W] of which the middle one is float.
_CHANNELS, _SIZE = 64, 28


@dataclass(frozen=True)
class LayerCosts:
    """The layers of a network, by name, in the order of the graph.

    seconds: of a call of each in each format that it has, on this machine; errors: the mean square
    of what the layer alone changes in the network's results, as a share of that of the results;
    conversions: of two layers by name, the seconds that pass between them where just one of them
    multiplies integers.
    """

    seconds: Mapping[str, Mapping[str, float]]
    errors: Mapping[str, Mapping[str, float]]
    conversions: Mapping[tuple[str, str], float]


def costs_of(
    graph: fx.GraphModule,
    uniform: Mapping[str, QuantizedNetwork],
    libraries: Mapping[str, NetworkLibrary],
    samples: Sequence[tuple[torch.Tensor, ...]],
    threads: int,
) -> LayerCosts:
    """The costs of the layers of a network.

    graph: in float32, with the layers of the network in INT8; uniform, libraries: by format, the
    network with it in every layer that has it; samples: [1, ...] of its inputs.
    """
    errors = _errors(graph, uniform[INT8], samples)
    times = step_seconds(libraries, samples[0], threads)
    seconds: dict[str, dict[str, float]] = {name: {} for name in errors}
    for form, network in uniform.items():
        names = [layer.name for layer in layers_of(network.graph).values()]
        of_layers = [step.seconds for step in times[form] if step.layer]
        for name, spent in zip(names, of_layers, strict=True):
            if form in errors[name]:
                seconds[name][form] = seconds[name].get(form, 0.0) + spent
    per_element = _conversion_seconds(threads)
    elements = _between(graph)
    conversions = {pair: per_element * count for pair, count in elements.items()}
    return LayerCosts(seconds, errors, conversions)


# --- times ---------------------------------------------------------------------------------------


def step_seconds(
    libraries: Mapping[str, NetworkLibrary], x: Inputs, threads: int, *, calls: int = _CALLS
) -> dict[str, list[StepSeconds]]:
    """Of each library its steps, with the least of their seconds in so many calls in turns."""
    arrays = [each.numpy() for each in arguments(x)]
    found: dict[str, list[StepSeconds]] = {}
    for _ in range(calls):
        for name, library in libraries.items():
            library(*arrays, threads=threads)
            steps = library.step_seconds(*arrays, threads=threads)
            pairs = zip(steps, found.get(name, steps), strict=True)
            found[name] = [min(both, key=lambda step: step.seconds) for both in pairs]
    return found


def _conversion_seconds(threads: int) -> float:
    """What it takes to turn a number into a code, or back, in a map of usual size."""
    c = _CHANNELS
    net = nn.Sequential(*(nn.Conv2d(c, c, 1) for _ in range(3))).eval()
    x = torch.randn(1, c, _SIZE, _SIZE, generator=torch.Generator().manual_seed(0))
    made, _ = quantized(net, [x], keep=["1"])
    steps = step_seconds({INT8: built(made.graph, INT8)}, x, threads)[INT8]
    # One conversion is that of the input, one stands before the middle layer, and one behind it.
    apart = sum(step.seconds for step in steps if not step.layer)
    return apart / (3 * x.numel())


def _between(graph: fx.GraphModule) -> dict[tuple[str, str], int]:
    """Of two layers, of which one reads what the other gave, how many elements pass."""
    layers = layers_of(graph)
    found: dict[tuple[str, str], int] = {}
    for node, layer in layers.items():
        for operand in node.all_input_nodes:
            for source in _layers_before(operand, layers):
                pair = layers[source].name, layer.name
                count = min(_elements(source), _elements(operand))
                if pair[0] != pair[1]:
                    found[pair] = found.get(pair, 0) + count
    return found


def _elements(node: fx.Node) -> int:
    return sum(x.numel() for x in tree_leaves(node.meta["val"]) if isinstance(x, torch.Tensor))


def _layers_before(node: fx.Node, layers: Mapping[fx.Node, TracedLayer]) -> list[fx.Node]:
    """The layers whose results reach a node without another layer between them."""
    waiting, seen, found = [node], {node}, []
    while waiting:
        node = waiting.pop()
        if node in layers:
            found.append(node)
            continue
        for before in node.all_input_nodes:
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return found


# --- errors --------------------------------------------------------------------------------------


def _errors(
    graph: fx.GraphModule, made: QuantizedNetwork, samples: Sequence[tuple[torch.Tensor, ...]]
) -> dict[str, dict[str, float]]:
    """Of each layer the error of the network in which it alone has a format."""
    integers = {str(n.target): layer for n, layer in layers_of(made.graph).items()}
    layers = layers_of(graph)
    forms = {node: _forms(layer, integers[str(node.target)]) for node, layer in layers.items()}
    found = {layer.name: {FLOAT32: 0.0} for layer in layers.values()}
    with torch.no_grad():
        for sample in samples:
            run = _Changed(graph, sample)
            for node, layer in layers.items():
                of_layer = found[layer.name]
                for form, other in forms[node].items():
                    share = run.error(node, other) / len(samples)
                    of_layer[form] = of_layer.get(form, 0.0) + share
    return found


def _forms(layer: TracedLayer, integers: TracedLayer) -> dict[str, TracedLayer]:
    """A layer in the formats that it has beside float32."""
    rounded = copy_network(layer)
    rounded.multiply_bfloat16()
    found = {BFLOAT16: rounded}
    return found if integers.codes is None else {**found, INT8: integers}


class _Changed(fx.Interpreter):
    """The values of a graph for a sample, and its results where a layer computes otherwise."""

    def __init__(self, graph: fx.GraphModule, sample: tuple[torch.Tensor, ...]) -> None:
        super().__init__(graph, garbage_collect_values=False)
        self.nodes = list(graph.graph.nodes)
        self.places = {node: place for place, node in enumerate(self.nodes)}
        self.results = self.run(*sample)
        self.values = dict(self.env)

    def error(self, node: fx.Node, layer: TracedLayer) -> float:
        """The relative mean square of what another layer in the place of a node changes."""
        self.env = dict(self.values)
        x, *residual = (self.values[operand] for operand in node.args)  # type: ignore[index]
        if layer.codes is not None:
            x = layer.codes.x.rounded(x)
        self.env[node] = layer(x, *residual)
        changed = {node}
        results: object = self.results
        for other in self.nodes[self.places[node] + 1 :]:
            if changed.isdisjoint(other.all_input_nodes):
                continue
            changed.add(other)
            self.env[other] = self.run_node(other)
            if other.op == "output":
                results = self.env[other]
        return relative_square(results, self.results)
