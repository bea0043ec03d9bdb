"""Families of networks for the classification of images, and the smallest network of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from syno._util.errors import UserError, first_line
from syno.network.models.extras import load_extra

TORCHVISION, TIMM = "torchvision", "timm"
_TESTS = "test_"  # what the names of networks begin with that timm has for its own tests


@dataclass(frozen=True)
class Family:
    """The networks of one file of a package."""

    package: str
    name: str
    networks: tuple[str, ...]

    @property
    def key(self) -> str:
        """How results name it."""
        return f"{self.package}/{self.name}"


def families() -> list[Family]:
    """The families of both packages. UserError where one of them is not installed."""
    return [*_of_torchvision(), *_of_timm()]


def _of_torchvision() -> list[Family]:
    models = load_extra(TORCHVISION, "coverage").models
    found = defaultdict(list)
    for name in models.list_models(module=models):
        builder = models.get_model_builder(name)
        found[builder.__module__.rpartition(".")[2]].append(name)
    return [Family(TORCHVISION, name, tuple(each)) for name, each in sorted(found.items())]


def _of_timm() -> list[Family]:
    timm = load_extra(TIMM, "coverage")
    found = {
        module: tuple(n for n in timm.list_models(module=module) if not n.startswith(_TESTS))
        for module in timm.list_modules()
    }
    return [Family(TIMM, name, each) for name, each in sorted(found.items()) if each]


def smallest(family: Family) -> tuple[str, int]:
    """The network with the fewest parameters, and how many. UserError where none can be built."""
    sizes: dict[str, int] = {}
    reasons = []
    for name in family.networks:
        try:
            with torch.device("meta"):
                net = built(family.package, name)
        except Exception as error:  # one that computes with values while it is built
            reasons.append(f"{name}: {first_line(error)}")
            continue
        sizes[name] = sum(parameter.numel() for parameter in net.parameters())
    if not sizes:
        raise UserError(f"no network of {family.key} can be built: {reasons[0]}")
    return min(sizes.items(), key=lambda each: each[1])


def built(package: str, name: str) -> nn.Module:
    """A network in evaluation mode, with initial weights."""
    make: Callable[..., nn.Module]
    if package == TORCHVISION:
        make = load_extra(TORCHVISION, "coverage").models.get_model
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        return make(name, weights=None, **options).eval()
    make = load_extra(TIMM, "coverage").create_model
    return make(name, pretrained=False).eval()


def with_statistics(net: nn.Module) -> nn.Module:
    """A network whose normalizations do something: running means and variances are random."""
    generator = torch.Generator().manual_seed(1)
    for module in net.modules():
        mean, variance = (getattr(module, f"running_{each}", None) for each in ("mean", "var"))
        if isinstance(mean, torch.Tensor) and isinstance(variance, torch.Tensor):
            mean.copy_(torch.randn(mean.shape, generator=generator) / 10)
            variance.copy_(torch.rand(variance.shape, generator=generator) / 2 + 0.75)
    return net


def input_of(package: str, net: nn.Module) -> tuple[int, ...]:
    """The shape of an image that the network takes."""
    if package == TORCHVISION:
        return (3, 224, 224)
    config = getattr(net, "pretrained_cfg", {})
    return tuple(config.get("input_size", (3, 224, 224)))
