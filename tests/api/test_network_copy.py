"""Copies of networks: what they share, what torch alone does not copy, and what is refused."""

import dataclasses
import functools
import re
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm

import syno
from syno import UserError
from syno._util.network_copy import copy_network

NORMS = {
    "weight_norm": weight_norm,
    "spectral_norm": spectral_norm,
    "parametrized weight_norm": parametrizations.weight_norm,
    "parametrized spectral_norm": parametrizations.spectral_norm,
    "pruned": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
}


def trained(net, x):
    """The network after the gradients of a step, in evaluation mode."""
    net.train()
    net(x).sum().backward()
    return net.eval()


@pytest.mark.parametrize("norm", NORMS)
def test_weights_that_are_computed_are_copied_after_a_training_step(norm):
    x = torch.randn(2, 8, 6, 6)
    layers = [NORMS[norm](nn.Conv2d(8, 8, 3, padding=1)) for _ in range(2)]
    net = trained(nn.Sequential(layers[0], nn.ReLU(), layers[1]), x)
    other = copy_network(net)
    torch.testing.assert_close(other(x), net(x))
    before = net(x)
    other.train()(x).sum().backward()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    torch.testing.assert_close(net(x), before)
    slotted = syno.substitute(net, example_input=x)
    assert len(syno.slots(slotted)) == 2
    torch.testing.assert_close(slotted.eval()(x), net(x))


class Held(NamedTuple):
    scale: torch.Tensor


@dataclasses.dataclass
class Kept:
    scale: torch.Tensor


@pytest.mark.parametrize(
    "hold",
    [
        lambda t: t,
        lambda t: [t],
        lambda t: {"scale": (t,)},
        Held,
        Kept,
        lambda t: functools.partial(torch.mul, t),
    ],
)
def test_tensors_with_a_history_are_copied_wherever_they_stand(hold):
    net = nn.Linear(4, 4)
    net.held = hold(net.weight * 2)
    other = copy_network(net)
    found = other.held
    while not isinstance(found, torch.Tensor):
        found = vars(found) if isinstance(found, Kept) else getattr(found, "args", found)
        found = next(iter(found.values() if isinstance(found, dict) else found))
    assert torch.equal(found, net.weight * 2)
    assert found.is_leaf
    assert found.data_ptr() != net.weight.data_ptr()


def test_what_stands_in_several_places_does_so_in_a_copy():
    layer, other = nn.Linear(4, 4), nn.Linear(4, 4)
    other.weight = layer.weight
    net = nn.Sequential(layer, nn.ReLU(), layer, other)
    net.order = [layer, other]
    net.result = layer.weight * 2
    net.results = {"again": net.result}
    twin = copy_network(net)
    assert twin[0] is twin[2] is twin.order[0] is not layer
    assert twin[3] is twin.order[1]
    assert twin[3].weight is twin[0].weight is not layer.weight
    assert twin.results["again"] is twin.result


def test_a_part_that_cannot_be_copied_is_named():
    net = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())
    net[1].lock = threading.Lock()
    x = torch.randn(1, 8, 4, 4)
    with pytest.raises(UserError, match=r"cannot be copied(.|\n)*attribute 'lock' of module '1'"):
        syno.substitute(net, example_input=x)
    with pytest.raises(UserError, match="attribute 'lock' of module '1'"):
        syno.compile(net.eval(), x)


def test_networks_are_copied_by_this_function_alone():
    source = Path(syno.__file__).parent
    own = {
        "_util/network_copy.py",
        "operators/layer.py",  # within such a copy
        "adaptation/pipeline/fine_tuning.py",  # a state dict
        "_util/value_numbering.py",  # the buffers of a program
    }
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"\bdeepcopy\(\w+[\w.()]*\)|\bdeepcopy\(self", path.read_text())
    }
    assert found <= own
