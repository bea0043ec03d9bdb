"""Networks that begin with patches of an image, with layer normalization and MLPs, for small
images."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from syno.network.models.blocks import SMALLEST_MAP

# Blocks of each stage of a ConvNeXt; channels are doubled from one to the next.
_STAGES = (2, 4, 2)
# Hidden channels of an MLP for each of its inputs.
_EXPANSION = 4
# What residual blocks of a ConvNeXt are multiplied by before they are trained.
_SCALE = 1e-2


class Mlp(nn.Sequential):
    """Linear, GELU, linear, over the last dimension: [..., width] -> [..., width]."""

    def __init__(self, width: int) -> None:
        hidden = _EXPANSION * width
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class Attention(nn.Module):
    """Self-attention of `heads` heads: [N, tokens, width] -> [N, tokens, width]."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, tokens, width] -> [N, tokens, width]."""
        n, tokens, width = x.shape
        parts = self.qkv(x).reshape(n, tokens, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        return self.project(y.transpose(1, 2).reshape(n, tokens, width))


class TransformerBlock(nn.Module):
    """x + attention, then x + MLP, each of what was normalized: [N, tokens, width] -> the same."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, tokens, width] -> [N, tokens, width]."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SmallVisionTransformer(nn.Module):
    """A vision transformer without a class token (Touvron et al. 2021; the mean of all tokens goes
    to the head): [N, channels, size, size] -> [N, classes].
    """

    def __init__(
        self,
        classes: int,
        channels: int,
        size: int,
        *,
        width: int,
        layers: int,
        heads: int,
        patch: int,
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, width, patch, patch)
        self.position = nn.Parameter(torch.empty(1, (size // patch) ** 2, width))
        nn.init.trunc_normal_(self.position, std=0.02)
        self.body = nn.Sequential(*(TransformerBlock(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, channels, size, size] -> [N, classes]."""
        tokens = self.stem(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.body(tokens)).mean(dim=1))


class MapNorm(nn.LayerNorm):
    """Layer normalization over the channels of a map: [N, C, H, W] -> [N, C, H, W]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, C, H, W] -> [N, C, H, W]."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """x + a depthwise 7x7 convolution, normalization and an MLP (Liu et al. 2022).

    [N, C, H, W] -> [N, C, H, W]
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm, self.mlp = nn.LayerNorm(channels), Mlp(channels)
        self.scale = nn.Parameter(torch.full((channels,), _SCALE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, C, H, W] -> [N, C, H, W]."""
        y = self.mlp(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))
        return x + (self.scale * y).permute(0, 3, 1, 2)


class SmallConvNext(nn.Module):
    """Patches of 2x2 pixels, and three stages of ConvNeXt blocks.

    [N, channels, size, size] -> [N, classes]. A stage halves the map of the one before it while it
    stays at least 4 pixels wide.
    """

    def __init__(self, classes: int, channels: int, size: int, *, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, width, 2, 2), MapNorm(width))
        body: list[nn.Module] = []
        side, inputs = size // 2, width
        for stage, blocks in enumerate(_STAGES):
            outputs = width << stage
            if stage:
                halved = side // 2 >= SMALLEST_MAP
                step = 2 if halved else 1
                side = side // step
                body += [MapNorm(inputs), nn.Conv2d(inputs, outputs, step, step)]
            body += [ConvNextBlock(outputs) for _ in range(blocks)]
            inputs = outputs
        self.body = nn.Sequential(*body)
        self.norm = nn.LayerNorm(inputs)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, channels, size, size] -> [N, classes]."""
        return self.head(self.norm(self.body(self.stem(x)).mean(dim=(2, 3))))
