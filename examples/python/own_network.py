"""Search operators for a custom network and data set, and export the best network.

python examples/python/own_network.py [FOLDER]     results go to FOLDER (default: here)
"""

import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

import syno

EVALUATIONS = 2


def make_network() -> nn.Module:
    """A small network for images [N, 3, 16, 16] of four classes."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 4)),
    )


def make_data(count: int = 256) -> TensorDataset:
    """Images whose class says which quadrant is bright."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (count,), generator=random)
    images = 0.5 * torch.randn(count, 3, 16, 16, generator=random)
    for image, label in zip(images, labels.tolist(), strict=True):
        row, column = divmod(label, 2)
        image[:, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 1
    return TensorDataset(images, labels)


def main(folder: Path) -> syno.StudyResults:
    """Search, print the front, and write the best network."""
    torch.manual_seed(0)
    net = make_network()  # a network with trained weights keeps them: only what is replaced is new
    found = syno.search(
        net,
        make_data(),
        validation=0.2,
        evaluations=EVALUATIONS,
        enqueue=["conv2d"],  # a known operator first, beside those that are sampled
        store=str(folder / "own.db"),
        # The classes of a script cannot be imported by another process.
        isolation=syno.IsolationOptions(isolate=False),
        space=syno.SpaceOptions(max_nodes=5_000),
    )
    print(found)
    for trial in found.front("macs"):
        print(trial)
    assert found.best is not None and found.best.key is not None
    files = syno.export_network(found, found.best.key, folder / "best", net=net)
    print(f"wrote {files.code.name} and {files.weights.name}, which run without Syno")
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
