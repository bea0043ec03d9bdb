"""Operators and fewer channels in one network, from one integer program."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import syno
from marks import slow_but
from syno.adaptation.pipeline import channel_widths, group_choices, run
from syno.adaptation.pipeline.channel_widths import ChannelWidths
from syno.adaptation.widths import eliminations
from syno.network.channels.groups import channel_groups
from syno.network.models import build
from syno.study.fronts import LATENCY, MACS, PARAMS

from .conftest import adapted, learned, options


class Block(nn.Module):
    """x + f(x), with channels between two layers that nothing else reads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = functional.relu(
            x + self.second(functional.relu(self.norm(self.first(x))))
        )
        return y


class Blocks(nn.Sequential):
    """[N, 4, 8, 8] -> [N, 3]."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(4, 16, 3, padding=1),
            nn.ReLU(),
            Block(16),
            Block(16),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(16, 3),
        )


@pytest.fixture(scope="module")
def blocks(data) -> nn.Module:
    return learned(Blocks, data)


def channels_of(net: nn.Module, x: torch.Tensor, lanes: int = 1) -> ChannelWidths:
    """The groups of a network, without an adaptation; layers take 1 us for each weight."""
    made = ChannelWidths.__new__(ChannelWidths)
    made.original, made.blocks = net, {}
    made.eliminations = {
        each.group.name: each for each in eliminations(net, channel_groups(net, x), [x])
    }
    seconds = {
        name: 1e-6 * module.weight.numel()
        for name, module in net.named_modules()
        if isinstance(module, (nn.Conv2d, nn.Linear))
    }
    made._costs = channel_widths._Costs(net, x[:1], seconds, lanes, word=lanes)
    return made


def test_outputs_of_integers_cost_as_whole_vectors():
    net = nn.Sequential(nn.Conv2d(3, 24, 3), nn.Conv2d(24, 3, 3))
    costs = channel_widths._Costs(net, torch.zeros(1, 3, 8, 8), {"0": 2.0, "1": 3.0}, lanes=16)
    narrower = costs.of({("0.weight", 0): 4, ("1.weight", 1): 4})
    assert narrower[LATENCY] == pytest.approx(2.0 + 3.0 * 20 / 24)
    assert costs.of({("0.weight", 0): 8})[LATENCY] == pytest.approx(1.0 + 3.0)


def test_outputs_have_a_constant_cost_that_follows_from_the_times_of_layers():
    """One vector of outputs at one place takes 20 us and 2 us for each word."""
    shapes = ((3, 24, 1), (24, 40, 1), (40, 20, 3))
    net = nn.Sequential(*(nn.Conv2d(c, d, k, padding=k // 2) for c, d, k in shapes))

    def seconds(inputs: int, outputs: int, window: int) -> float:
        words = math.ceil(inputs * window**2 / 4)
        return 64 * math.ceil(outputs / 16) * 1e-6 * (20 + 2 * words)

    known = {str(n): seconds(*shape) for n, shape in enumerate(shapes)}
    costs = channel_widths._Costs(net, torch.zeros(1, 3, 8, 8), known, lanes=16, word=4)
    assert costs.whole[LATENCY] == pytest.approx(sum(known.values()))
    gone = {("0.weight", 0): 12, ("1.weight", 1): 12, ("1.weight", 0): 3, ("2.weight", 1): 3}
    expected = sum(seconds(*shape) for shape in ((3, 12, 1), (12, 37, 1), (37, 20, 3)))
    assert costs.of(gone)[LATENCY] == pytest.approx(expected)


def test_times_of_weights_that_are_no_parameters_of_their_own_say_nothing():
    """As of a weight that another layer has, too, or of one that is computed."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.utils.weight_norm(nn.Linear(4, 4)))
    net[1].weight = net[0].weight
    costs = channel_widths._Costs(net, torch.zeros(1, 4), {"0": 1.0, "1": 2.0, "2": 3.0})
    assert costs.whole[LATENCY] == 1.0


@pytest.mark.parametrize("spent", [0.0, 1e-9])
def test_layers_of_any_times_have_costs(spent):
    net = nn.Sequential(*(nn.Conv2d(2**n, 2 ** (n + 1), 1) for n in range(4)))
    known = {str(n): spent if n == 1 else 1e-6 for n in range(4)}
    costs = channel_widths._Costs(net, torch.zeros(1, 1, 4, 4), known)
    assert costs.whole[LATENCY] == pytest.approx(3e-6 + spent)
    assert 0.0 < costs.of({("3.weight", 0): 8})[LATENCY] < costs.whole[LATENCY]


@pytest.mark.parametrize("lanes", slow_but([1, 4], 4))
@pytest.mark.parametrize("name", slow_but(["resnet20", "mobilenetv3-cifar"], "mobilenetv3-cifar"))
def test_costs_add_up_to_those_of_the_network(name, lanes):
    torch.manual_seed(0)
    net = build(name, classes=5, size=16, width=8).eval()
    channels = channels_of(net, torch.randn(2, 3, 16, 16), lanes)
    slots = [name for name, module in net.named_modules() if isinstance(module, nn.Conv2d)]
    found = group_choices.group_choices(channels, slots, 1.0)
    assert found.names and all(len(of) == len(found.widths[0]) > 1 for of in found.widths[:1])
    rng = random.Random(0)
    full = channels.costs({})
    for _ in range(20):
        places = [rng.randrange(len(of)) for of in found.widths]
        widths = found.widths_of(places)
        assert found.places_of(widths) == places
        whole = channels.costs(widths)
        layers = {path: p.shape for path, p in channels.structure(widths).named_parameters()}
        assert whole[PARAMS] == sum(map(np.prod, layers.values()))
        for resource, scale in ((LATENCY, 1e3), (MACS, 1.0), (PARAMS, 1.0)):

            def cost(places, resource=resource):
                alone = sum(of[p] for of, p in zip(found.costs[resource], places, strict=True))
                together = found.shared[resource].items()
                return alone + sum(of[places[i]][places[j]] for (i, j), of in together)

            saved = cost([0] * len(places)) - cost(places)
            assert saved == pytest.approx(scale * (full[resource] - whole[resource]), rel=1e-9)
    # A layer has the slots of its name; groups that share a layer are pairs.
    for name, of in zip(found.names, found.slots, strict=True):
        assert not slots or name in of or not isinstance(net.get_submodule(name), nn.Conv2d)


def test_many_pairs_are_left_out(monkeypatch):
    torch.manual_seed(0)
    net = build("resnet20", classes=5, size=16, width=8).eval()
    channels = channels_of(net, torch.randn(2, 3, 16, 16))
    every = group_choices.group_choices(channels, [], 1.0)
    monkeypatch.setattr(group_choices, "_MOST_PAIRS", 3)
    some = group_choices.group_choices(channels, [], 1.0)
    assert set(some.names) < set(every.names) and some.names
    assert all(len(of) <= 3 for of in some.shared.values())


def both_moves(blocks, data, store, monkeypatch, **changes):
    """The channels of the last block cost nothing, and all others much."""

    def scored(choices, *_):
        return [
            [0.0 if name == "3.first" else 1e3 * error for error in errors]
            for name, errors in zip(choices.names, choices.errors, strict=True)
        ]

    monkeypatch.setattr(run, "group_scores", scored)
    monkeypatch.setattr(run.AdaptationRun, "narrowed", lambda *_: None)
    given = {"macs": "0.5x", "options": options(widths=True), "name": "both", **changes}
    return adapted(blocks, data, store, **given)


def test_a_network_has_both(blocks, data, tmp_path, monkeypatch):
    store = str(tmp_path / "runs.db")
    found = both_moves(blocks, data, store, monkeypatch)
    (network,) = found.networks
    assert network.row.about == "operators and fewer channels"
    (row,) = network.widths
    assert row.group == "3.first" and row.after < row.before == 16
    operators = {each.slot: each.operator for each in network.slots}
    assert operators["3.first"] == operators["3.second"] == "original"
    assert set(operators.values()) - {"original", "removed"}
    # The layers have the widths, and what the rows say is so.
    assert network.net.get_submodule("3.first").weight.shape[0] == row.after
    assert network.net.get_submodule("3.second").weight.shape[1] == row.after
    assert network.row.params == sum(p.numel() for p in network.net.parameters())
    left = {each.slot: each.macs_after / each.macs_before for each in network.slots}
    assert left["3.first"] == left["3.second"] == row.after / row.before
    assert network.row.macs <= 0.5 * found.original.macs
    assert network.row.macs == pytest.approx(
        sum(each.macs_after for each in network.slots) + 16 * 3, abs=1
    )
    assert network.row.value > found.original.value - 0.15
    # It is shown, written and continued.
    titles = [section.title for section in found.sections()]
    assert "Slots of macs 0.5x" in titles and "Channels of macs 0.5x" in titles
    page = found.report(tmp_path / "page.html").read_text()
    assert 'id="slots"' in page and "Channels" in page
    x = data.tensors[0][:3]
    written = found.export(tmp_path / "net", network.name, format="cpp-network").code
    y = syno.inference.load(written)(x.numpy())
    np.testing.assert_allclose(y, network.net(x).detach().numpy(), rtol=1e-3, atol=1e-3)
    again = both_moves(blocks, data, store, monkeypatch).networks[0]
    assert (again.row, again.slots, again.widths) == (network.row, network.slots, network.widths)
    with torch.no_grad():
        assert torch.equal(again.net(x), network.net(x))


def test_outputs_of_slots_with_all_their_channels_are_matched(blocks, data, monkeypatch):
    found = both_moves(
        blocks, data, "sqlite://", monkeypatch, options=options(widths=True, distill_features=True)
    )
    assert found.networks[0].widths and found.networks[0].slots


def test_groups_are_no_matter_of_goals_for_slots(blocks, data, monkeypatch):
    found = both_moves(blocks, data, "sqlite://", monkeypatch, macs=None, slots="1x")
    assert not found.networks[0].widths


def test_widths_are_nearest_to_choices() -> None:
    choices = group_choices.GroupChoices(["a", "b"], [[8, 6, 4], [5, 3]])
    assert choices.nearest({"a": 5, "b": 1}) == [1, 1]
    assert choices.nearest({}) == [0, 0]


def test_scores_are_errors_as_the_outputs_feel_them(monkeypatch):
    choices = group_choices.GroupChoices(
        ["a", "b", "c"], [[8, 4, 2]] * 3, [[0.0, 0.1, 0.4], [0.0, 0.2, 0.3], [0.0, 0.0, 0.0]]
    )
    known = {"a": 0.5, "b": 0.1, "c": 0.0}
    subject = SimpleNamespace(
        refresh=lambda net: None,
        quality=lambda net, images: SimpleNamespace(divergence=known[net]),
    )
    channels = SimpleNamespace(
        fitted=lambda widths, base, inputs: next(iter(widths)), original=None, few=[]
    )
    measured: list[str] = []

    def once(what, key, find):
        measured.append(key)
        return find()

    scope = SimpleNamespace(once=once, get=lambda what, key: None)

    def scores(over):
        return group_choices.group_scores(
            choices, channels, subject, 8, scope, 3.0, over, lambda *_: None
        )

    assert scores(lambda: False) == [
        pytest.approx([0.0, 0.5, 2.0]),
        pytest.approx([0.0, 0.1, 0.15]),
        [0.0, 0.0, 0.0],
    ]
    assert measured == ["a", "b", "c"]
    # Without time, all have the sensitivity of slots; without some of it, that of the others.
    assert scores(lambda: True)[1] == pytest.approx([0.0, 0.6, 0.9])
    assert scores(lambda: len(measured) > 3)[1] == pytest.approx([0.0, 1.0, 1.5])
