"""The trace of a network that serves all operators in its slots."""

import copy

import pytest
import torch
from torch import nn

import syno
from marks import with_slow
from syno import models, zoo
from syno.inference.compiling import compile_prepared
from syno.inference.prepare import prepare
from syno.inference.trace import Outline

SIZES = {"N": 1, "k": 3, "g": 4, "s": 2}


@pytest.fixture(scope="module")
def template():
    torch.manual_seed(0)
    return models.slots(models.build("resnet-small", classes=10, channels=3, size=16))


@pytest.fixture(scope="module")
def example():
    return torch.randn(1, 3, 16, 16)


@pytest.fixture(scope="module")
def outline(template, example):
    return Outline(template, (example,))


def with_operator(template, name, count=None):
    """With other weights than the template, as a training leaves them."""
    net = copy.deepcopy(template)
    operator = zoo.load(name)
    for slot in list(syno.slots(net).values())[:count]:
        binding = {**slot.binding, **SIZES}
        slot.replace(operator.kernel_pack(operator.complete(binding)))
    with torch.no_grad():
        for tensor in [*net.parameters(), *net.buffers()]:
            if tensor.is_floating_point():
                tensor.uniform_(0.2, 0.6)
    return net.eval()


@pytest.mark.parametrize("name", with_slow(["operator-1", "conv2d"], "conv2d"))
def test_it_gives_what_a_trace_gives(template, example, outline, name):
    net = with_operator(template, name)
    compiled = compile_prepared(
        net, (example,), prepare(net, (example,), batch=True, outline=outline)
    )
    traced = syno.compile(net, example)
    assert compiled.report().markdown() == traced.report().markdown()
    x = torch.randn(3, 3, 16, 16)
    with torch.no_grad():
        assert torch.equal(compiled(x), traced(x))
        torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-4)
        assert not torch.allclose(net(x)[0], net(x)[1])


def test_slots_that_keep_their_layer_need_a_trace(template, example, outline):
    assert outline.traced(template) is None
    net = with_operator(template, "conv2d", count=2)
    assert outline.traced(net) is None
    graph = prepare(net, (example,), batch=True, outline=outline)
    with torch.no_grad():
        x = torch.randn(2, 3, 16, 16)
        torch.testing.assert_close(
            compile_prepared(net, (example,), graph)(x), net(x), rtol=1e-4, atol=1e-4
        )


def test_the_template_stays_as_it_is(template, example):
    before = copy.deepcopy(template).state_dict()
    Outline(template, (example,))
    assert template.training
    assert all(slot.layer is slot.original for slot in syno.slots(template).values())
    assert all(torch.equal(value, before[name]) for name, value in template.state_dict().items())


def test_a_slot_that_nothing_runs_through_is_refused(example):
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = syno.Placeholder({"H": 16}, original=nn.Conv2d(3, 4, 3, padding=1))
            self.idle = syno.Placeholder({"H": 16}, original=nn.Conv2d(3, 4, 3, padding=1))

        def forward(self, x):
            return self.used(x)

    with pytest.raises(syno.UserError, match="nothing ran through the slot 'idle'"):
        Outline(Idle(), (example,))
