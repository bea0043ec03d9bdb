"""Accuracy of trained networks in float32 and in INT8, as C++ libraries, on the test split.

Ranges come from images of the training split. `--json FILE` keeps the rows with the machine,
versions and commit.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

import syno
from syno.codegen.export import export_network
from syno.data import DataSet, load
from syno.inference import NetworkLibrary
from syno.network import models
from syno.train import fidelity, training_images
from syno_lab.experiments.environment import known_environment

# Models with their options, and the files of their weights in examples/teachers.
NETWORKS = (
    ("resnet18-small", {"width": 24}, "resnet18-small-24-cifar10.safetensors"),
    ("mobilenetv2-cifar", {}, "mobilenetv2-cifar10.safetensors"),
    ("efficientnet-cifar", {}, "efficientnet-cifar10.safetensors"),
)
_BATCH = 500


def library(net: nn.Module, folder: Path, name: str) -> NetworkLibrary:
    """The network as a C++ library."""
    x = torch.zeros(1, 3, 32, 32)
    return syno.inference.load(export_network(net, folder / name, x, format="cpp-network").code)


def accuracy(network: NetworkLibrary, data: DataSet) -> float:
    """The share of images of the test split that are classified right."""
    right = 0
    mean, std = (np.array(each, np.float32)[:, None, None] for each in (data.mean, data.std))
    for begin in range(0, len(data.test.images), _BATCH):
        pixels = np.asarray(data.test.images[begin : begin + _BATCH], np.float32)
        scores = network((pixels / 255 - mean) / std)
        assert isinstance(scores, np.ndarray)
        right += int((scores.argmax(1) == data.test.labels[begin : begin + _BATCH]).sum())
    return right / len(data.test.images)


def main() -> None:
    """Print the accuracies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300, help="training images for ranges")
    parser.add_argument("--json", type=Path, help="file for the rows")
    given = parser.parse_args()
    data, how = load("cifar10"), fidelity("small").changed(resolution=32)
    rows = []
    for model, options, weights in NETWORKS:
        file = f"examples/teachers/{weights}"
        net = models.build(model, classes=10, channels=3, size=32, weights=file, **options).eval()
        quantized = syno.quantize(net, training_images(data, how, given.samples, seed=0))
        with tempfile.TemporaryDirectory() as folder:
            found = {
                name: accuracy(library(each, Path(folder), name), data)
                for name, each in (("float32", net), ("int8", quantized))
            }
        name = "-".join([model, *map(str, options.values())])
        print(f"{name}: float32 {found['float32']:.2%}, INT8 {found['int8']:.2%}")
        rows.append({"network": name, "samples": quantized.images, **found})
    if given.json:
        content = {"environment": known_environment(), "rows": rows}
        given.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
