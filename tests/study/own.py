"""Networks, data and functions of a user, in a module that other processes can import."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.sampler import WeightedRandomSampler

import syno

# Numbers of the samples that the network of `evaluate_raising` is trained on.
CLASSES, SIZE = 3, 8


def images(count: int = 192, channels: int = 3) -> TensorDataset:
    """Images whose class is the quadrant that is bright, which a small network learns."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (count,), generator=random)
    pixels = 0.3 * torch.randn(count, channels, SIZE, SIZE, generator=random)
    for place, label in enumerate(labels.tolist()):
        row, column = divmod(label, 2)
        pixels[place, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 1.0
    return TensorDataset(pixels, labels)


def network(channels: int = 3, classes: int = CLASSES) -> nn.Module:
    """A network with one 3x3 convolution that becomes a slot."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * SIZE * SIZE, classes),
    )


class Pairs(Dataset):
    """Pairs that are made anew by each call, as with augmentation."""

    def __init__(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        self.inputs, self.targets = inputs, targets

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index] + 0.01 * torch.randn(()), self.targets[index]


class Records(Dataset):
    """Samples that are dictionaries."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, int]:
        return {"x": index}


def joined(samples):
    """A collate function: the inputs of a batch, scaled, and the targets."""
    inputs, targets = zip(*samples, strict=True)
    return 2 * torch.stack(inputs), torch.stack(targets)


def weighted() -> DataLoader:
    """A loader that draws some samples more often."""
    sampler = WeightedRandomSampler([1.0] * 192, 192)
    return DataLoader(images(), batch_size=16, sampler=sampler)


def absolute_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean absolute error of a batch."""
    return (outputs - targets).abs().mean()


def weight_sum(net: nn.Module) -> float:
    """An evaluation that trains nothing, so that tests know its value."""
    with torch.no_grad():
        return float(sum(p.abs().sum() for p in net.parameters()))


def raising(net: nn.Module) -> float:
    """An evaluation that fails on every network."""
    raise KeyError("no such column")


def raising_for_operators(net: nn.Module) -> syno.Outcome:
    """An evaluation that fails on networks with operators only."""
    if any(type(module).__name__ == "Layer" for module in net.modules()):
        raise ZeroDivisionError("the learning rate is zero")
    return syno.Outcome("ok", accuracy=0.5)


def ending(net: nn.Module) -> float:
    """An evaluation that ends its process for networks with operators."""
    import os

    if any(type(module).__name__ == "Layer" for module in net.modules()):
        os._exit(3)
    return 0.5


def saying_nothing(net: nn.Module) -> None:
    """An evaluation that forgets its return."""
