"""Networks that are trained with compiled kernels."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import syno
from syno import UserError, models
from syno.codegen.native import find_compiler, kernels, no_compiler
from syno.codegen.native.kernels import WrongKernelError, compiled_kernels
from syno.operators import zoo
from syno.operators.layer import Layer

pytestmark = pytest.mark.skipif(no_compiler() is not None, reason="there is no C++ compiler")

SIZES = {"N": 1, "k": 3, "k_1": 3, "g": 2, "s": 2}


def network(name: str = "operator-1") -> nn.Module:
    torch.manual_seed(0)
    net = models.slots(models.build("resnet-small", classes=10, channels=3, size=8))
    operator = zoo.load(name)
    for slot in syno.slots(net).values():
        sizes = SIZES | slot.binding
        slot.replace(Layer(operator, {name: sizes[name] for name in operator.variables}))
    return net


def packs(net: nn.Module) -> list[Layer]:
    return [module for module in net.modules() if isinstance(module, Layer)]


def gradients(net: nn.Module) -> list[torch.Tensor]:
    net.zero_grad()
    x = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    net(x).square().sum().backward()
    return [parameter.grad.clone() for parameter in net.parameters()]


def test_gradients_are_those_of_the_emitted_modules():
    net = network()
    expected = gradients(net)
    with compiled_kernels(net) as count:
        assert 1 <= count < len(packs(net))  # equal slots share their code
        assert all(pack.compiled is not None for pack in packs(net))
        found = gradients(net)
    assert all(pack.compiled is None for pack in packs(net))
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4 * float(one.abs().max()))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
def test_under_autocast_input_value_and_gradients_are_in_bfloat16(layout, given):
    net = network()
    pack = packs(net)[0]
    shape = pack.operator.shapes(pack.binding).input[1:]
    random = torch.Generator().manual_seed(1)
    # Small integers are exact in bfloat16, so that the only rounding is that of the value.
    x = torch.randint(-3, 4, (4, *shape), generator=random).to(given, memory_format=layout)
    x.requires_grad_()
    weights = list(pack.kernel.parameters())
    expected = pack(x.float())
    dy = torch.randint(-3, 4, expected.shape, generator=random).bfloat16()
    wanted = torch.autograd.grad(expected, [x, *weights], dy.float())
    with compiled_kernels(net), torch.autocast("cpu", torch.bfloat16):
        assert pack.compiled.takes(x, weights)
        found = pack(x)
        gradients = torch.autograd.grad(found, [x, *weights], dy)
    assert found.dtype == torch.bfloat16
    assert found.is_contiguous(memory_format=layout)
    assert [each.dtype for each in gradients] == [given, *(torch.float32 for _ in weights)]
    torch.testing.assert_close(found.float(), expected, rtol=2**-8, atol=1e-5)
    for one, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(one.float(), other.float(), rtol=2**-7, atol=1e-3)


def test_other_precisions_run_the_emitted_module():
    net = network()
    net.double()
    with compiled_kernels(net):
        pack = packs(net)[0]
        weights = list(pack.kernel.parameters())
        x = torch.randn(2, *pack.operator.shapes(pack.binding).input[1:], dtype=torch.float64)
        assert not pack.compiled.takes(x, weights)
        assert torch.equal(pack(x), pack.kernel(x))


def test_a_copy_of_a_network_runs_compiled_code_until_the_block_ends():
    net = network("conv2d")
    with compiled_kernels(net):
        copied = copy.deepcopy(net)
        (pack, *_) = packs(copied)
        x = torch.randn(2, *pack.operator.shapes(pack.binding).input[1:])
        weights = list(pack.kernel.parameters())
        assert pack.compiled.takes(x, weights)
        assert pack.compiled is packs(net)[0].compiled
        assert weights[0] is not next(packs(net)[0].kernel.parameters())
    assert not pack.compiled.takes(x, weights)
    assert torch.equal(pack(x), pack.kernel(x))


def test_wrong_code_is_noticed_before_it_is_used(monkeypatch):
    right = kernels._compiled

    def wrong(found):
        functions = right(found)
        for function in functions:
            monkeypatch.setattr(function, "_gradients", lambda *_: None)
        return functions

    net = network()
    monkeypatch.setattr(kernels, "_compiled", wrong)
    with pytest.raises(WrongKernelError, match="the gradient of"), compiled_kernels(net):
        pass
    assert all(pack.compiled is None for pack in packs(net))


def test_without_a_compiler_is_a_user_error(monkeypatch):
    find_compiler.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    net = network("conv2d")
    try:
        with pytest.raises(UserError, match="no C\\+\\+ compiler"), compiled_kernels(net):
            pass
    finally:
        find_compiler.cache_clear()


def test_a_network_without_operators_stays_as_it_is():
    with compiled_kernels(nn.Linear(2, 2)) as count:
        assert count == 0
