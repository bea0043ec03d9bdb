"""Emitted modules as networks use them: compiled, with channels last, under autocast."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from syno.codegen.emitters import Case
from syno.codegen.verify.random_cases import random_case
from syno.operators import zoo
from syno.operators.emitted import load_module

BATCHES = (1, 3, 8)


def cases(count: int, rank: int | None = None) -> list[tuple[str, Case]]:
    """The zoo, and random operators with a batch; with inputs of one rank only, if asked for."""
    found = [(name, Case(zoo.load(name), zoo.binding(name))) for name in zoo.names()]
    seed = 500
    while len(found) < count:
        case = random_case(seed).case
        if case.operator.batch is not None:
            found.append((f"seed {seed}", case))
        seed += 1
    return [(n, c) for n, c in found if rank in (None, len(c.operator.input))]


def module(case: Case) -> torch.nn.Module:
    torch.manual_seed(0)
    return load_module(case.operator.source(case.binding), keep=False)()


def inputs(case: Case, batch: int) -> torch.Tensor:
    shape = case.operator.shapes(case.binding).input
    return torch.randn(batch, *shape[1:])


def with_gradients(net: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """y, and the gradients of its sum of squares."""
    x = x.detach().requires_grad_()
    y = net(x)
    grads = torch.autograd.grad(
        (y.float() ** 2).sum(), [x, *net.parameters()], materialize_grads=True
    )
    return [y.detach(), *grads]


def assert_close(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for f, w in zip(found, wanted, strict=True):
        scale = max(1.0, w.abs().max().item())
        torch.testing.assert_close(f, w, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.slow
def test_one_graph_without_breaks_for_any_batch_size():
    for name, case in cases(20):
        net = module(case)
        torch._dynamo.reset()
        said = torch._dynamo.explain(net)(inputs(case, 3))
        assert (said.graph_break_count, said.graph_count) == (0, 1), name
        torch._dynamo.reset()
        compiled = torch.compile(net, fullgraph=True, backend="eager", dynamic=True)
        for batch in BATCHES:
            x = inputs(case, batch)
            assert_close(with_gradients(compiled, x), with_gradients(net, x))


def test_a_graph_break_would_be_noticed():
    class Broken(torch.nn.Module):
        def forward(self, x):
            y = x + 1
            torch._dynamo.graph_break()
            return y * 2

    torch._dynamo.reset()
    assert torch._dynamo.explain(Broken())(torch.ones(2)).graph_break_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conv2d", "operator-1", "pooled-conv", "pixel-shuffle"])
def test_inductor_computes_the_same(name):
    case = Case(zoo.load(name), zoo.binding(name))
    net = module(case)
    torch._dynamo.reset()
    compiled = torch.compile(net, fullgraph=True)
    for batch in BATCHES:
        x = inputs(case, batch)
        assert_close(with_gradients(compiled, x), with_gradients(net, x))


def test_inputs_with_channels_last():
    tried = cases(40, rank=4)
    assert len(tried) > 12
    for _, case in tried:
        net = module(case)
        for batch in BATCHES:
            x = inputs(case, batch)
            last = x.contiguous(memory_format=torch.channels_last)
            assert_close(with_gradients(net, last), with_gradients(net, x))


def test_a_network_is_moved_to_channels_last_with_its_operator():
    operator, binding = zoo.load("operator-1"), zoo.binding("operator-1")
    pack = operator.kernel_pack(binding)
    assert pack.kernel.w0.dim() == 5
    net = torch.nn.Sequential(pack, torch.nn.Conv2d(12, 4, 3))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    x = inputs(Case(operator, binding), 3)
    y = net(x)
    net = net.to(torch.float64, memory_format=torch.channels_last)
    assert net[1].weight.is_contiguous(memory_format=torch.channels_last)
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name].double())
    last = x.double().contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(net(last).float(), y, rtol=1e-4, atol=1e-4)


def test_autocast_to_bfloat16():
    halves = 0
    for name, case in cases(30):
        net = module(case)
        operator, binding = case
        binding = {**binding, operator.batch: 3}
        x = inputs(case, 3)
        wanted = with_gradients(net, x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = with_gradients(net, x)
        halves += found[0].dtype == torch.bfloat16
        assert all(torch.isfinite(t).all() for t in found), name
        assert [t.shape for t in found] == [t.shape for t in wanted]
        # bfloat16 has 8 bits: errors are a small part of the sum of absolute terms.
        arrays = [np.abs(t.detach().numpy()) for t in (x, *net.parameters())]
        scale = operator.interpret(binding, arrays[0], arrays[1:])
        error = (found[0].float() - wanted[0]).abs().numpy()
        assert (error <= 0.03 * scale + 1e-6).all(), name
    assert halves > 10
