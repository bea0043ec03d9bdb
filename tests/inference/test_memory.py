"""Memory of compiled networks: nothing that a caller has changes, and blocks are used again."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import syno
from syno.inference import chains, memory


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


def test_results_on_the_way_share_blocks(compiled):
    blocks = memory.in_blocks([(0, 1, 100), (1, 2, 50), (2, 3, 80), (3, 4, 60), (3, 5, 10)])
    assert blocks == memory.Blocks([0, 1, 0, 1, 2], [100, 60, 10])
    # What is returned has no place: the last convolution, and the means.
    inner = {chain.name for chain in compiled._fast.chains} & set(compiled._fast._memory.places)
    assert 0 < len(inner) < len(compiled._fast.chains)


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


@torch.no_grad()
def test_an_error_gives_the_memory_back(net, compiled, monkeypatch):
    x = torch.randn(1, 3, 16, 16)

    def failing(*_):
        raise RuntimeError("no memory")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="no memory"):
        patched.setattr(chains, "_run_chain", lambda: failing)
        compiled(x)
    assert memory.of_this_call() is None
    close(compiled(x), net(x))


@torch.no_grad()
def test_large_results_are_not_kept(net, compiled, monkeypatch):
    monkeypatch.setattr(memory, "_MOST_KEPT", 1000)
    compiled._fast._memory._idle.clear()
    x = torch.randn(1, 3, 16, 16)
    close(compiled(x), net(x))
    assert not compiled._fast._memory._idle
