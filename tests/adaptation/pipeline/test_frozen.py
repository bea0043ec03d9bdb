"""Parameters that the user has frozen stay as they are."""

from __future__ import annotations

import copy

import pytest
import torch

from syno import UserError
from syno.adaptation.frozen import freeze, frozen_parameters
from syno.network.substitute import substitute

from .conftest import Net, adapted, options


@pytest.mark.parametrize("widths", [False, True])
def test_a_frozen_part_stays(widths, trained, data, tmp_path):
    net = copy.deepcopy(trained).requires_grad_(True)
    for module in (net.stem, net.norm):
        module.requires_grad_(False)
    told: list[str] = []

    def progress(phase: str, done: int, total: int, remark: str) -> None:
        if phase == "note":
            told.append(remark)

    given = {"macs": "0.75x", "progress": progress, "fidelity": {"epochs": 2, "batch": 64}}
    given |= {"options": options(widths=widths, blocks=widths)}
    found = adapted(net, data, str(tmp_path / "runs.db"), **given)
    (network,) = found.networks
    assert [each.slot for each in network.slots] in (["first", "second"], [])
    assert {each.group for each in network.widths} <= {"first"}
    made = dict(network.net.named_parameters())
    for name, before in net.named_parameters():
        if name.startswith(("stem", "norm")):
            (after,) = (p for n, p in made.items() if n.replace(".layer.", ".") == name)
            assert torch.equal(after, before) and not after.requires_grad
    assert not torch.equal(made["head.weight"], net.head.weight)
    (note,) = (each for each in told if "frozen" in each)
    assert note.startswith("4 parameters of the network, such as norm.bias, are frozen")


def test_a_network_that_is_frozen_as_a_whole_is_trained(trained, data, tmp_path):
    net = copy.deepcopy(trained).requires_grad_(False)
    found = adapted(net, data, str(tmp_path / "runs.db"), fidelity={"epochs": 2, "batch": 64})
    (network,) = found.networks
    assert all(parameter.requires_grad for parameter in network.net.parameters())
    assert not torch.equal(network.net.head.weight, net.head.weight)


def test_without_a_slot_that_is_trained_there_is_nothing_to_do(trained, data, tmp_path):
    net = copy.deepcopy(trained).requires_grad_(True)
    for module in (net.stem, net.first, net.second):
        module.requires_grad_(False)
    with pytest.raises(UserError, match=r"the layers of all slots are frozen\n"):
        adapted(net, data, str(tmp_path / "runs.db"))


def test_names_are_those_without_slots():
    net = Net().eval()
    net.first.requires_grad_(False)
    slotted = substitute(net, example_input=torch.zeros(2, 4, 8, 8))
    assert list(frozen_parameters(slotted)) == list(frozen_parameters(net)) == ["first.weight"]
    other = substitute(Net().eval(), example_input=torch.zeros(2, 4, 8, 8))
    freeze(other, {"first.weight": torch.Size([8, 8, 3, 3]), "head.bias": torch.Size([2])})
    assert [n for n, p in other.named_parameters() if not p.requires_grad] == ["first.layer.weight"]
