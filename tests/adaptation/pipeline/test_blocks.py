"""Networks without some of their blocks."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import syno
from syno.adaptation.blocks import chosen_blocks, removable_blocks, without_blocks
from syno.adaptation.pipeline.channel_widths import ChannelWidths
from syno.adaptation.pipeline.group_choices import group_choices
from syno.study.fronts import MACS, PARAMS

from .conftest import adapted, learned, options


class Branch(nn.Module):
    """[N, channels, ...] -> the same, with a residual branch."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, hidden, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(hidden, channels, 3, padding=1),
        )

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return functional.relu(x + scale * self.layers(x))


class Net(nn.Module):
    """[N, 4, 8, 8] -> [N, 3], of which one block does little."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(4, 8, 3, padding=1)
        self.first, self.second = Branch(8, 16), Branch(8, 12)
        self.wide = nn.Sequential(nn.Conv2d(8, 8, 1), nn.ReLU())
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.stem(x))
        x = self.wide(self.second(self.first(x), scale=0.002))
        return self.head(x.mean((2, 3)))


@pytest.fixture(scope="module")
def net(data) -> nn.Module:
    return learned(Net, data)


def test_blocks_are_found_by_the_shapes_of_what_they_get_and_give(net):
    x = torch.randn(2, 4, 8, 8)
    found = removable_blocks(net, x)
    assert found == ["first.layers", "first", "second.layers", "second", "wide"]
    bare = without_blocks(net, ["first", "second"])
    h = net.wide(functional.relu(net.stem(x)))
    torch.testing.assert_close(bare(x), net.head(h.mean((2, 3))))
    assert "second.layers.0.weight" in net.state_dict()  # the network stays as it is
    assert not any(name.startswith(("first", "second")) for name in bare.state_dict())


def test_a_branch_is_no_block_of_its_own():
    far = {"a.mlp": 0.5, "a": 0.2, "b.mlp": 0.1, "b": 0.3, "all": 0.9}
    assert chosen_blocks(far) == ["a", "b.mlp", "b", "all"]


class Square(nn.Module):
    """[N, 8] -> [N, 3], with a block that only happens to give as many channels as it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(8, 16), nn.Linear(16, 3)
        self.block = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
        self.asks = nn.Sequential(nn.Linear(16, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block(functional.relu(self.stem(x)))
        return self.head(self.asks(x) + self.asks[0].bias)


def test_a_network_that_fails_itself_has_no_blocks_but_an_error(net):
    with pytest.raises(RuntimeError, match="channels"):
        removable_blocks(net, torch.randn(1, 5, 8, 8))


def test_a_block_whose_parts_are_asked_for_stays():
    assert removable_blocks(Square().eval(), torch.randn(1, 8)) == ["block"]


class Subject:
    """What channels and blocks need of a subject."""

    def __init__(self, net: nn.Module, example: torch.Tensor) -> None:
        self.original, self.example, self.frozen = net, example, {}

    def inputs(self, count: int) -> list[torch.Tensor]:
        return [torch.randn(count, *self.example.shape[1:])]


class Engine:
    """An engine that does not know the time of layers."""

    layer_seconds: ClassVar[dict[str, float]] = {}
    formats = ()


class Notes:
    def once(self, kind, key, make):
        return make()


def _channels(net: nn.Module, example: torch.Tensor, blocks: dict[str, float]) -> ChannelWidths:
    found = ChannelWidths(Subject(net, example), 64, Notes(), Engine())
    found.__dict__["blocks"] = blocks
    return found


def test_costs_of_blocks_and_channels_together_are_those_of_the_network(net):
    """In the integer program, against the parameters of the networks that are made."""
    x = torch.randn(1, 4, 8, 8)
    channels = _channels(net, x, {"second": 0.1, "wide": 0.2})
    choices = group_choices(channels, ["second.layers.0"], 1.0)
    assert choices.names[-2:] == ["second", "wide"] and choices.blocks == 2
    assert choices.widths[-1] == [1, 0] and choices.errors[-1] == [0.0, 0.2]
    inner = choices.names.index("second.layers.0")
    assert (inner, len(choices.names) - 2) in choices.exclusive
    assert choices.slots[-2] == ["second.layers.0"]
    random = np.random.default_rng(0)
    for _ in range(20):
        places = [int(random.integers(len(of))) for of in choices.widths]
        if any(places[i] and places[j] for i, j in choices.exclusive):
            continue
        widths = choices.widths_of(places)
        made = channels.structure(widths)
        assert channels.fits(widths)
        params = sum(p.numel() for p in made.parameters())
        assert channels.costs(widths)[PARAMS] == params
        for cost in (MACS, PARAMS):
            summed = sum(of[place] for of, place in zip(choices.costs[cost], places, strict=True))
            pairs = choices.shared[cost].items()
            summed += sum(of[places[i]][places[j]] for (i, j), of in pairs)
            least = sum(of[0] for of in choices.costs[cost]) - channels.whole[cost]
            assert summed - least == pytest.approx(channels.costs(widths)[cost])


def test_a_group_through_a_block_without_a_residual_excludes_it():
    channels = _channels(Square().eval(), torch.randn(1, 8), {"block": 0.1})
    choices = group_choices(channels, [], 1.0)
    block = len(choices.names) - 1
    assert {choices.names[i] for i, j in choices.exclusive if j == block} >= {"stem"}
    assert not choices.shared[MACS].keys() & {(i, block) for i in range(block)}


def test_a_block_that_does_little_is_left_out(net, data, tmp_path):
    store = str(tmp_path / "runs.db")
    given = {"macs": "0.62x", "options": options(blocks=True), "name": "blocks"}
    given |= {"operators": ["conv1x1"]}
    found = adapted(net, data, store, **given)
    (network,) = found.networks
    assert [each.block.partition(".")[0] for each in network.blocks] == ["second"]
    assert network.blocks[0].layers == 2 and network.blocks[0].params == 1748
    assert "fewer blocks" in network.row.about
    assert sum(p.numel() for p in network.net.parameters()) == network.row.params
    slots = {row.slot: row for row in network.slots}
    assert slots["second.layers.0"].macs_after == 0 and slots["second.layers.0"].after_ms == 0
    assert network.row.value > found.original.value - 0.05
    assert any(section.title == "Left out of macs 0.62x" for section in found.sections())
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Left out" in page
    x = torch.randn(5, 4, 8, 8)
    library = syno.inference.load(
        found.export(tmp_path / "n", network.name, format="cpp-network").code
    )
    np.testing.assert_allclose(library(x.numpy()), network.net(x).detach(), rtol=1e-3, atol=1e-4)
    again = adapted(net, data, store, **given)
    assert again.networks[0].row == network.row and again.networks[0].blocks == network.blocks
