"""Channel pruning, ours and by Torch-Pruning."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import nn

from marks import slow_but
from syno import UserError
from syno.adaptation.pipeline.assembly import plain
from syno.adaptation.pipeline.rivals.pruning import pruned, torch_pruned
from syno.network import models
from syno.network.channels.groups import channel_groups

from .conftest import learned

X = torch.randn(4, 4, 8, 8)
IMAGES = ("resnet-small", "cnn-small", "resnet18", "mobilenetv2-cifar", "efficientnet-cifar")


def has_torch_pruning() -> bool:
    return importlib.util.find_spec("torch_pruning") is not None


needs_torch_pruning = pytest.mark.skipif(
    not has_torch_pruning(), reason="torch-pruning is not installed (syno[rivals])"
)


def test_a_network_pruned_of_nothing_is_the_same(trained):
    torch.testing.assert_close(pruned(trained, channel_groups(trained, X), 1.0)(X), trained(X))


def test_channels_that_are_added_are_pruned_together(trained):
    found = pruned(trained, channel_groups(trained, X), 0.5)
    assert found.stem.out_channels == found.second.out_channels == 4
    assert found.first.in_channels == found.norm.num_features == found.head.in_features == 4
    assert found.head.out_features == 3
    assert found(X[:2]).shape == (2, 3)
    # The channels that are kept have the largest weights.
    importance = trained.first.weight.detach().square().flatten(1).sum(1)
    kept = importance.topk(4).indices.sort().values
    stem = found.second.weight
    own = trained.second.weight.detach().square().flatten(1).sum(1)
    own = own + trained.stem.weight.detach().square().flatten(1).sum(1)
    rows = own.topk(4).indices.sort().values
    torch.testing.assert_close(stem, trained.second.weight[rows][:, kept])


@pytest.mark.parametrize("name", slow_but(IMAGES, "resnet18"))
def test_models_can_be_pruned(name):
    net = models.build(name, classes=5, channels=3, size=32).eval()
    bare, x = plain(models.slots(net).eval()), torch.randn(2, 3, 32, 32)
    found = pruned(bare, channel_groups(bare, x), 0.5)
    before = sum(p.numel() for p in net.parameters())
    assert sum(p.numel() for p in found.parameters()) < 0.35 * before
    assert found(x).shape == (2, 5)


def test_a_network_without_groups_is_not_pruned():
    net = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU())
    with pytest.raises(UserError, match="no channels that can be pruned"):
        pruned(net, channel_groups(net, torch.randn(1, 4, 8, 8)), 0.5)


def test_what_stays_is_a_multiple(trained):
    groups = channel_groups(trained, X)
    widths = [
        pruned(trained, groups, share, multiple).first.out_channels
        for share, multiple in ((0.5, 3), (0.5, 4), (0.6, 4), (0.9, 5), (0.1, 16))
    ]
    assert widths == [6, 4, 8, 8, 8]


@needs_torch_pruning
@pytest.mark.parametrize("name", slow_but(IMAGES, "mobilenetv2-cifar"))
def test_torch_pruning_finds_the_same_groups(name):
    """Both keep half of the channels of each group, so that all weights have the same shapes."""
    net = models.build(name, classes=5, channels=3, size=32).eval()
    x = torch.randn(2, 3, 32, 32)
    other = torch_pruned(net, x, 0.5)
    assert other(x).shape == (2, 5) and next(other.parameters()).requires_grad
    own = pruned(net, channel_groups(net, x), 0.5)
    shapes = [{n: tuple(p.shape) for n, p in each.named_parameters()} for each in (other, own)]
    assert shapes[0] == shapes[1]


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 16), nn.Linear(4, 16)
        self.first, self.second = nn.Linear(16, 3), nn.Linear(16, 2)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.relu(self.one(x) + self.other(y))
        return self.first(h), self.second(h)


@needs_torch_pruning
def test_torch_pruning_keeps_all_outputs():
    found = torch_pruned(Two(), (torch.randn(1, 6), torch.randn(1, 4)), 0.5)
    assert found.one.out_features == found.second.in_features == 8
    assert (found.first.out_features, found.second.out_features) == (3, 2)


@needs_torch_pruning
def test_what_torch_pruning_cannot_prune_is_a_reason(data):
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.head = nn.Conv2d(4, 8, 3, padding=1), nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.stem(x).reshape(len(x), 8, 64).mean(2))

    with pytest.raises(UserError, match="Torch-Pruning cannot prune the network: "):
        torch_pruned(learned(Odd, data), X[:1], 0.5)


@needs_torch_pruning
def test_torch_pruning_keeps_multiples():
    net = models.build("mobilenetv2-cifar", classes=5, channels=3, size=32).eval()
    found = torch_pruned(net, torch.randn(1, 3, 32, 32), 0.45, 16)
    before = [m.out_channels for m in net.modules() if isinstance(m, nn.Conv2d)]
    after = [m.out_channels for m in found.modules() if isinstance(m, nn.Conv2d)]
    assert all(new % 16 == 0 or new == old for new, old in zip(after, before, strict=True))
    assert sum(after) < 0.65 * sum(before)
