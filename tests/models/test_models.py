"""The small networks: shapes, convolutions an operator can replace, and errors by text."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from syno import UserError
from syno.network.models import build, describe, list_models, slots
from syno.network.placeholder import Placeholder

SMALL = [name for name in list_models() if describe(name).package is None]
# Without depthwise convolutions, strides and squeezes.
PLAIN = [name for name in SMALL if not name.endswith("-cifar")]
SIZES = [(8, 1), (16, 3), (32, 3), (9, 1), (28, 1)]
SMALLEST_MAP = {8: 4, 16: 4, 32: 8, 9: 4, 28: 7}


def convolutions(net: nn.Module) -> list[nn.Conv2d]:
    """All convolutions, in order of definition."""
    return [module for module in net.modules() if isinstance(module, nn.Conv2d)]


# Sizes of patches.
MULTIPLES = {"convnext-cifar": 2, "deit-cifar": 4}


@pytest.mark.parametrize(
    ("name", "size", "channels"),
    [
        (name, size, channels)
        for name in SMALL
        for size, channels in SIZES
        if size % MULTIPLES.get(name, 1) == 0
    ],
)
def test_a_network_scores_every_class_and_learns_through_every_weight(
    name: str, size: int, channels: int
) -> None:
    width = 6 if name == "deit-cifar" else 4  # a multiple of its heads
    net = build(name, classes=7, channels=channels, size=size, width=width)
    scores = net(torch.randn(3, channels, size, size))
    assert scores.shape == (3, 7)
    scores.square().sum().backward()
    for key, parameter in net.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.abs().max() > 0, key


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(("size", "channels"), SIZES)
def test_every_convolution_keeps_the_size_of_a_map_of_at_least_4(
    name: str, size: int, channels: int
) -> None:
    net = build(name, classes=10, channels=channels, size=size)
    seen: list[tuple[int, ...]] = []

    def watch(module: nn.Conv2d, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        assert inputs[0].shape[2:] == output.shape[2:]
        seen.append(tuple(output.shape))

    for convolution in convolutions(net):
        assert convolution.bias is None
        assert convolution.stride == (1, 1)
        convolution.register_forward_hook(watch)
    net(torch.randn(2, channels, size, size))
    four = name in ("resnet18-small", "resnet34-small")  # four stages
    assert min(shape[2] for shape in seen) == (4 if four and size == 32 else SMALLEST_MAP[size])
    assert max(shape[1] for shape in seen) == (128 if four else 64)


def test_the_default_residual_network_has_six_convolutions_besides_its_stem() -> None:
    net = build("resnet-small", classes=10, channels=3, size=16)
    stem, *others = [c for c in convolutions(net) if c.kernel_size == (3, 3)]
    assert (stem.in_channels, stem.out_channels) == (3, 16)
    pairs = [(c.in_channels, c.out_channels) for c in others]
    assert pairs == [(16, 16), (16, 16), (16, 32), (32, 32), (32, 64), (64, 64)]


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        ("resnet-small", {"blocks": 3}, 19),
        ("resnet-small", {"stages": 1}, 3),
        ("resnet20", {}, 19),
        ("resnet32", {}, 31),
        ("resnet18-small", {}, 17),
        ("resnet34-small", {}, 33),
        ("cnn-small", {}, 7),
        ("cnn-small", {"layers": 1, "stages": 2}, 3),
    ],
)
def test_options_set_the_number_of_convolutions(
    name: str, options: dict[str, int], count: int
) -> None:
    net = build(name, classes=10, channels=3, size=32, **options)
    assert sum(c.kernel_size == (3, 3) for c in convolutions(net)) == count


def test_the_same_seed_gives_the_same_weights() -> None:
    nets = []
    for _ in range(2):
        torch.manual_seed(3)
        nets.append(build("resnet-small", classes=10, channels=1, size=8))
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_an_unknown_model_lists_what_exists_and_what_is_like_it() -> None:
    with pytest.raises(UserError) as error:
        describe("resnet-smal")
    assert str(error.value) == (
        f"unknown model 'resnet-smal'\n  expected: one of {', '.join(list_models())}, or timm/NAME"
        "\n  did you mean: resnet-small, resnet34-small, resnet18-small?"
    )


def test_an_unknown_option_lists_what_exists() -> None:
    with pytest.raises(UserError) as error:
        build("resnet-small", classes=10, channels=3, size=32, depth=8)
    text = str(error.value)
    assert text.startswith("unknown option 'depth' of model 'resnet-small'\n  expected: one of\n")
    for option in describe("resnet-small").options:
        assert f"  {option} = " in text


@pytest.mark.parametrize("value", [0, -1, 2.5, "16", 100_000])
def test_an_option_out_of_range_names_its_range(value: int) -> None:
    with pytest.raises(UserError, match=r"option 'width' .* cannot be .*\n.* from 4 to 512"):
        build("cnn-small", classes=10, channels=3, size=32, width=value)


@pytest.mark.parametrize(
    ("quantity", "value", "least"), [("classes", 1, 2), ("channels", 0, 1), ("size", 3, 4)]
)
def test_a_shape_out_of_range_is_refused(quantity: str, value: int, least: int) -> None:
    shape = {"classes": 10, "channels": 3, "size": 32, quantity: value}
    with pytest.raises(UserError, match=rf"cannot have {quantity} = {value}\n.* at least {least}"):
        build("cnn-small", **shape)


def bindings(net: nn.Module) -> list[tuple[int, int, int]]:
    """(C_in, C_out, H) of each slot, in order."""
    found = [module.binding for module in net.modules() if isinstance(module, Placeholder)]
    return [(b["C_in"], b["C_out"], b["H"]) for b in found]


def test_every_convolution_but_the_stem_becomes_a_slot_that_computes_the_same() -> None:
    net = build("resnet-small", classes=10, channels=1, size=8).eval()
    slotted = slots(net)
    assert bindings(slotted) == [
        (16, 16, 8),
        (16, 16, 8),
        (16, 32, 4),
        (32, 32, 4),
        (32, 64, 4),
        (64, 64, 4),
    ]
    x = torch.randn(2, 1, 8, 8)
    assert torch.equal(slotted(x), net(x))


def test_the_stem_stays_even_when_an_operator_would_fit_it() -> None:
    net = build("cnn-small", classes=10, channels=8, size=16)
    assert bindings(slots(net))[0] == (16, 16, 16)


def test_slots_of_another_network_are_refused_with_the_way_to_go() -> None:
    with pytest.raises(UserError, match=r"got Linear\n  use syno\.substitute\(net, where="):
        slots(nn.Linear(2, 2))
