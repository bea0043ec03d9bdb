"""Operators in every model: equal until filled, then forward, backward, copies and compilers."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import torch
from torch import nn

import syno
from marks import with_slow
from syno import layer_report
from syno.network import models
from syno.network.models import build, built, slots

from .small import CONVOLUTION, SMALL, operator_for


def inputs(net: nn.Module, batch: int = 2) -> torch.Tensor:
    shape = built(net).input_shape
    if len(shape) == 1:
        return torch.randint(0, 50, (batch, *shape))
    return torch.randn(batch, *shape)


def made(name: str) -> nn.Module:
    """With no weight of zeros, as heads and last normalisations may start: they hide all else."""
    torch.manual_seed(0)
    net = build(name, **SMALL[name]).eval()
    with torch.no_grad():
        for key, parameter in net.named_parameters():
            if key.endswith("weight") and not parameter.any():
                parameter.normal_(0.5, 0.1)
    return net


Held = dict[str, tuple[torch.Tensor, torch.Tensor]]


def held_by(net: nn.Module) -> Held:
    """Every parameter and buffer by each of its names, with a copy of its values."""
    tensors = [
        *net.named_parameters(remove_duplicate=False),
        *net.named_buffers(remove_duplicate=False),
    ]
    return {name: (tensor, tensor.detach().clone()) for name, tensor in tensors}


def assert_untouched(net: nn.Module, before: Held) -> None:
    after = held_by(net)
    assert list(after) == list(before)
    for name, (tensor, values) in before.items():
        assert after[name][0] is tensor
        assert torch.equal(tensor, values)


def assert_same_tensors(copied: nn.Module, before: Held) -> None:
    """Own tensors, of the same types and values, and shared where those of the network are."""
    after = {name.replace(".layer.", "."): found for name, found in held_by(copied).items()}
    before = {name.replace(".layer.", "."): found for name, found in before.items()}
    assert after.keys() == before.keys()
    twins: dict[int, torch.Tensor] = {}
    for name, (tensor, values) in before.items():
        twin = after[name][0]
        assert type(twin) is type(tensor) and type(twin.data) is torch.Tensor
        assert torch.equal(twin, values)
        assert twins.setdefault(id(tensor), twin) is twin is not tensor
    assert len(twins) == len({id(twin) for twin in twins.values()})


@pytest.mark.parametrize("name", with_slow(SMALL, "timm/vit_tiny_patch16_224", "efficientnet_v2_s"))
def test_slots_change_nothing_and_operators_run_forward_and_backward(name: str) -> None:
    net = made(name)
    held = held_by(net)
    slotted = slots(net)
    assert_untouched(net, held)
    assert_same_tensors(slotted, held)
    x = inputs(net)
    before = net(x)
    assert torch.equal(slotted(x), before)
    report = syno.replace(slotted, operator_for(name))
    assert report.replaced and not report.slots
    assert not any(row.status == "kept" for row in report.rows if row.name in syno.slots(slotted))
    after = slotted.train()(x)
    assert after.shape == before.shape
    after.square().mean().backward()
    for slot in syno.slots(slotted).values():
        for parameter in slot.layer.parameters():
            assert parameter.grad is not None
            assert torch.isfinite(parameter.grad).all()
    filled = [slot.layer.kernel.w0.grad for slot in syno.slots(slotted).values()]
    assert sum(bool(grad.abs().max() > 0) for grad in filled) >= math.ceil(0.9 * len(filled))
    for slot in syno.slots(slotted).values():
        slot.restore()
    torch.testing.assert_close(slotted.eval()(x).shape, before.shape)


@pytest.mark.parametrize(
    "name",
    with_slow(["resnet18", "vit_b_16", "convnext_tiny", "gpt2", "densenet121"], "densenet121"),
)
def test_the_original_as_an_operator_is_the_same_function(name: str) -> None:
    """Weights of stride-1 convolutions and projections go into operators; the rest stays."""
    net = made(name)
    where = None
    if "res" in name or "dense" in name:
        where = syno.conv2d(kernel=3, groups=1, minimum=1)
    slotted = slots(net, where)
    x = inputs(net)
    before = slotted(x)
    syno.replace(slotted, operator_for(name))
    for slot in syno.slots(slotted).values():
        weight = slot.original.weight
        ours = slot.kernel.kernel.w0
        with torch.no_grad():
            ours.copy_(weight if weight.shape == ours.shape else weight.T)
    torch.testing.assert_close(slotted(x), before, rtol=1e-4, atol=1e-5)


def test_a_layer_of_stride_2_keeps_its_shape_and_the_report_says_that_it_pools() -> None:
    net = made("resnet18")
    slotted = slots(net)
    rows = {row.name: row for row in layer_report(slotted).rows}
    strided = [name for name, row in rows.items() if row.layer.endswith("/2")]
    assert len(strided) == 6  # three stages, 3x3 and 1x1
    for name in strided:
        assert rows[name].pool == 2
    assert str(layer_report(slotted)).count("slot, 2x2 average pooling first") == 6
    shapes: dict[str, torch.Size] = {}
    for name, slot in syno.slots(slotted).items():
        slot.register_forward_hook(lambda s, i, o, name=name: shapes.update({name: o.shape}))
    x = inputs(net)
    slotted(x)
    before = dict(shapes)
    report = syno.replace(slotted, CONVOLUTION)
    assert str(report).count("replaced, 2x2 average pooling first") == 6
    slotted(x)
    assert shapes == before and len(before) == 19
    slot = syno.slots(slotted)["layer2.0.conv1"]
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(slot.original.weight)
    x = torch.randn(2, 8, 32, 32)
    pooled = nn.functional.avg_pool2d(x, 2)
    expected = nn.functional.conv2d(pooled, slot.original.weight, padding=1)
    torch.testing.assert_close(slot(x), expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(slot(x), slot.original(x))


@pytest.mark.parametrize("name", ["resnet18", "gpt2", "vit_b_16"])
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_compute_the_same_and_share_nothing(name: str, twin) -> None:
    net = made(name)
    slotted = slots(net)
    syno.replace(slotted, operator_for(name))
    other = twin(slotted)
    x = inputs(net)
    assert torch.equal(slotted(x), other(x))
    assert built(other) == built(net)
    assert str(layer_report(other)) == str(layer_report(slotted))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert not torch.equal(slotted(x), other(x))


@pytest.mark.parametrize("name", ["resnet18", "gpt2"])
def test_a_state_dict_carries_every_weight(name: str) -> None:
    torch.manual_seed(0)
    first, second = (slots(build(name, **SMALL[name])).eval() for _ in range(2))
    for net in (first, second):
        syno.replace(net, operator_for(name))
    x = inputs(first)
    assert not torch.equal(first(x), second(x))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(x), second(x))


@pytest.mark.parametrize("name", ["resnet18", "gpt2"])
def test_a_network_of_another_type_gets_slots_of_that_type(name: str) -> None:
    net = slots(made(name).double())
    syno.replace(net, operator_for(name))
    x = inputs(net)
    assert net(x.double() if x.is_floating_point() else x).dtype == torch.float64


@pytest.mark.slow
@pytest.mark.parametrize(("name", "filled"), [("resnet18", True), ("vit_b_16", False)])
def test_layouts_types_and_compilers(name: str, filled: bool) -> None:
    net = made(name)
    slotted = slots(net)
    if filled:
        syno.replace(slotted, operator_for(name))
    slotted.eval()
    x = inputs(net)
    with torch.no_grad():
        expected = slotted(x)
        last = copy.deepcopy(slotted).to(memory_format=torch.channels_last)
        ours = last(x.to(memory_format=torch.channels_last))
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-4)
        with torch.autocast("cpu", torch.bfloat16):
            half = slotted(x)
        torch.testing.assert_close(half.float(), expected, rtol=0.2, atol=0.2)
    torch._dynamo.reset()
    compiled = torch.compile(slotted, fullgraph=True)
    torch.testing.assert_close(compiled(x), expected, rtol=1e-3, atol=1e-4)
    slotted.train()
    compiled(x).sum().backward()
    grads = [p.grad for p in slotted.parameters() if p.requires_grad]
    assert all(grad is not None for grad in grads)


# As small as the groups of 32 and the windows of 7 of the paper's presets allow.
CONVOLUTIONAL = ("resnet18", "resnet34", "densenet121", "resnext29_2x64d", "efficientnet_v2_s")
DRAWN: dict[str, dict[str, int]] = {
    **{name: {"size": 64, "classes": 10, "cifar_stem": 1} for name in CONVOLUTIONAL},
    "vit_b_16": {"size": 64, "classes": 10, "layers": 2, "width": 384, "heads": 2},
    "gpt2": {"vocabulary": 50, "context": 64, "layers": 2, "width": 128, "heads": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_operators_drawn_from_a_models_preset_train_in_it(name: str) -> None:
    preset = str(models.describe(name).preset)
    wanted = syno.Specification.preset(preset, min_weight_params=100)
    torch.manual_seed(0)
    template = slots(build(name, **DRAWN[name]))
    sampler = syno.Sampler.from_specification(wanted, net=template, seed=1, max_nodes=20_000)
    x = inputs(template)
    for _ in range(3):
        operator = sampler.sample()
        net = copy.deepcopy(template)
        report = syno.replace(net, operator)
        share = sum(row.macs or 0 for row in report.replaced)
        whole = sum(row.macs or 0 for row in layer_report(template).slots)
        assert share >= wanted.limits["min_fit"] * whole
        net(x).square().mean().backward()
        for slot in syno.slots(net).values():
            if slot.kernel is not None:
                grads = [parameter.grad for parameter in slot.kernel.parameters()]
                assert grads and all(torch.isfinite(grad).all() for grad in grads)
