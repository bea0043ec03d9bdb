"""Networks of depthwise convolutions between 1x1 convolutions, for images of 8 to 64 pixels."""

from __future__ import annotations

import torch
from torch import nn

from syno.network.models.blocks import SMALLEST_MAP, ConvNorm, SmallNetwork

# Of each stage: channels as multiples of the first stage's, and blocks. As in the networks for
# larger images, of which these have the later stages.
STAGES = ((1.0, 1), (1.5, 2), (2.5, 3), (4.0, 2))
# Channels of the last 1x1 convolution, as a multiple of those that it reads.
_FEATURES = 4
_MULTIPLE = 8


class DepthwiseNorm(nn.Sequential):
    """Depthwise convolution, then batch normalisation: [N, C, H, W] -> [N, C, H / stride, ...]."""

    def __init__(self, channels: int, kernel: int, stride: int) -> None:
        convolution = nn.Conv2d(
            *(channels, channels, kernel, stride),
            padding=kernel // 2,
            groups=channels,
            bias=False,
        )
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
        super().__init__(convolution, nn.BatchNorm2d(channels))


class Squeeze(nn.Module):
    """x times a number for each channel, which depends on the means of all channels (Hu et al.
    2018): [N, C, H, W] -> [N, C, H, W]."""

    def __init__(self, channels: int, inner: int, gate: nn.Module) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, inner, 1)
        self.expand = nn.Conv2d(inner, channels, 1)
        self.activation = nn.ReLU()
        self.gate = gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, C, H, W] -> [N, C, H, W]."""
        means = x.mean(dim=(2, 3), keepdim=True)
        return x * self.gate(self.expand(self.activation(self.reduce(means))))


class InvertedBottleneck(nn.Module):
    """1x1 to more channels, depthwise, perhaps a squeeze, 1x1 to fewer (Sandler et al. 2018).

    [N, I, H, W] -> [N, O, H / stride, W / stride]; the input is added where it has this shape.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        expansion: int,
        kernel: int,
        stride: int,
        activation: type[nn.Module],
        gate: type[nn.Module] | None,
    ) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.expand: nn.Module = nn.Identity()
        if expansion > 1:
            self.expand = nn.Sequential(ConvNorm(inputs, hidden, 1), activation())
        self.depthwise = nn.Sequential(DepthwiseNorm(hidden, kernel, stride), activation())
        self.squeeze: nn.Module = nn.Identity()
        if gate is not None:
            self.squeeze = Squeeze(hidden, _rounded(hidden / 4), gate())
        self.project = ConvNorm(hidden, outputs, 1)
        self.adds = inputs == outputs and stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, I, H, W] -> [N, O, H / stride, W / stride]."""
        y = self.project(self.squeeze(self.depthwise(self.expand(x))))
        return x + y if self.adds else y


class TwoMixers(nn.Module):
    """A depthwise convolution and maybe a squeeze, then two 1x1 convolutions (Wang et al. 2023).

    [N, I, H, W] -> [N, O, H / stride, W / stride]; each half is added to its input. Where the shape
    changes, a strided depthwise and a 1x1 convolution come first.
    """

    def __init__(self, inputs: int, outputs: int, *, stride: int, squeezes: bool) -> None:
        super().__init__()
        self.change: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.change = nn.Sequential(
                DepthwiseNorm(inputs, 3, stride), ConvNorm(inputs, outputs, 1)
            )
        self.tokens = DepthwiseNorm(outputs, 3, 1)
        self.squeeze: nn.Module = nn.Identity()
        if squeezes:
            self.squeeze = Squeeze(outputs, _rounded(outputs / 4), nn.Sigmoid())
        self.channels = nn.Sequential(
            ConvNorm(outputs, 2 * outputs, 1), nn.GELU(), ConvNorm(2 * outputs, outputs, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, I, H, W] -> [N, O, H / stride, W / stride]."""
        x = self.change(x)
        x = self.squeeze(x + self.tokens(x))
        return x + self.channels(x)


class SmallRepVit(SmallNetwork):
    """Four stages of `TwoMixers`, of which every second one has a squeeze, at the widths and
    sizes of the other networks here.

    RepViT's additional branches of its depthwise convolutions, which are added to them before it
    is used, are left out.
    """

    def __init__(self, classes: int, channels: int, size: int, *, width: int) -> None:
        body: list[nn.Module] = []
        inputs, side = width, size
        for stage, (factor, blocks) in enumerate(STAGES):
            outputs = width if stage == 0 else _rounded(factor * width)
            for block in range(blocks):
                halved = stage > 0 and block == 0 and side // 2 >= SMALLEST_MAP
                side = (side + 1) // 2 if halved else side
                stride = 2 if halved else 1
                squeezes = len(body) % 2 == 0
                body.append(TwoMixers(inputs, outputs, stride=stride, squeezes=squeezes))
                inputs = outputs
        super().__init__((channels, size, size), width, nn.Sequential(*body), inputs, classes)


class SmallEfficientNetwork(SmallNetwork):
    """Four stages of inverted bottlenecks, and a 1x1 convolution before the head.

    The first stage, at the size of the image, expands nothing. Each further one halves the map
    while it stays at least 4 pixels wide.
    """

    def __init__(
        self,
        classes: int,
        channels: int,
        size: int,
        *,
        width: int,
        expansion: int,
        kernels: tuple[int, ...],
        activation: type[nn.Module],
        gate: type[nn.Module] | None,
    ) -> None:
        body: list[nn.Module] = []
        inputs, side = width, size
        for stage, ((factor, blocks), kernel) in enumerate(zip(STAGES, kernels, strict=True)):
            outputs = width if stage == 0 else _rounded(factor * width)
            for block in range(blocks):
                halved = stage > 0 and block == 0 and side // 2 >= SMALLEST_MAP
                side = (side + 1) // 2 if halved else side
                body.append(
                    InvertedBottleneck(
                        inputs,
                        outputs,
                        expansion=expansion if stage > 0 else 1,
                        kernel=kernel,
                        stride=2 if halved else 1,
                        activation=activation,
                        gate=gate,
                    )
                )
                inputs = outputs
        features = _FEATURES * inputs
        body.append(nn.Sequential(ConvNorm(inputs, features, 1), activation()))
        super().__init__((channels, size, size), width, nn.Sequential(*body), features, classes)


def mobilenet_v2(classes: int, channels: int, size: int, **options: int) -> nn.Module:
    """As MobileNetV2: ReLU6, no squeezes."""
    return SmallEfficientNetwork(
        *(classes, channels, size), kernels=(3, 3, 3, 3), activation=nn.ReLU6, gate=None, **options
    )


def mobilenet_v3(classes: int, channels: int, size: int, **options: int) -> nn.Module:
    """As MobileNetV3: hard swish, and squeezes with a hard sigmoid."""
    return SmallEfficientNetwork(
        *(classes, channels, size),
        kernels=(3, 3, 5, 5),
        activation=nn.Hardswish,
        gate=nn.Hardsigmoid,
        **options,
    )


def efficientnet(classes: int, channels: int, size: int, **options: int) -> nn.Module:
    """As EfficientNet: SiLU, and squeezes with a sigmoid."""
    return SmallEfficientNetwork(
        *(classes, channels, size),
        kernels=(3, 3, 5, 5),
        activation=nn.SiLU,
        gate=nn.Sigmoid,
        **options,
    )


def _rounded(channels: float) -> int:
    """The nearest multiple of 8, at least 8."""
    return max(_MULTIPLE, round(channels / _MULTIPLE) * _MULTIPLE)
