"""The three convolutions of NAS-PTE that Syno is compared with, as torch modules.

Turner, Crowley, O'Boyle: "Neural Architecture Search as Program Transformation Exploration", ASPLOS
2021. Sequences 1 and 2 concatenate different convolutions, and sequence 3 two halves of the rows:
each reads its input twice, which operators of single-use primitives cannot. All keep the shape of a
convolution with stride 1 and zero padding: [N, C_in, H, W] -> [N, C_out, H, W].
"""

from __future__ import annotations

import torch
from torch import nn

from syno._util.errors import UserError

# Output channels that sequence 2 computes from all inputs.
FULL_CHANNELS = 16


def _divisible(what: str, value: int, by: int) -> None:
    if value < by or value % by:
        raise UserError(
            f"this module of NAS-PTE cannot have {what} = {value}\n"
            f"  expected: a positive multiple of {by}      got: {value}"
        )


def _convolution(c_in: int, c_out: int, kernel: int, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(c_in, c_out, kernel, padding="same", groups=groups, bias=False)


class Sequence1(nn.Module):
    """Outputs in two halves: a convolution with 2 groups and one with 4, concatenated.

    C_in must be a multiple of 4, C_out of 8.
    """

    def __init__(self, c_in: int, c_out: int, kernel: int = 3) -> None:
        super().__init__()
        _divisible("C_in", c_in, 4)
        _divisible("C_out", c_out, 8)
        self.two = _convolution(c_in, c_out // 2, kernel, groups=2)
        self.four = _convolution(c_in, c_out // 2, kernel, groups=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, C_in, H, W] -> [N, C_out, H, W]."""
        return torch.cat([self.two(x), self.four(x)], dim=1)


class Sequence2(nn.Module):
    """16 outputs from all inputs, the rest from inputs 16 onward by a convolution with 2 groups.

    C_in - 16 and C_out - 16 must be positive and even.
    """

    def __init__(self, c_in: int, c_out: int, kernel: int = 3) -> None:
        super().__init__()
        _divisible("C_in - 16", c_in - FULL_CHANNELS, 2)
        _divisible("C_out - 16", c_out - FULL_CHANNELS, 2)
        self.full = _convolution(c_in, FULL_CHANNELS, kernel)
        self.rest = _convolution(c_in - FULL_CHANNELS, c_out - FULL_CHANNELS, kernel, groups=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, C_in, H, W] -> [N, C_out, H, W]."""
        return torch.cat([self.full(x), self.rest(x[:, FULL_CHANNELS:])], dim=1)


class Sequence3(nn.Module):
    """Rows in two halves, each with a convolution of its own, zero outside of the half.

    The upper half has H // 2 rows.
    """

    def __init__(self, c_in: int, c_out: int, kernel: int = 3) -> None:
        super().__init__()
        self.upper = _convolution(c_in, c_out, kernel)
        self.lower = _convolution(c_in, c_out, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, C_in, H, W] -> [N, C_out, H, W]."""
        half = x.shape[2] // 2
        return torch.cat([self.upper(x[:, :, :half]), self.lower(x[:, :, half:])], dim=2)


MODULES: dict[str, type[nn.Module]] = {
    "nas-pte-1": Sequence1,
    "nas-pte-2": Sequence2,
    "nas-pte-3": Sequence3,
}
