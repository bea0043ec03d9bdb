"""Networks of torchvision with initial weights, for any number of channels and for small images.

Each function maps (classes, channels, size) and options to a network
[N, channels, size, size] -> [N, classes]. With the default options and 3 channels it is the
network that torchvision has under that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any

from torch import nn

from syno.network.models.extras import load_extra

_VITS_MLP = 4  # an MLP is so many times as wide as the embedding (Dosovitskiy et al. 2020)


def resnet(
    classes: int,
    channels: int,
    size: int,
    *,
    blocks: Sequence[int],
    bottleneck: bool,
    width: int,
    cifar_stem: int,
    groups: int = 1,
) -> nn.Module:
    """ResNet and ResNeXt (He et al. 2015; Xie et al. 2016), scaled to `width` channels."""
    models = _models("resnet")
    kind = models.resnet.Bottleneck if bottleneck else models.resnet.BasicBlock

    plain: Any = models.ResNet  # a class of an optional package

    class Scaled(plain):
        """Every number of channels times width / 64."""

        def _make_layer(
            self, block: object, planes: int, *args: object, **more: object
        ) -> nn.Module:
            if planes == 64:  # the first stage comes after a stem of `width` channels
                self.inplanes = width
            return super()._make_layer(block, planes * width // 64, *args, **more)

    net = (plain if width == 64 else Scaled)(kind, list(blocks), classes, groups=groups)
    if width != 64:
        net.__class__ = plain  # so that it can be pickled: what was scaled is done
        net.bn1 = nn.BatchNorm2d(width)
        net.fc = nn.Linear(512 * width // 64 * kind.expansion, classes)
    if cifar_stem:
        net.conv1 = _initial(nn.Conv2d(channels, width, 3, padding=1, bias=False))
        net.maxpool = nn.Identity()
    elif channels != 3 or width != 64:
        net.conv1 = _initial(nn.Conv2d(channels, width, 7, 2, padding=3, bias=False))
    return net


def densenet121(
    classes: int, channels: int, size: int, *, growth: int, cifar_stem: int
) -> nn.Module:
    """DenseNet-121 (Huang et al. 2016)."""
    net = _models("densenet121").DenseNet(
        growth_rate=growth, num_init_features=2 * growth, num_classes=classes
    )
    if cifar_stem:
        net.features.conv0 = _initial(nn.Conv2d(channels, 2 * growth, 3, padding=1, bias=False))
        net.features.pool0 = nn.Identity()
    elif channels != 3:
        stem = nn.Conv2d(channels, 2 * growth, 7, 2, padding=3, bias=False)
        net.features.conv0 = _initial(stem)
    return net


def efficientnet_v2_s(classes: int, channels: int, size: int, *, cifar_stem: int) -> nn.Module:
    """EfficientNetV2-S (Tan and Le 2021)."""
    net = _models("efficientnet_v2_s").efficientnet_v2_s(weights=None, num_classes=classes)
    _restem(net.features[0], channels, cifar_stem)
    return net


def mobilenet_v2(
    classes: int, channels: int, size: int, *, percent: int, cifar_stem: int
) -> nn.Module:
    """MobileNetV2 (Sandler et al. 2018)."""
    net = _models("mobilenet_v2").mobilenet_v2(
        weights=None, num_classes=classes, width_mult=percent / 100
    )
    _restem(net.features[0], channels, cifar_stem)
    return net


def vit_b_16(
    classes: int, channels: int, size: int, *, patch: int, layers: int, heads: int, width: int
) -> nn.Module:
    """ViT-B/16 (Dosovitskiy et al. 2020)."""
    net = _models("vit_b_16").VisionTransformer(
        image_size=size,
        patch_size=patch,
        num_layers=layers,
        num_heads=heads,
        hidden_dim=width,
        mlp_dim=_VITS_MLP * width,
        num_classes=classes,
    )
    if channels != 3:
        net.conv_proj = _initial(nn.Conv2d(channels, width, patch, patch))
    return net


def convnext_tiny(classes: int, channels: int, size: int, *, width: int) -> nn.Module:
    """ConvNeXt-T (Liu et al. 2022)."""
    models = _models("convnext_tiny")
    setting = models.convnext.CNBlockConfig
    stages = [
        setting(width << i, (width << (i + 1)) if i < 3 else None, blocks)
        for i, blocks in enumerate((3, 3, 9, 3))
    ]
    norm = partial(models.convnext.LayerNorm2d, eps=1e-6)
    net = models.ConvNeXt(stages, stochastic_depth_prob=0.1, num_classes=classes, norm_layer=norm)
    if channels != 3:
        net.features[0][0] = _initial(nn.Conv2d(channels, width, 4, 4))
    return net


def _models(name: str) -> ModuleType:
    return load_extra("torchvision", f"model '{name}'").models


def _restem(stem: nn.Sequential, channels: int, cifar_stem: int) -> None:
    """Another first convolution where the images, or the stride for them, are other ones."""
    first = stem[0]
    assert isinstance(first, nn.Conv2d)
    if channels == 3 and not cifar_stem:
        return
    outputs, stride = first.out_channels, 1 if cifar_stem else first.stride[0]
    stem[0] = _initial(nn.Conv2d(channels, outputs, 3, stride, padding=1, bias=False))


def _initial(convolution: nn.Conv2d) -> nn.Conv2d:
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    if convolution.bias is not None:
        nn.init.zeros_(convolution.bias)
    return convolution
