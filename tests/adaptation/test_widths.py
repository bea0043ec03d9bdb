"""Fewer channels in closed form: the order of elimination, its errors, and fitted networks."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import nn

from syno import UserError
from syno.adaptation.widths import Elimination, eliminations, narrowed
from syno.network import models
from syno.network.channels.groups import channel_groups, without


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def trained_like(*layers: nn.Module) -> nn.Sequential:
    """A network whose statistics are those of its values, in evaluation mode."""
    net = nn.Sequential(*layers)
    for module in net.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.momentum = None
    net.train()(torch.randn(256, *SHAPE))
    return net.eval()


SHAPE = (3, 8, 8)
DATA = list(torch.randn(96, *SHAPE, generator=torch.Generator().manual_seed(1)).split(32))


def all_eliminations(net: nn.Module) -> dict[str, Elimination]:
    found = eliminations(net, channel_groups(net, DATA[0][:1]), DATA)
    return {each.group.name: each for each in found}


def change(net: nn.Module, other: nn.Module) -> float:
    x = torch.cat(DATA)
    with torch.no_grad():
        a, b = net(x), other(x)
    a = a - a.mean(0)
    return float((a - (b - b.mean(0))).square().sum() / a.square().sum())


def conv(i: int, o: int, k: int = 3, **more: int) -> nn.Conv2d:
    return nn.Conv2d(i, o, k, padding=k // 2, **more)


def tail(channels: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 5)]


@pytest.mark.parametrize(
    "reader",
    [
        lambda: conv(8, 6),
        lambda: conv(8, 6, 1),
        lambda: nn.Conv2d(8, 6, 2, stride=2),
        lambda: conv(8, 6, bias=False),
    ],
)
def test_channels_that_others_are_multiples_of_cost_nothing(
    reader: Callable[[], nn.Module],
) -> None:
    first = conv(3, 8)
    with torch.no_grad():
        first.weight[4:] = 2 * first.weight[:4]
        assert first.bias is not None
        first.bias[4:] = 2 * first.bias[:4]
    net = trained_like(first, nn.ReLU(), reader(), nn.BatchNorm2d(6), nn.ReLU(), *tail(6))
    found = all_eliminations(net)["0"]
    assert found.without(4) < 1e-3 < 0.02 < found.without(5)
    assert {channel % 4 for channel in found.order[:4]} == {0, 1, 2, 3}
    smaller = narrowed(net, [(found, 4)], DATA)
    assert smaller[0].out_channels == 4 and change(net, smaller) < 1e-4
    # Not so without a fit.
    assert change(net, without(net, [(found.group, found.order[:4])])) > 1e-2


def test_errors_are_those_of_least_squares() -> None:
    """Of a linear layer that reads the channels, for every set of those that go."""
    net = trained_like(nn.Flatten(), nn.Linear(192, 6), nn.Tanh(), nn.Linear(6, 4))
    found = all_eliminations(net)["1"]
    with torch.no_grad():
        z = net[:3](torch.cat(DATA)).double()
        y = net(torch.cat(DATA)).double()
    z, y = z - z.mean(0), y - y.mean(0)

    def error(channels: tuple[int, ...]) -> float:
        part = z[:, [c for c in range(6) if c not in channels]]
        fit = part @ torch.linalg.lstsq(part, y).solution
        return float((y - fit).square().sum() / y.square().sum())

    for count in range(1, 6):
        assert found.without(count) == pytest.approx(error(found.order[:count]), rel=0.02, abs=1e-4)
    # The first one is the best one, and none goes that is much better to keep.
    least = min(error((c,)) for c in range(6))
    assert error(found.order[:1]) == pytest.approx(least, rel=1e-9)
    best = min(error(pair) for pair in itertools.combinations(range(6), 2))
    assert error(found.order[:2]) <= 1.5 * best


def test_fits_are_one_after_the_other_and_take_up_means() -> None:
    net = trained_like(
        conv(3, 12),
        nn.ReLU(),
        conv(12, 10, bias=False),
        nn.BatchNorm2d(10),
        nn.ReLU(),
        conv(10, 8),
        nn.ReLU(),
        *tail(8),
    )
    found = all_eliminations(net)
    plans = [(each, each.group.size * 3 // 4) for each in found.values()]
    smaller = narrowed(net, plans, DATA)
    plain = without(net, [(e.group, e.order[: e.group.size - width]) for e, width in plans])
    assert change(net, smaller) < 0.8 * change(net, plain)
    x = torch.cat(DATA)
    with torch.no_grad():
        assert (net(x).mean(0) - smaller(x).mean(0)).abs().max() < 0.05 * net(x).std()


def test_a_network_with_squeezes_and_depthwise_layers() -> None:
    net = models.build("mobilenetv3-cifar", width=8, size=8, classes=4)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
    net.train()(torch.randn(256, *SHAPE))
    net.eval()
    found = all_eliminations(net)
    assert all(list(e.errors) == sorted(e.errors) for e in found.values())
    hidden = [each for name, each in found.items() if ".expand." in name]
    assert len(hidden) >= 6
    plans = [(each, each.group.size * 3 // 4) for each in hidden]
    smaller = narrowed(net, plans, DATA)
    plain = without(net, [(e.group, e.order[: e.group.size - width]) for e, width in plans])
    assert change(net, smaller) < 0.7 * change(net, plain)


def test_all_channels_stay() -> None:
    net = trained_like(conv(3, 8), nn.ReLU(), conv(8, 6), nn.ReLU(), *tail(6))
    found = all_eliminations(net)
    same = narrowed(net, [(each, each.group.size) for each in found.values()], DATA)
    assert change(net, same) < 1e-5


@pytest.mark.parametrize("width", [0, 9])
def test_bad_widths(width: int) -> None:
    net = trained_like(conv(3, 8), nn.ReLU(), conv(8, 6), nn.ReLU(), *tail(6))
    found = all_eliminations(net)["0"]
    with pytest.raises(
        UserError, match=f"8 channels of '0' cannot become {width}\n  expected: 1 to 8"
    ):
        narrowed(net, [(found, width)], DATA)
