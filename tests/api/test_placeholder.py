"""Placeholder: a slot that says what it needs."""

import pytest
import torch
from torch import nn

from syno import Placeholder, Sampler, UserError, replace, slots

from .networks import conv_operator


def test_an_empty_slot_says_how_to_fill_it():
    with pytest.raises(UserError, match=r"placeholder is empty(.|\n)*sampler.replace"):
        Placeholder({"H": 4})(torch.zeros(4))


def test_a_slot_with_an_original_computes_it():
    conv = nn.Conv2d(8, 8, 3, padding=1)
    slot = Placeholder({"C_in": 8, "C_out": 8, "H": 6}, original=conv)
    x = torch.randn(1, 8, 6, 6)
    assert torch.equal(slot(x), conv(x))
    net = nn.Sequential(slot)
    replace(net, conv_operator())
    assert slot.kernel is not None
    assert slot(x).shape == (1, 8, 6, 6)
    slot.restore()
    assert torch.equal(slot(x), conv(x))
    assert slot.kernel is None


def test_any_batch_size():
    slot = Placeholder({"C_in": 8, "C_out": 4, "H": 6})
    net = nn.Sequential(slot)
    replace(net, conv_operator())
    for batch in (1, 2, 7):
        assert net(torch.randn(batch, 8, 6, 6)).shape == (batch, 4, 6, 6)


def test_slots_are_listed_by_name():
    net = nn.Sequential(Placeholder({"H": 2}), nn.Sequential(nn.ReLU(), Placeholder({"H": 3})))
    assert list(slots(net)) == ["0", "1.1"]


def test_bindings_are_checked():
    for binding, message in (
        ({"H": 0}, "variable 'H' cannot be bound to 0"),
        ({"H": -2}, "positive integer"),
        ({"H": 2.5}, "positive integer"),
        ({"H": True}, "positive integer"),
        ({3: 4}, "name in a binding is a string"),
        ([1, 2], "a binding is a dict"),
    ):
        with pytest.raises(UserError, match=message):
            Placeholder(binding)


def test_a_sampler_says_which_placeholder_does_not_fit_its_variables():
    arguments = ("[H, W]", "[H, W]", ["H: 2", "W: 2"], ["s=2: 2"])
    with pytest.raises(UserError, match=r"'1' gives no value to W"):
        Sampler(*arguments, net=nn.Sequential(Placeholder({"H": 2, "W": 2}), Placeholder({"H": 2})))
    with pytest.raises(UserError, match=r"unknown variable 'Q'(.|\n)*in placeholder '0'"):
        Sampler(*arguments, net=nn.Sequential(Placeholder({"H": 2, "W": 2, "Q": 1})))
    with pytest.raises(UserError, match="no slots"):
        Sampler(*arguments, net=nn.Sequential(nn.ReLU()))
    with pytest.raises(UserError, match=r"expected a torch.nn.Module, got str"):
        Sampler(*arguments, net="resnet")
