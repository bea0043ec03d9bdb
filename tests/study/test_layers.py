"""Searches in networks of other layers than square 3x3 convolutions."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import syno
from marks import with_slow
from syno import UserError
from syno.data.custom import custom_evaluation
from syno.network.surgery import slot_bindings
from syno.study.evaluate.network import Network
from syno.study.specifications import check_fit, specification_for


def prepared(net: nn.Module, *shape: int) -> Network:
    torch.manual_seed(0)
    example = torch.zeros(2, *shape)
    return Network.custom(
        net, custom_evaluation(lambda n: 1.0, metric=None, maximize=True, example=example), 0
    )


def signal() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(4, 8, 9, padding=4),
        nn.ReLU(),
        nn.Conv1d(8, 8, 9, stride=4, padding=4, groups=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 16, 3),
    )


def volume() -> nn.Module:
    return nn.Sequential(nn.Conv3d(4, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 3))


def vectors() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))


def positions() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))


def grouped() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(8, 8, 3, padding=1, groups=4), nn.ReLU(), nn.Conv2d(8, 16, 5, padding=2, groups=2)
    )


def oblong() -> nn.Module:
    return nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))


def enlarging() -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose2d(8, 8, 4, stride=2, padding=1, groups=2),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 8, 4, stride=4),
    )


def enlarging_signal() -> nn.Module:
    return nn.Sequential(nn.ConvTranspose1d(4, 8, 8, stride=4, padding=2), nn.Tanh())


def enlarging_volume() -> nn.Module:
    return nn.Sequential(nn.ConvTranspose3d(4, 8, 2, stride=2), nn.ReLU())


def dilated() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(4, 8, 3, padding=2, dilation=2), nn.ReLU(), nn.Conv1d(8, 8, 3, padding=1)
    )


class Excited(nn.Module):
    """A map that is scaled by what its mean says, in layers of a single position."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1)
        self.squeeze, self.excite = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return y * torch.sigmoid(self.excite(torch.relu(self.squeeze(y.mean((2, 3), True)))))


# A network, its input, its slots, and the shapes of the operators that are searched for.
NETWORKS = {
    "signals": (signal, (4, 64), ["0"], "[N, C_in: unordered, L]"),
    "volumes": (volume, (4, 4, 4, 4), ["0"], "[N, C_in: unordered, D, H, W]"),
    "vectors": (vectors, (32,), ["0", "2"], "[N, H_in: unordered]"),
    "positions": (positions, (10, 16), ["0", "2"], "[N, seq_len, H_in: unordered]"),
    "groups": (grouped, (8, 8, 8), ["0", "2"], "[N, C_in: unordered, H, H]"),
    "larger maps": (enlarging, (8, 4, 4), ["0", "2"], "[N, C_in: unordered, H, H]"),
    "larger maps that are not square": (
        enlarging,
        (8, 4, 5),
        ["0", "2"],
        "[N, C_in: unordered, H, W]",
    ),
    "larger signals": (enlarging_signal, (4, 16), ["0"], "[N, C_in: unordered, L]"),
    "larger volumes": (enlarging_volume, (4, 4, 4, 4), ["0"], "[N, C_in: unordered, D, H, W]"),
    "dilated signals": (dilated, (4, 30), ["0", "2"], "[N, C_in: unordered, L]"),
    "maps that are not square": (oblong, (4, 8, 12), ["0", "2"], "[N, C_in: unordered, H, W]"),
}


def test_layers_that_follow_a_mean_are_not_lost_to_a_small_resolution():
    network = prepared(Excited(), 8, 4, 4)
    assert [row.name for row in syno.layer_report(network.template).kept] == ["squeeze", "excite"]
    assert network.too_small() is None
    assert network.in_words() == "operators replace 1 of 3 layers with 99% of the MACs: conv"


@pytest.mark.parametrize("name", with_slow(NETWORKS, "larger volumes"))
def test_the_layers_and_the_space_of_a_search_are_chosen_by_the_network(name):
    make, shape, names, wanted = NETWORKS[name]
    network = prepared(make(), *shape)
    assert list(syno.slots(network.template)) == names
    specification = specification_for(None, {}, network)
    assert specification.input == wanted
    sampler = syno.Sampler.from_specification(specification, net=network.template, max_nodes=3000)
    operator = sampler.operators[0]
    net, report = network.with_operator(operator)
    assert [row.name for row in report.replaced] == names
    x = torch.randn(2, *shape)
    assert net(x).shape == network.original()(x).shape
    net(x).square().mean().backward()
    weights = [p for n, p in net.named_parameters() if "kernel" in n]
    assert weights and all(p.grad.abs().sum() > 0 for p in weights)


@pytest.mark.parametrize(
    ("layer", "formula", "shape"),
    [
        (
            nn.Conv1d(4, 6, 3, padding=1),
            "y[n,o,t] = sum(i:C_in, a:k) x[n,i,t+a-k/2] * w0[o,i,a]",
            (4, 12),
        ),
        (
            nn.Conv3d(4, 6, 3, padding=1),
            "y[n,o,d,h,w] = sum(i:C_in, a:k, b:k, c:k) "
            "x[n,i,d+a-k/2,h+b-k/2,w+c-k/2] * w0[o,i,a,b,c]",
            (4, 4, 5, 6),
        ),
    ],
)
def test_an_operator_that_is_the_convolution_gives_the_same_network(layer, formula, shape):
    where = syno.conv1d() if isinstance(layer, nn.Conv1d) else syno.conv3d()
    net = syno.substitute(nn.Sequential(layer), where, torch.zeros(1, *shape))
    (slot,) = syno.slots(net).values()
    names = ", ".join(name or "N" for name in slot.input_names)
    operator = syno.Operator.parse(
        formula, input=f"[{names}]", output=f"[{names.replace('C_in', 'C_out')}]", sizes={"k": 3}
    )
    specification = syno.Specification(
        f"[{names}]",
        f"[{names.replace('C_in', 'C_out')}]",
        [f"{name}: 8" for name in ["N", *slot.binding]],
        ["k=3: 8"],
        passed_through=[(0, 0)],
    )
    syno.replace(net, operator.with_specification(specification))
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(layer.weight)
    x = torch.randn(2, *shape)
    assert torch.allclose(net(x), layer(x), atol=1e-5)


def test_a_strided_signal_is_averaged_first_or_left_to_the_operator():
    net = syno.substitute(signal(), syno.conv1d(stride=4), torch.zeros(1, 4, 64))
    rows = {row.name: row for row in syno.layer_report(net).rows}
    assert rows["2"].binding == {"C_in": 8, "C_out": 8, "L": 16}
    assert "slot, average pooling of 4 first" in str(syno.layer_report(net))
    inside = nn.Sequential(nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.ReLU())
    template = syno.substitute(inside, syno.conv2d(stride=2, pool=False), torch.zeros(1, 4, 16, 16))
    network = prepared(template, 4, 16, 16)
    specification = specification_for(None, {}, network)
    assert specification.input == "[N, C_in: unordered, s*H, s*H]"
    template = syno.substitute(signal(), syno.conv1d(stride=4, pool=False), torch.zeros(1, 4, 64))
    network = prepared(template, 4, 64)
    specification = specification_for(None, {}, network)
    assert specification.input == "[N, C_in: unordered, s*L]"
    found = slot_bindings(template, specification)
    assert found["bindings"] == [{"C_in": 8, "C_out": 8, "L": 16, "s": 4}]


def test_a_specification_that_fits_no_slot_is_refused_once_with_the_one_that_fits():
    network = prepared(signal(), 4, 64)
    given = syno.Specification(
        "[N, C_in, H, H]", "[N, C_out, H, H]", ["N: 0", "C_in: 2", "C_out: 2", "H: 0"], ["k=3: 2"]
    )
    with pytest.raises(UserError) as caught:
        check_fit(given, network)
    text = str(caught.value)
    assert text.count("no slot of the network fits") == 1
    assert "[N, C_in: unordered, L] -> [N, C_out: unordered, L], fits" in text


def test_a_network_without_a_layer_to_replace_says_why():
    with pytest.raises(UserError, match=r"(?s)has no slots.*it is the network itself|below 4"):
        prepared(nn.Sequential(nn.Linear(2, 3)), 2)


class Twin(nn.Module):
    """Compares two signals."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.Conv1d(4, 8, 3, padding=1)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (self.tower(a) * self.tower(b)).mean((1, 2))


def test_a_search_of_a_network_with_several_inputs_needs_all_of_them():
    x = torch.zeros(1, 4, 16)
    net = syno.substitute(Twin(), example_input=(x, x))
    with pytest.raises(
        UserError,
        match=r"Twin does not take the samples of example_input\n"
        r"  a batch of samples: \[1, 4, 16\] float32\n.*missing 1 required",
    ):
        syno.search(net, evaluate=lambda n: 1.0, example_input=x, store="sqlite://")
