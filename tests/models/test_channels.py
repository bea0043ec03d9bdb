"""Channels that can be removed together: what is left computes the same where nobody read them."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from tests.inference.grammar import inputs, network
from torch import nn

from marks import slow_but
from syno import UserError
from syno.network import models
from syno.network.channels.groups import ChannelGroup, channel_groups, followed_groups, without

from .small import SMALL


def blind(net: nn.Module, removed: list[tuple[ChannelGroup, list[int]]]) -> nn.Module:
    """The network whose layers multiply some of the channels that they read by zero."""
    made = copy.deepcopy(net)
    for group, channels in removed:
        for (name, dim), indices in group.indices.items():
            if dim == 1:
                gone = torch.from_numpy(indices[channels].reshape(-1))
                made.state_dict()[name].index_fill_(1, gone, 0.0)
    return made


def drawn(groups: list[ChannelGroup], seed: int) -> list[tuple[ChannelGroup, list[int]]]:
    rng = random.Random(seed)
    wide = [group for group in groups if group.size > 1]
    return [(g, rng.sample(range(g.size), rng.randint(1, g.size - 1))) for g in wide]


def settle(net: nn.Module) -> nn.Module:
    """Statistics and weights of a network that was trained."""
    for module in net.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            nn.init.normal_(module.weight, 1, 0.2)
            nn.init.normal_(module.bias, 0, 0.2)
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return net.eval()


def check(net: nn.Module, *x: torch.Tensor, seed: int = 0) -> list[ChannelGroup]:
    groups = channel_groups(net, *x)
    removed = drawn(groups, seed)
    before = copy.deepcopy(net.state_dict())
    smaller = without(net, removed)
    with torch.no_grad():
        wanted, found = blind(net, removed)(*x), smaller(*x)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(net.state_dict(), before)
    for group, channels in removed:
        for (name, dim), indices in group.indices.items():
            old, new = net.state_dict()[name], smaller.state_dict()[name]
            assert new.shape[dim] <= old.shape[dim] - len(channels) * indices.shape[1] or (
                len({g.name for g, _ in removed if (name, dim) in g.indices}) > 1
            )
    assert without(smaller, []) is not smaller
    return groups


def groups_of(net: nn.Module, *shape: int) -> dict[str, int]:
    torch.manual_seed(0)
    return {g.name: g.size for g in check(settle(net), torch.randn(2, *shape))}


def conv(i: int, o: int, k: int = 3, **more: int) -> nn.Conv2d:
    return nn.Conv2d(i, o, k, padding=k // 2, **more)


class Added(nn.Module):
    """x + f(x)."""

    def __init__(self, f: nn.Module) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.f(x)


class Joined(nn.Module):
    """Both, side by side."""

    def __init__(self, f: nn.Module, g: nn.Module) -> None:
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.f(x), self.g(x)], 1)


class Gated(nn.Module):
    """Half of the channels times the other half."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, 1)
        return a * torch.sigmoid(b)


class Literal(nn.Module):
    """A reshape that knows how many channels there are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 8, 6 * 6).mean(2)


class Products(nn.Module):
    """Products of channels with each other, which no weight reads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(2) @ x.flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """Two heads, whose size comes from the shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.qk, self.v, self.out = nn.Linear(8, 16), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, _ = x.shape
        q, k = (each.unflatten(2, (2, -1)).transpose(1, 2) for each in self.qk(x).chunk(2, 2))
        v = self.v(x).unflatten(2, (2, -1)).transpose(1, 2)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(n, t, -1))


def test_layers_one_after_the_other() -> None:
    net = nn.Sequential(
        conv(3, 8), nn.BatchNorm2d(8), nn.ReLU(), conv(8, 6), nn.Flatten(), nn.Linear(216, 5)
    )
    assert groups_of(net, 3, 6, 6) == {"0": 8, "3": 6}


def test_additions_join_channels() -> None:
    net = nn.Sequential(
        conv(3, 8),
        Added(nn.Sequential(conv(8, 4), nn.ReLU(), conv(4, 8))),
        Added(conv(8, 8)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    assert groups_of(net, 3, 6, 6) == {"0": 8, "1.f.0": 4}


def test_joins_and_halves() -> None:
    net = nn.Sequential(
        conv(3, 6), Joined(conv(6, 4), conv(6, 2, 1)), conv(6, 10), Gated(), conv(5, 2)
    )
    assert groups_of(net, 3, 6, 6) == {"0": 6, "1.f": 4, "1.g": 2, "2": 5}


def test_depthwise_and_grouped_convolutions() -> None:
    net = nn.Sequential(
        conv(3, 8), conv(8, 8, groups=8), conv(8, 12, groups=4), conv(12, 6, groups=2), conv(6, 2)
    )
    # Of a grouped convolution, all groups lose as much.
    found = groups_of(net, 3, 6, 6)
    assert found["0"] == 2 and found["3"] == 3


def test_what_is_not_followed_is_kept() -> None:
    assert groups_of(nn.Sequential(conv(3, 8), nn.Softmax(1), conv(8, 2)), 3, 6, 6) == {}
    assert groups_of(nn.Sequential(conv(3, 8), nn.GroupNorm(2, 8), conv(8, 2)), 3, 6, 6) == {}
    net = nn.Sequential(conv(3, 8), Literal(), nn.Linear(8, 2))
    assert groups_of(net, 3, 6, 6) == {}
    assert [g.name for g in followed_groups(net, (torch.zeros(2, 3, 6, 6),))] == ["0"]
    tokens = nn.Sequential(nn.Linear(4, 8), Products(), nn.Linear(5, 3))
    assert groups_of(tokens, 5, 4) == {}
    shared = conv(4, 4)
    assert (
        groups_of(nn.Sequential(conv(3, 4), shared, nn.ReLU(), shared, conv(4, 2)), 3, 6, 6) == {}
    )


def test_attention() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Attention(), nn.Linear(8, 3))
    # Values lose the same channels in each head.
    assert groups_of(net, 5, 4) == {"0": 8, "2.v": 6, "2.out": 8}


QUICK = ("mobilenetv3-cifar",)


@pytest.mark.parametrize("name", slow_but(SMALL, *QUICK))
def test_models(name: str) -> None:
    torch.manual_seed(0)
    net = settle(models.build(name, **SMALL[name]))
    example = models.built(net).example()
    x = torch.randn(example.shape) if example.is_floating_point() else example
    for seed in range(2):
        found = check(net, x, seed=seed)
    assert found or name.startswith("gpt2")


@pytest.mark.parametrize("first", slow_but(range(0, 1000, 10), 0))
def test_random_networks_are_right_or_raise(first: int) -> None:
    for seed in range(first, first + 10):
        net = network(seed).eval()
        x = inputs(net, 2)
        for group in followed_groups(net, x):
            removed = drawn([group], seed)
            try:
                found = without(net, removed)(*x)
            except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
                continue  # a number of channels in the code
            torch.testing.assert_close(found, blind(net, removed)(*x), rtol=1e-4, atol=1e-4)


def test_bad_requests() -> None:
    net = nn.Sequential(conv(3, 8), conv(8, 2)).eval()
    (group,) = channel_groups(net, torch.zeros(1, 3, 6, 6))
    with pytest.raises(UserError, match=r"all 8 channels of '0' would be removed\n  expected: at"):
        without(net, [(group, range(8))])
    with pytest.raises(UserError, match=r"torch\.export cannot trace the Sequential"):
        channel_groups(net, torch.zeros(1, 4, 6, 6))
