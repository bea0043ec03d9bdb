"""The catalogue: every model by name, its options, and the layers of it that operators replace.

The layers of the paper's models follow section 9.1 and the sizes that its artifact published:
standard 1x1 and 3x3 convolutions of ResNets, the 3x3 ones of the others, QKV projections of GPT-2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from syno.network.layers import conv2d, linear
from syno.network.models.info import Images, ModelInfo, ModelOption

if TYPE_CHECKING:
    from torch import nn


def _small(module: str, kind: str, **fixed: object) -> Callable[..., nn.Module]:
    def make(classes: int, channels: int, size: int, **options: int) -> nn.Module:
        import importlib

        found = getattr(importlib.import_module(f"syno.network.models.{module}"), kind)
        return found(classes, channels, size, **fixed | options)

    return make


def _torchvision(function: str, **fixed: object) -> Callable[..., nn.Module]:
    def make(classes: int, channels: int, size: int, **options: int) -> nn.Module:
        from syno.network.models import torchvision_models

        return getattr(torchvision_models, function)(classes, channels, size, **fixed | options)

    return make


def _gpt2(**options: int) -> nn.Module:
    from syno.network.models.language import gpt2

    return gpt2(**options)


_WIDTH = ModelOption(16, 4, 512, "channels of the first stage; doubled at each further stage")
_STAGES = ModelOption(3, 1, 5, "stages; the map is halved between two of them while it stays >= 4")
_CIFAR = ModelOption(0, 0, 1, "1: a 3x3 stem of stride 1 without pooling, for images of 32 px")
_BASE = ModelOption(64, 4, 512, "channels of the stem and the first stage; all others follow")
_SMALL = Images(classes=10, size=32)
_LARGE = Images(classes=1000, size=224, least=32)
_BODY = (conv2d(kernel=3, groups=1, name="body.*"),)
# A stem has three channels and stays in the paper; the name says so for images with more.
_RESNET = (conv2d(kernel=(1, 3), groups=1, stride=(1, 2), name="layer*"),)


def _small_resnet(name: str, blocks: tuple[int, ...], like: str) -> ModelInfo:
    return ModelInfo(
        name=name,
        summary=f"small residual network with the blocks of {like}",
        builder=_small("resnet", "SmallResNet", blocks=blocks),
        rules=_BODY,
        options={"width": _WIDTH},
        images=_SMALL,
    )


def _efficient(name: str, function: str, like: str, expansion: int) -> ModelInfo:
    return ModelInfo(
        name=name,
        summary=f"small network with the blocks of {like}; slots are its 1x1 convolutions",
        builder=_small("efficient", function),
        rules=(conv2d(kernel=1, groups=1, name="body.*"),),
        options={
            "width": ModelOption(16, 4, 256, "channels of the first stage; the last has 4 times"),
            "expansion": ModelOption(expansion, 1, 16, "channels inside of a block for each input"),
        },
        images=_SMALL,
    )


def _resnet(name: str, blocks: tuple[int, ...], preset: str | None, **more: object) -> ModelInfo:
    return ModelInfo(
        name=name,
        summary=f"torchvision's ResNet-{name.removeprefix('resnet')}",
        builder=_torchvision("resnet", blocks=blocks, bottleneck=preset is None),
        rules=_RESNET,
        options={"width": _BASE, "cifar_stem": _CIFAR},
        images=_LARGE,
        preset=preset,
        package="torchvision",
    )


_GPT2_LEAST = {
    "vocabulary": (2, 1_000_000, "different tokens"),
    "context": (1, 65_536, "tokens of the longest input, and of the example that is traced"),
    "layers": (1, 96, "blocks of attention and MLP"),
    "heads": (1, 128, "heads of attention; a divisor of the width"),
    "width": (4, 16_384, "elements of a token's embedding"),
}


def _gpt2_options(**defaults: int) -> dict[str, ModelOption]:
    return {name: ModelOption(defaults[name], *bounds) for name, bounds in _GPT2_LEAST.items()}


MODELS = (
    ModelInfo(
        name="resnet-small",
        summary="CIFAR-style residual network (He et al. 2015, sec. 4.2), pooled, not strided",
        builder=_small("resnet", "SmallResNet"),
        rules=_BODY,
        options={
            "width": _WIDTH,
            "blocks": ModelOption(1, 1, 18, "residual blocks of two convolutions a stage"),
            "stages": _STAGES,
        },
        images=_SMALL,
    ),
    _small_resnet("resnet20", (3, 3, 3), "ResNet-20 for CIFAR"),
    _small_resnet("resnet32", (5, 5, 5), "ResNet-32 for CIFAR"),
    _small_resnet("resnet18-small", (2, 2, 2, 2), "ResNet-18"),
    _small_resnet("resnet34-small", (3, 4, 6, 3), "ResNet-34"),
    ModelInfo(
        name="cnn-small",
        summary="plain convolutional network without shortcuts",
        builder=_small("cnn", "SmallCnn"),
        rules=_BODY,
        options={
            "width": _WIDTH,
            "layers": ModelOption(2, 1, 18, "convolutions a stage"),
            "stages": _STAGES,
        },
        images=_SMALL,
    ),
    _efficient("mobilenetv2-cifar", "mobilenet_v2", "MobileNetV2", 6),
    _efficient("mobilenetv3-cifar", "mobilenet_v3", "MobileNetV3", 4),
    _efficient("efficientnet-cifar", "efficientnet", "EfficientNet", 6),
    ModelInfo(
        name="repvit-cifar",
        summary="small network with the blocks of RepViT; slots are its 1x1 convolutions",
        builder=_small("efficient", "SmallRepVit"),
        rules=(conv2d(kernel=1, groups=1, name="body.*"),),
        options={
            "width": ModelOption(32, 4, 256, "channels of the first stage; the last has 4 times")
        },
        images=_SMALL,
    ),
    ModelInfo(
        name="convnext-cifar",
        summary="small network with the blocks of ConvNeXt; slots are its linear layers",
        builder=_small("patches", "SmallConvNext"),
        rules=(linear(name="body.*"),),
        options={
            "width": ModelOption(40, 4, 256, "channels of the first stage; doubled at each further")
        },
        images=Images(classes=10, size=32, multiple=2),
    ),
    ModelInfo(
        name="deit-cifar",
        summary="small vision transformer; slots are the linear layers of its blocks",
        builder=_small("patches", "SmallVisionTransformer"),
        rules=(linear(name="body.*"),),
        options={
            "width": ModelOption(
                96, 4, 1024, "elements of a patch's embedding; an MLP has 4 times"
            ),
            "layers": ModelOption(6, 1, 64, "blocks of attention and MLP"),
            "heads": ModelOption(3, 1, 64, "heads of attention; a divisor of the width"),
            "patch": ModelOption(4, 1, 64, "side of a patch; the size of an image is a multiple"),
        },
        images=Images(classes=10, size=32, least=1),
    ),
    _resnet("resnet18", (2, 2, 2, 2), "paper/resnet18"),
    _resnet("resnet34", (3, 4, 6, 3), "paper/resnet34"),
    _resnet("resnet50", (3, 4, 6, 3), None),
    ModelInfo(
        name="densenet121",
        summary="torchvision's DenseNet-121",
        builder=_torchvision("densenet121"),
        rules=(conv2d(kernel=3, groups=1, name="features.denseblock*"),),
        options={
            "growth": ModelOption(32, 4, 128, "channels that each layer adds"),
            "cifar_stem": _CIFAR,
        },
        images=_LARGE,
        preset="paper/densenet121",
        package="torchvision",
    ),
    ModelInfo(
        name="resnext29_2x64d",
        summary="torchvision's ResNet with bottlenecks of 2 groups, stages of 3, 3, 3 and 1",
        # Nine blocks make 29 layers; the parameters that were published have a tenth.
        builder=_torchvision("resnet", blocks=(3, 3, 3, 1), bottleneck=True, groups=2),
        rules=(conv2d(kernel=3, stride=(1, 2), name="layer*"),),
        options={"width": _BASE, "cifar_stem": _CIFAR},
        images=_LARGE,
        preset="paper/resnext29_2x64d",
        package="torchvision",
    ),
    ModelInfo(
        name="efficientnet_v2_s",
        summary="torchvision's EfficientNetV2-S; its depthwise convolutions stay",
        builder=_torchvision("efficientnet_v2_s"),
        rules=(conv2d(kernel=3, groups=1, stride=(1, 2), name="features.[1-9].*"),),
        options={"cifar_stem": _CIFAR},
        images=_LARGE,
        preset="paper/efficientnet_v2_s",
        package="torchvision",
    ),
    ModelInfo(
        name="mobilenet_v2",
        summary="torchvision's MobileNetV2; slots are its 1x1 convolutions",
        builder=_torchvision("mobilenet_v2"),
        rules=(conv2d(kernel=1, groups=1, name="features.*"),),
        options={
            "percent": ModelOption(100, 10, 300, "width as a percentage of the original's"),
            "cifar_stem": _CIFAR,
        },
        images=_LARGE,
        package="torchvision",
    ),
    ModelInfo(
        name="vit_b_16",
        summary="torchvision's ViT-B/16; slots are the linear layers of its MLPs",
        builder=_torchvision("vit_b_16"),
        rules=(linear(name="encoder.layers.*.mlp.*"),),
        options={
            "patch": ModelOption(16, 1, 256, "side of a patch; the size of an image is a multiple"),
            "layers": ModelOption(12, 1, 64, "blocks of attention and MLP"),
            "heads": ModelOption(12, 1, 64, "heads of attention; a divisor of the width"),
            "width": ModelOption(
                768, 4, 8192, "elements of a patch's embedding; an MLP has 4 times"
            ),
        },
        images=Images(classes=1000, size=224, least=1),
        preset="paper/vit",
        package="torchvision",
    ),
    ModelInfo(
        name="convnext_tiny",
        summary="torchvision's ConvNeXt-T; slots are the linear layers of its blocks",
        builder=_torchvision("convnext_tiny"),
        rules=(linear(name="features.*.block.*"),),
        options={"width": ModelOption(96, 4, 512, "channels of the first stage; doubled at each")},
        images=_LARGE,
        package="torchvision",
    ),
    ModelInfo(
        name="gpt2",
        summary="GPT-2 (117M) of transformers, for the paper's sequences of 2048 tokens",
        builder=_gpt2,
        rules=(linear(name="transformer.h.*.attn.c_attn"),),
        options=_gpt2_options(vocabulary=50_257, context=2048, layers=12, heads=12, width=768),
        preset="paper/gpt2",
        package="transformers",
    ),
    ModelInfo(
        name="gpt2-small",
        summary="a small GPT-2 of transformers; 256 tokens are bytes",
        builder=_gpt2,
        rules=(linear(name="transformer.h.*.attn.c_attn"),),
        options=_gpt2_options(vocabulary=256, context=128, layers=4, heads=4, width=128),
        package="transformers",
    ),
)

TIMM = "timm/"


def timm_info(name: str) -> ModelInfo:
    """The entry of `timm/NAME`. UserError where timm is not installed or has no such model."""
    from syno.network.models import timm_models

    wanted = name.removeprefix(TIMM)
    images = timm_models.images(wanted)

    def make(classes: int, channels: int, size: int) -> nn.Module:
        return timm_models.build(wanted, classes, channels, size)

    return ModelInfo(
        name=name,
        summary=f"{wanted} of timm",
        builder=make,
        rules=(
            conv2d(kernel=3, groups=1, stride=(1, 2)),
            linear(name="*mlp*"),
            conv2d(kernel=1, groups=1),
            linear(),
        ),
        images=images,
        package="timm",
    )
