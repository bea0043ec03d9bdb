"""Chains: runs of layers in one call, which nobody can tell from the layers by themselves."""

import copy
import gc
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional

import syno
from syno import models
from syno.inference.chains import Chain


class Branches(nn.Module):
    """Values that are used twice, by a layer and outside, reshapes, and two results."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.left = nn.Conv2d(8, 8, 3, padding=1)
        self.right = nn.Conv2d(8, 8, 1)
        self.pool = nn.MaxPool2d(2)
        self.dense = nn.Linear(8 * 16, 10)
        self.rows = nn.Linear(16, 4)

    def forward(self, x):
        x = functional.relu(self.first(x))
        y = functional.relu(self.left(x) + x)
        z = self.right(y) * torch.sigmoid(y.mean())
        maps = self.pool(z + y)
        return self.dense(maps.flatten(1)), self.rows(maps.flatten(2))


def chains(compiled):
    return compiled._fast.chains


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Branches().eval()


@pytest.fixture(scope="module")
def compiled(net):
    return syno.compile(net, torch.randn(1, 3, 8, 8))


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_a_residual_network_is_one_chain():
    net = models.build("resnet-small", classes=10, channels=3, size=16).eval()
    compiled = syno.compile(net, torch.randn(1, 3, 16, 16))
    (chain,) = chains(compiled)
    assert len(chain.modules_of_steps) == 13
    with torch.no_grad():
        for batch in (1, 5, 2):
            x = torch.randn(batch, 3, 16, 16)
            torch.testing.assert_close(compiled(x), net(x), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_chains_and_layers_compute_the_same_bits(compiled, net, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            for batch in (1, 3, 1):
                x = torch.randn(batch, 3, 8, 8)
                for fast, slow in zip(compiled(x), compiled.network(x), strict=True):
                    assert torch.equal(fast, slow)
                same(compiled(x), net(x))
    finally:
        torch.set_num_threads(before)


def test_only_the_last_value_of_a_chain_is_used_outside(compiled):
    graph = compiled._fast._graph.graph
    assert len(chains(compiled)) > 1
    for node in graph.nodes:
        assert node.target not in compiled.network._modules, "a layer that is in no chain"


@torch.no_grad()
def test_inputs_in_any_layout(compiled, net):
    x = torch.randn(2, 3, 8, 8)
    for given in (
        x.to(memory_format=torch.channels_last),
        x.transpose(2, 3),
        x.expand(2, 3, 8, 8)[:1].expand(4, 3, 8, 8),
        torch.randn(2, 3, 8, 16)[..., ::2],
    ):
        same(compiled(given), net(given))


@torch.no_grad()
def test_a_batch_of_none(compiled, net):
    assert [list(y.shape) for y in compiled(torch.zeros(0, 3, 8, 8))] == [[0, 10], [0, 8, 4]]


@torch.no_grad()
def test_hooks_see_the_layers(compiled):
    seen = []
    layer = next(iter(compiled.network.children()))
    x = torch.randn(1, 3, 8, 8)
    handle = layer.register_forward_hook(lambda module, given, y: seen.append(y.shape))
    found = compiled(x)
    handle.remove()
    same(compiled(x), found)
    assert seen == [(1, 8, 8, 8)]


@torch.no_grad()
def test_weights_that_are_exchanged_are_used(net):
    compiled = syno.compile(net, torch.randn(1, 3, 8, 8))
    x = torch.randn(1, 3, 8, 8)
    before = compiled(x)
    layer = next(iter(compiled.network.children()))
    layer.channel += 1.0  # in place
    changed = compiled(x)
    assert not torch.allclose(changed[0], before[0])
    layer.channel = layer.channel - 1.0  # another tensor
    same(compiled(x), before)


def test_gradients_are_refused(compiled):
    x = torch.randn(1, 3, 8, 8)
    assert compiled(x)[0].requires_grad is False
    with pytest.raises(RuntimeError, match="requires a gradient"):
        compiled(x.requires_grad_())


@torch.no_grad()
def test_wrong_inputs_are_refused(compiled):
    with pytest.raises(syno.UserError, match=r"use x\.float\(\)"):
        compiled(torch.zeros(1, 3, 8, 8, dtype=torch.float64))
    with pytest.raises(syno.UserError, match="another shape"):
        compiled(torch.zeros(1, 3, 8, 9))
    with pytest.raises(syno.UserError, match="another shape"):
        compiled(torch.zeros(3, 8, 8))


@torch.no_grad()
def test_copies_have_chains_of_their_own(compiled, net):
    x = torch.randn(2, 3, 8, 8)
    expected = compiled(x)
    for twin in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        layer = next(iter(twin.network.children()))
        assert layer is chains(twin)[0].modules_of_steps[0]
        assert twin._fast.takes((x,))
        same(twin(x), expected)
        layer.packed.zero_()[:5] = next(iter(compiled.network.children())).packed[:5]
        assert not torch.allclose(twin(x)[0], expected[0])
    same(compiled(x), expected)


def _seconds(compiled, x):
    """The seconds in layers, which are no more than those of the call."""
    began = time.perf_counter()
    seconds = compiled.layer_seconds(x)
    assert 0.0 < seconds < time.perf_counter() - began
    return seconds


@torch.inference_mode()
def test_seconds_in_layers_are_a_part_of_a_call(compiled):
    assert _seconds(compiled, torch.randn(4, 3, 8, 8)) < 1.0


def test_seconds_in_layers_belong_to_the_call(compiled):
    x = torch.randn(4, 3, 8, 8)
    stop = threading.Event()

    @torch.inference_mode()
    def measure(_):
        return [_seconds(compiled, x) for _ in range(200)]

    @torch.inference_mode()
    def compute():
        while not stop.is_set():
            compiled(x)

    with ThreadPoolExecutor(5) as pool:
        others = pool.submit(compute)
        try:
            found = list(pool.map(measure, range(4)))
        finally:
            stop.set()
        others.result()
    assert all(len(each) == 200 for each in found)


class Rows(nn.Module):
    """A layer whose first dimension is no batch, and which no chain can hold."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 6)

    def forward(self, x):
        """Of all rows of all samples."""
        return self.layer(x.flatten(0, 1))


def test_seconds_in_layers_outside_of_chains_count():
    net = Rows().eval()
    compiled = syno.compile(net, torch.randn(2, 3, 8))
    assert not chains(compiled)
    with torch.inference_mode():
        x = torch.randn(5, 3, 8)
        torch.testing.assert_close(compiled(x), net(x), atol=1e-5, rtol=1e-4)
        _seconds(compiled, x)


def test_seconds_that_cannot_be_measured_are_an_error(compiled):
    hook = compiled.network.register_forward_hook(lambda *_: None)
    try:
        with pytest.raises(syno.UserError, match="cannot be measured in this call"):
            compiled.layer_seconds(torch.randn(4, 3, 8, 8))
    finally:
        hook.remove()


def refused(numbers, held=()):
    with pytest.raises(RuntimeError, match="a chain of kernels"):
        torch.ops.syno._add_chain(numbers, list(held))


def test_numbers_that_are_no_chain_are_refused(compiled):
    refused([])
    refused([1, 0, 1, 0, 1, 5])  # an input that does not exist
    refused([1, 4, 2, 0, 0, 5, 1, 0, 5])  # a value outside of the memory
    refused([1, 0, 1, 0, 0, 5])  # without a result
    pool = [0, -1, -1, 0, -1, 1, 2, 2, 2, 2, 0, 0, 4, 4, 0]
    values = [1, 0, 2, 0, 0, 16, 2, 0, 4]
    number = torch.ops.syno._add_chain(values + pool, [])
    x, y = torch.randn(2, 1, 4, 4), torch.empty(2, 1, 2, 2)
    torch.ops.syno._run_chain([x], torch.empty(0), y, number, 2, False)
    assert torch.equal(y, functional.max_pool2d(x, 2))
    for given, out, batch in (
        ([x], torch.empty(2, 1, 2, 1), 2),
        ([x], y, 3),
        ([x, x], y, 2),
        ([x.double()], y, 2),
    ):
        with pytest.raises(RuntimeError):
            torch.ops.syno._run_chain(given, torch.empty(0), out, number, batch, False)
    torch.ops.syno._drop_chain(number)
    with pytest.raises(RuntimeError, match="no such chain"):
        torch.ops.syno._run_chain([x], torch.empty(0), y, number, 2, False)
    refused([*values[:-1], 5, *pool])  # a result of another size
    refused([*values, *pool[:-3], 4, 0, 0])  # windows in a map of no width
    refused(values + pool[:-1])
    first = chains(compiled)[0].modules_of_steps[0]
    kernel = torch.ops.syno._kernel_at(first.key, first.epilogue)
    step = [kernel, 0, 1, 0, -1, 1, *[0] * 9]
    sizes = [1, 0, 2, 0, 0, 192, 2, 0, 512]
    refused(sizes + step, [first.packed[:-1].clone(), first.channel])
    refused(sizes + step, [first.packed, first.channel[:-1].clone()])
    with pytest.raises(RuntimeError, match="weights for another kernel"):
        torch.ops.syno._add_chain(sizes + step, [torch.zeros_like(first.packed), first.channel])
    refused([*sizes[:5], 191, *sizes[6:], *step], [first.packed, first.channel])


def test_a_chain_that_is_gone_is_dropped_when_another_is_made(net, compiled):
    gone = syno.compile(net, torch.randn(1, 3, 8, 8))
    with torch.no_grad():
        gone(torch.randn(1, 3, 8, 8))
    number = chains(gone)[0]._number
    assert isinstance(chains(gone)[0], Chain)
    del gone
    gc.collect()
    twin = copy.deepcopy(compiled)
    with torch.no_grad():
        twin(torch.randn(1, 3, 8, 8))
    with pytest.raises(RuntimeError, match="no such chain"):
        torch.ops.syno._run_chain([], torch.empty(0), torch.empty(0), number, 1, False)


def test_a_chain_that_ends_while_torch_traces_leaves_no_trace(net):
    """The garbage collector runs at any moment."""
    used = [syno.compile(net, torch.randn(1, 3, 8, 8))]
    with torch.no_grad():
        used[0](torch.randn(1, 3, 8, 8))

    class Ends(nn.Module):
        def forward(self, x):
            used.clear()
            gc.collect()
            return x * 2

    batch = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(Ends(), (torch.zeros(3, 2),), dynamic_shapes=batch, strict=False)
    called = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert called == [torch.ops.aten.mul.Tensor]
