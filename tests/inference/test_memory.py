"""Memory of compiled networks: nothing that a caller has changes."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import syno


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.average = nn.AvgPool2d(2, ceil_mode=True)
        self.third = nn.Conv2d(16, 8, 1)
        self.mean = nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        x = self.pool(torch.relu(self.first(x)))
        x = x + torch.relu(self.second(x))
        maps = self.third(self.average(x))
        return maps.flatten(2), self.mean(x).flatten(1), x.mean((3, 2))


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(scope="module")
def compiled(net):
    return syno.compile(net, torch.randn(1, 3, 16, 16))


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_results_that_a_caller_keeps_stay(net, compiled):
    inputs = [torch.randn(batch, 3, 16, 16) for batch in (1, 1, 3, 2, 1, 3)]
    kept = [compiled(x) for x in inputs]
    for x, found in zip(inputs, kept, strict=True):
        close(found, net(x))


def test_inference_mode_and_without_it(net, compiled):
    x = torch.randn(1, 3, 16, 16)
    with torch.inference_mode():
        first = compiled(x)
    with torch.no_grad():
        close(compiled(x), first)
        close(first, net(x))


@torch.no_grad()
def test_threads_have_memory_of_their_own(net, compiled):
    inputs = [torch.randn(1 + number % 2, 3, 16, 16) for number in range(40)]

    def computed(x):
        with torch.no_grad():
            return compiled(x)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(computed, inputs))
    for x, y in zip(inputs, found, strict=True):
        close(y, net(x))
