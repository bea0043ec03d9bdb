"""A small network that was trained in a second, and its data."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import syno


class Net(nn.Module):
    """[N, 4, 8, 8] -> [N, 3], with a residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(4, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.first = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.stem(x)))
        x = functional.relu(x + self.second(functional.relu(self.first(x))))
        return self.head(x.mean((2, 3)))


def samples(count: int, seed: int) -> TensorDataset:
    """Noise with a pattern of the class in it."""
    random = torch.Generator().manual_seed(seed)
    patterns = torch.randn(3, 4, 8, 8, generator=torch.Generator().manual_seed(9))
    targets = torch.randint(3, (count,), generator=random)
    inputs = 0.6 * patterns[targets] + torch.randn(count, 4, 8, 8, generator=random)
    return TensorDataset(inputs, targets)


@pytest.fixture(scope="session")
def data() -> TensorDataset:
    return samples(640, 0)


def learned(make: Callable[[], nn.Module], data: TensorDataset) -> nn.Module:
    """A network after 60 steps."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = make()
        optimizer = torch.optim.Adam(net.parameters(), 0.01)
        inputs, targets = data.tensors
        for step in range(60):
            part = slice(step % 5 * 128, step % 5 * 128 + 128)
            loss = functional.cross_entropy(net(inputs[part]), targets[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return net.eval()


@pytest.fixture(scope="session")
def trained(data: TensorDataset) -> nn.Module:
    return learned(Net, data)


OPERATORS = ("conv1x1", "low-rank-conv", "depthwise-separable")


def options(**changes: object) -> syno.AdaptOptions:
    """Little of everything, and nothing that is compiled but the candidates."""
    few = {"zoo": False, "samples": 0, "mutations": 0, "keep": 2, "widths": False, "blocks": False}
    few |= {"fit_images": 128, "score_images": 64}
    quick = {"engine": "eager", "kernels": "eager", "rounds": 20, "kernel_rounds": 20}
    return syno.AdaptOptions(**{**few, **quick, **changes})  # type: ignore[arg-type]


def adapted(net: nn.Module, data: object, store: str, **changes: object) -> syno.Adaptation:
    """An adaptation with small budgets."""
    given: dict[str, object] = {
        "macs": "0.6x",
        "operators": OPERATORS,
        "fidelity": {"epochs": 1, "batch": 64},
        "options": options(),
    }
    return syno.adapt(net, data, store=store, **{**given, **changes})  # type: ignore[arg-type]
