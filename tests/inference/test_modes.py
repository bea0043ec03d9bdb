"""Networks whose `forward` computes a part in another mode, or in another type."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import syno


class Mixed(nn.Module):
    """part: one of `PARTS`."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self.part = part
        self.linear = nn.Linear(8, 8)
        self.conv = nn.Conv1d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return PARTS[self.part](self, x)


def no_grad(net: Mixed, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = net.linear(x)
    return y + 1


def enable_grad(net: Mixed, x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        y = net.linear(x)
    return y + 1


def autocast_off(net: Mixed, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16, enabled=False):
        y = net.linear(x)
    return net.conv(y)


def autocast(net: Mixed, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        y = net.linear(net.conv(x)).float()
    return net.linear(y)


def bfloat16_result(net: Mixed, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return net.linear(x)


def bfloat16(net: Mixed, x: torch.Tensor) -> torch.Tensor:
    weight = net.linear.weight.bfloat16()
    return nn.functional.linear(x.bfloat16(), weight).float() + net.linear(x)


def float64(net: Mixed, x: torch.Tensor) -> torch.Tensor:
    return nn.functional.linear(x.double(), net.linear.weight.double()).float() + net.linear(x)


PARTS = {
    each.__name__: each
    for each in (no_grad, enable_grad, autocast_off, autocast, bfloat16_result, bfloat16, float64)
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_in_another_mode_or_type_is_computed_so(part: str) -> None:
    torch.manual_seed(0)
    net, x = Mixed(part).eval(), torch.randn(3, 8, 8)
    compiled = syno.compile(net, x)
    for batch in (x, x[:1], torch.cat([x, x])):
        with torch.no_grad():
            right = net(batch)
        found = compiled(batch)
        assert found.dtype == right.dtype
        assert torch.allclose(found, right, atol=1e-5)
