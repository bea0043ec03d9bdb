"""The networks that are measured: of torchvision and timm, and a detector with three outputs."""

from __future__ import annotations

import itertools

import torch
from torch import nn
from torch.nn import functional

from syno._util.errors import UserError, nearest
from syno_lab.experiments.coverage.families import TIMM, TORCHVISION, built, with_statistics

DETECTOR = "detector"
_SIDE = 224
# Name: the package that it is of, None for our own.
_NETWORKS = {
    "resnet18": TORCHVISION,
    "resnet50": TORCHVISION,
    "mobilenet_v2": TORCHVISION,
    "mobilenet_v3_small": TORCHVISION,
    "mobilenetv4_conv_small": TIMM,
    "efficientnet_b0": TORCHVISION,
    "regnetx_004": TIMM,
    "shufflenet_v2_x1_0": TORCHVISION,
    "squeezenet1_1": TORCHVISION,
    "repvit_m0_9": TIMM,
    "convnext_tiny": TORCHVISION,
    "deit_tiny_patch16_224": TIMM,
    DETECTOR: None,
}


def names() -> tuple[str, ...]:
    """The names of all networks."""
    return tuple(_NETWORKS)


def check(name: str) -> None:
    """UserError for a name that no network has."""
    if name not in _NETWORKS:
        raise UserError(
            f"there is no network '{name}'{nearest(name, _NETWORKS)}\n"
            f"  expected: {', '.join(_NETWORKS)}"
        )


def network(name: str) -> nn.Module:
    """A network in evaluation mode, with weights that depend on its name alone."""
    check(name)
    package = _NETWORKS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = Detector().eval() if package is None else built(package, name)
    return with_statistics(net)


def images(batch: int, *, seed: int = 0) -> torch.Tensor:
    """Images [batch, 3, 224, 224] of random numbers."""
    return torch.randn(batch, 3, _SIDE, _SIDE, generator=torch.Generator().manual_seed(seed))


class Detector(nn.Module):
    """A detector of one stage, as YOLOv5 and its successors are: maps of three sizes.

    Images [N, 3, H, W] whose sizes are multiples of 32 give [N, boxes * (5 + classes), h, w] with h
    and w an eighth, a sixteenth and a thirty-second of H and W.
    """

    def __init__(self, width: int = 16, classes: int = 20, boxes: int = 3) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(5)]
        self.stem = _convolution(3, widths[0], 3, 2)
        self.stages = nn.ModuleList(
            nn.Sequential(_convolution(ins, outs, 3, 2), _Partial(outs, outs))
            for ins, outs in itertools.pairwise(widths)
        )
        small, middle, large = widths[2:]
        self.pool = _Pools(large)
        self.narrow = nn.ModuleList([_convolution(large, middle), _convolution(middle, small)])
        self.up = nn.ModuleList([_Partial(2 * middle, middle), _Partial(2 * small, small)])
        self.shrink = nn.ModuleList(
            [_convolution(small, small, 3, 2), _convolution(middle, middle, 3, 2)]
        )
        self.down = nn.ModuleList([_Partial(2 * small, middle), _Partial(2 * middle, large)])
        self.heads = nn.ModuleList(
            nn.Conv2d(each, boxes * (5 + classes), 1) for each in (small, middle, large)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The maps of the three sizes, the largest first."""
        maps = []
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        eighth, sixteenth, last = maps[1:]
        last = self.narrow[0](self.pool(last))
        sixteenth = self.narrow[1](self.up[0](torch.cat([_doubled(last), sixteenth], 1)))
        found = [self.up[1](torch.cat([_doubled(sixteenth), eighth], 1))]
        for shrink, down, beside in zip(self.shrink, self.down, (sixteenth, last), strict=True):
            found.append(down(torch.cat([shrink(found[-1]), beside], 1)))
        return tuple(head(each) for head, each in zip(self.heads, found, strict=True))


class _Partial(nn.Module):
    """Half of the channels pass through a residual block of two convolutions."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        half = outs // 2
        self.left, self.right = _convolution(ins, half), _convolution(ins, half)
        self.block = nn.Sequential(_convolution(half, half), _convolution(half, half, 3))
        self.join = _convolution(outs, outs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = self.left(x)
        joined: torch.Tensor = self.join(torch.cat([left + self.block(left), self.right(x)], 1))
        return joined


class _Pools(nn.Module):
    """The map beside its maxima over growing windows."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.narrow = _convolution(channels, channels // 2)
        self.join = _convolution(2 * channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        maps = [self.narrow(x)]
        for _ in range(3):
            maps.append(functional.max_pool2d(maps[-1], 5, 1, 2))
        joined: torch.Tensor = self.join(torch.cat(maps, 1))
        return joined


def _convolution(ins: int, outs: int, size: int = 1, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(ins, outs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outs), nn.SiLU()
    )


def _doubled(x: torch.Tensor) -> torch.Tensor:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")
