"""The code of every operator of the network library, over all arguments of its schema."""

import math
import operator
import re

import pytest
import torch
from tests.inference.lowering_cases import CASES, SHAPE
from tests.inference.lowering_refused import REFUSED
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

from syno import UserError
from syno.codegen.native import QUICK_FLAGS, find_compiler
from syno.codegen.torch_op import register
from syno.inference.library.load import NetworkLibrary
from syno.inference.library.lower import lower
from syno.inference.library.registry import CODE
from syno.inference.library.source import emit
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.epilogues import ACTIVATIONS
from syno.inference.passes.pools import put_pools

pytestmark = pytest.mark.usefixtures("one_torch_thread")


EMBEDDING = torch.ops.aten.embedding.default  # of token ids, and so in a network of its own


# PyTorch's own values for infinity and NaN depend on the size: its erf of infinity is NaN where it
# computes many at once, and its attention has 0 for rows that are NaN.
FINITE = ("gelu", "attention", "bicubic")


class Eager:
    """Calls operators at once.

    x: the input; y, p, m: others that are computed from it. turned: the input has its channels
    last, and all four are views of what lies in that order.
    """

    def __init__(self, x, turned=False):
        aten = torch.ops.aten
        found = [
            x,
            self(aten.mul.Tensor, x, -0.7),
            self(aten.add.Scalar, self(aten.mul.Tensor, x, x), 0.5),
            self(aten.gt.Scalar, x, 0.1),
        ]
        if turned:
            found = [self(aten.permute.default, each, [0, 3, 1, 2]) for each in found]
        self.x, self.y, self.p, self.m = found

    def __call__(self, target, *args, **kwargs):
        return target(*args, **kwargs)

    def const(self, tensor):
        """A tensor that does not depend on the input."""
        return tensor

    def part(self, results, index):
        """One of several results."""
        return results[index]


class Graph(Eager):
    """Makes a graph of the calls, as `lower` takes it."""

    def __init__(self, x, turned=False):
        self.root = torch.nn.Module()
        self.graph = fx.Graph()
        node = self.graph.placeholder("x")
        node.meta["val"] = x
        super().__init__(node, turned)

    def __call__(self, target, *args, **kwargs):
        node = self.graph.call_function(target, args, kwargs)
        value = fx.node.map_arg
        values = (value(args, lambda n: n.meta["val"]), value(kwargs, lambda n: n.meta["val"]))
        node.meta["val"] = target(*values[0], **values[1])
        return node

    def const(self, tensor):
        """A tensor that does not depend on the input."""
        name = f"held_{len(self.root._buffers)}"
        self.root.register_buffer(name, tensor)
        node = self.graph.get_attr(name)
        node.meta["val"] = tensor
        return node

    def part(self, results, index):
        """One of several results."""
        node = self.graph.call_function(operator.getitem, (results, index))
        node.meta["val"] = results.meta["val"][index]
        return node

    def lowered(self, result):
        """The program of the graph with this result."""
        self.graph.output((result,))
        return lower(fx.GraphModule(self.root, self.graph))


def example(batch):
    return torch.randn(batch, *SHAPE, generator=torch.Generator().manual_seed(3))


def flat(make, value):
    """A result as numbers of one row."""
    if result_type(value) == torch.bool:
        value = make(torch.ops.aten._to_copy.default, value, dtype=torch.float32)
    return make(torch.ops.aten.reshape.default, value, [1, -1])


def result_type(value):
    return value.meta["val"].dtype if isinstance(value, fx.Node) else value.dtype


def test_every_argument_of_every_operator_has_a_case_that_differs_from_its_default():
    seen = {target: set() for target in {*CODE, *ACTIVATIONS} - {EMBEDDING}}
    for case in [*CASES.values(), *(case for _, case in REFUSED.values())]:
        graph = Graph(example(1))
        case(graph)
        for node in graph.graph.nodes:
            if node.target in seen:
                seen[node.target] |= set(NodeArguments(node).unread)
    missing = {
        f"{target}: {argument.name}"
        for target, names in seen.items()
        for argument in target._schema.arguments
        if argument.name not in names
    }
    assert not missing


@pytest.mark.parametrize("turned", [pytest.param(False, marks=pytest.mark.slow), True])
@torch.no_grad()
def test_every_operator_computes_what_torch_does_with_all_of_its_arguments(turned, tmp_path):
    def all_of(make):
        return make(torch.ops.aten.cat.default, [flat(make, f(make)) for f in CASES.values()], 1)

    def placed(x):
        return x.permute(0, 2, 3, 1).contiguous() if turned else x

    graph = Graph(placed(example(1)), turned)
    source = emit(graph.lowered(all_of(graph)), "syno_cases")
    weights = tmp_path / "cases.bin"
    weights.write_bytes(source.weights)
    library = find_compiler().library(source.code, QUICK_FLAGS)
    network = NetworkLibrary(library, "syno_cases", weights)
    special = example(3)
    special[0, :, 0, :6] = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 88.5])
    special[1, 2] = -math.inf
    special[2, :, 1:3, 2:5] = 100.0
    wrong = []
    for x, threads in ((example(2), 1), (example(3), 2), (special, 1)):
        y, begin = torch.from_numpy(network(placed(x).numpy(), threads=threads)), 0
        for name, case in CASES.items():
            alone = [Eager(x[i : i + 1]) for i in range(len(x))]  # of contiguous tensors
            expected = torch.cat([flat(make, case(make)) for make in alone])
            found = y[:, begin : begin + expected.shape[1]]
            begin += expected.shape[1]
            if x is special and name.startswith(FINITE):
                continue
            top = expected[expected.isfinite()].abs().max() if expected.isfinite().any() else 1
            if not torch.allclose(
                found, expected, atol=2e-5 * float(top), rtol=2e-5, equal_nan=True
            ):
                there = ~torch.isclose(
                    found, expected, atol=2e-5 * float(top), rtol=2e-5, equal_nan=True
                )
                wrong.append(f"{name}: {found[there][:4]} instead of {expected[there][:4]}")
        assert begin == y.shape[1]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_computed_is_refused(name):
    message, case = REFUSED[name]
    graph = Graph(example(1))
    with pytest.raises(UserError, match=re.escape(message)):
        graph.lowered(case(graph))


@torch.no_grad()
def test_embeddings_read_token_ids_and_nothing_else_does(tmp_path):
    def made(x):
        graph = Graph.__new__(Graph)
        graph.root, graph.graph = torch.nn.Module(), fx.Graph()
        graph.x = graph.graph.placeholder("x")
        graph.x.meta["val"] = x
        return graph

    tokens = torch.tensor([[0, 4, 2], [1, 1, 3]])
    table = torch.rand(5, 7)
    graph = made(tokens[:1])
    result = graph(EMBEDDING, graph.const(table), graph.x, 2, True, True)
    source = emit(graph.lowered(result), "syno_table")
    weights = tmp_path / "table.bin"
    weights.write_bytes(source.weights)
    library = find_compiler().library(source.code, QUICK_FLAGS)
    found = NetworkLibrary(library, "syno_table", weights)(tokens.numpy())
    assert torch.equal(torch.from_numpy(found), table[tokens])
    aten = torch.ops.aten
    for call in (
        lambda b: b(aten.mul.Tensor, b.x, 1.5),
        lambda b: b(aten.add.Tensor, b.x, b.const(torch.rand(3))),
        lambda b: b(aten.sigmoid.default, b.x),
        lambda b: b(aten.gt.Scalar, b.x, 1),
        lambda b: b(aten._to_copy.default, b.x, dtype=torch.float32),
    ):
        graph = made(tokens[:1])
        with pytest.raises(UserError, match="computes nothing of token ids"):
            graph.lowered(call(graph))
    graph = made(tokens[:1])
    with pytest.raises(UserError, match="the network gives token ids"):
        graph.lowered(graph(aten.slice.Tensor, graph.x, 1, 0, 2))


@torch.no_grad()
def test_pools_of_compiled_networks_heed_all_arguments():
    register()
    graph = Graph(example(1))
    graph.graph.output(tuple(case(graph) for case in CASES.values()))
    made = fx.GraphModule(graph.root, graph.graph)
    pools = put_pools(made)
    assert {pool.kind for pool in pools} == {"average", "maximum"}
    x = example(1)
    for name, found in zip(CASES, made(x), strict=True):
        torch.testing.assert_close(
            found, CASES[name](Eager(x)), atol=1e-5, rtol=1e-5, equal_nan=True, msg=name
        )


class Largest(TorchDispatchMode):
    """The elements of the largest tensor that is computed."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Runs the function."""
        found = function(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.elements = max(self.elements, found.numel())
        return found


@pytest.mark.parametrize("target", ["upsample_bilinear2d", "upsample_nearest2d"])
def test_a_resize_is_lowered_with_memory_in_proportion_to_its_maps(target):
    corners = [False] if target == "upsample_bilinear2d" else []
    graph = Graph(torch.zeros(1, 1, 64, 64))
    call = getattr(torch.ops.aten, target).default
    result = graph(call, graph.x, [256, 256], *corners)
    with Largest() as largest:
        graph.lowered(result)
    assert largest.elements == 256 * 256
