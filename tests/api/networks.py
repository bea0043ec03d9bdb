"""A small network with every case that `substitute` decides about."""

import torch
from torch import nn

import syno


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.grouped = nn.Conv2d(outputs, outputs, 3, 1, 1, groups=2, bias=False)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        return self.grouped(torch.relu(self.first(x))) + self.shortcut(x)


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1),
        Block(8, 8),
        Block(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


EXAMPLE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def specification(**changes):
    return syno.Specification(
        "[N, C_in: unordered, H, H]",
        "[N, C_out: unordered, H, H]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
        ["k=3: 2", "g=2: 2"],
        **{"passed_through": [(0, 0)], "min_unfold_ratio": 1.0} | changes,
    )


def conv_operator(spec=None):
    text = """syno operator 1
        out [N, C_out: unordered, H, H]
        in [N, C_in: unordered, H, H]
        reduce C_in -> r0
        reduce k -> r1
        reduce k -> r2
        contract o1:drop r0:keep r1:keep r2:keep
        unfold o2 r1 -> c0
        unfold o3 r2 -> c1
        match o0 r0 c0 c1
    """
    return syno.Operator.from_text(text, spec or specification(bindings=[]))


def conv_weights(conv):
    """A convolution's weight, [o, i, a, b]: the operator's own has the same order."""
    return conv.weight.detach()
