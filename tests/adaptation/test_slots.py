"""Fitting the slots of a trained network."""

import copy
import math

import pytest
import torch
from torch import nn

import syno
from syno import zoo
from syno.adaptation.activations import record
from syno.adaptation.slots import fit_slots, refresh_batch_norm


@pytest.fixture(scope="module")
def trained():
    """A network whose weights and statistics are not those of a new one."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(8, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1, stride=2, bias=False),
        nn.BatchNorm2d(16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )
    net.train()
    for _ in range(5):
        net(torch.randn(32, 8, 16, 16) * 2 + 1)
    return net.eval()


def inputs(count=96):
    torch.manual_seed(1)
    return torch.randn(count, 8, 16, 16)


def with_slots(net, where=None):
    net = syno.substitute(
        net, where=where or syno.conv2d(kernel=3, stride=(1, 2)), example_input=inputs(1)
    )
    for slot in syno.slots(net).values():
        slot.binding.update(k=3, s=2)
    return net


def test_a_convolution_is_fitted_by_a_convolution(trained):
    net = with_slots(trained, syno.conv2d(kernel=3, stride=1))
    rows = fit_slots(net, zoo.load("conv2d"), inputs().split(32))
    assert [row.slot for row in rows] == ["0", "3"]
    assert all(row.error < 1e-9 and not row.reason for row in rows)
    x = torch.randn(4, 8, 16, 16)
    torch.testing.assert_close(net(x), trained(x), rtol=1e-4, atol=1e-4)


def test_a_strided_slot_is_fitted_after_its_pooling(trained):
    net = with_slots(trained)
    before = record(net, [inputs()])
    assert before["5"].x.shape[2:] == (8, 8)
    rows = {row.slot: row for row in fit_slots(net, zoo.load("conv2d"), before)}
    assert 0.0 < rows["5"].error < 1.0
    assert rows["0"].error < 1e-9


def test_a_slot_that_does_not_fit_keeps_its_layer(trained):
    net = with_slots(trained, syno.conv2d(kernel=3, stride=1))
    # A sum of shifted maps keeps the number of channels, which the strided slot does not.
    shifts = syno.Operator.parse(
        "y[n,c,h,w] = sum(a:k) x[n,c,h+a-k/2,w] * w0[a]",
        input="[N, C_in, H, W]",
        output="[N, C_in, H, W]",
    )
    net = with_slots(trained)
    rows = {row.slot: row for row in fit_slots(net, shifts, [inputs()])}
    assert math.isnan(rows["5"].error)
    assert "output is [N, 16, 8, 8]" in rows["5"].reason
    assert rows["0"].error < 1.0


def test_the_fit_is_the_same_for_the_same_seed(trained):
    results = []
    for _ in range(2):
        net, data = with_slots(trained), inputs()
        state = torch.random.get_rng_state()
        fit_slots(net, zoo.load("low-rank-conv"), [data], seed=4)
        assert torch.equal(torch.random.get_rng_state(), state)
        results.append(net(inputs(2)))
    assert torch.equal(*results)


def test_record_keeps_as_many_images_as_memory_allows(trained):
    net = with_slots(trained)
    whole = record(net, inputs().split(32))
    assert {len(one.x) for one in whole.values()} == {96}
    one = sum(each.x[:1].nbytes + each.y[:1].nbytes for each in whole.values())
    part = record(net, inputs().split(32), most_bytes=40 * one)
    assert {len(each.x) for each in part.values()} == {40}
    for name, each in part.items():
        torch.testing.assert_close(each.y, whole[name].y[:40])
    with pytest.raises(syno.UserError, match="the activations of one image take"):
        record(net, [inputs()], most_bytes=one - 1)


def test_recording_leaves_the_network_as_it_was(trained):
    net = with_slots(trained)
    net.train()
    state = copy.deepcopy(net.state_dict())
    record(net, [inputs()])
    assert net.training
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert not any(slot._forward_hooks for slot in net.modules())


def test_networks_that_cannot_be_recorded_say_why(trained):
    net = with_slots(trained)
    with pytest.raises(syno.UserError, match="no inputs to record"):
        record(net, [])
    syno.replace(net, zoo.load("conv2d"))
    with pytest.raises(syno.UserError, match="holds an operator instead of its original"):
        record(net, [inputs()])
    empty = nn.Sequential(syno.Placeholder({"H": 4}))
    with pytest.raises(syno.UserError, match="no original layer to fit"):
        record(empty, [inputs()])


def test_batch_norm_is_refreshed_from_the_data(trained):
    net = copy.deepcopy(trained)
    x = inputs()
    refresh_batch_norm(net, [x])
    expected = net[0](x)
    torch.testing.assert_close(net[1].running_mean, expected.mean((0, 2, 3)))
    assert net[1].momentum == trained[1].momentum
    assert not any(module.training for module in net.modules())
    with pytest.raises(syno.UserError, match="no inputs to compute the statistics"):
        refresh_batch_norm(net, [])
