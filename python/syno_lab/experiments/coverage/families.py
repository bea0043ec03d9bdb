"""Families of networks for the classification of images, and the smallest network of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from syno._util.errors import UserError, first_line
from syno.network.models.extras import load_extra

TORCHVISION, TIMM = "torchvision", "timm"
# What layers make their parameters with.
_OF_PARAMETERS = (torch.empty, torch.zeros, torch.ones)
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


class _ParametersOnMeta(TorchFunctionMode):
    """Puts parameters on the device `meta`, and leaves their values to other tensors.

    Some networks compute their widths with tensors.
    """

    def __torch_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        if function in _OF_PARAMETERS and given.get("device") is None:
            given["device"] = "meta"
        return function(*args, **given)


def smallest(family: Family) -> tuple[str, int]:
    """The network with the fewest parameters, and how many. UserError where none can be built."""
    sizes: dict[str, int] = {}
    reasons = []
    for name in family.networks:
        # The second way takes longer, and is for networks that compute while they are built.
        for place in (torch.device("meta"), _ParametersOnMeta()):
            try:
                with place:
                    net = built(family.package, name)
            except Exception as error:
                reason = f"{name}: {first_line(error)}"
                continue
            sizes[name] = sum(parameter.numel() for parameter in net.parameters())
            break
        else:
            reasons.append(reason)
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
