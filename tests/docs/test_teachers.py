"""The trained networks in examples/teachers are what docs/adapted-networks.md says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from syno.data import load
from syno.network import models
from syno.train import fidelity

from .pages import ROOT

TEACHERS = ROOT / "examples/teachers"
WEIGHTS = TEACHERS / "resnet18-small-24-cifar10.safetensors"


@pytest.mark.slow
@pytest.mark.skipif("SYNO_DATA" not in os.environ, reason="needs CIFAR-10 in SYNO_DATA")
@pytest.mark.parametrize(
    ("model", "options", "file", "least"),
    [
        ("resnet18-small", {"width": 24}, WEIGHTS, 0.87),
        ("mobilenetv2-cifar", {}, TEACHERS / "mobilenetv2-cifar10.safetensors", 0.81),
        ("efficientnet-cifar", {}, TEACHERS / "efficientnet-cifar10.safetensors", 0.82),
        ("repvit-cifar", {}, TEACHERS / "repvit-cifar10.safetensors", 0.82),
        ("convnext-cifar", {}, TEACHERS / "convnext-cifar10.safetensors", 0.74),
        ("deit-cifar", {}, TEACHERS / "deit-cifar10.safetensors", 0.70),
    ],
)
def test_the_weights_recognize_the_images_of_the_test_split(model, options, file, least):
    net = models.build(model, size=32, classes=10, weights=str(file), **options).eval()
    data = load("cifar10", Path(os.environ["SYNO_DATA"]), size=32)
    images = torch.from_numpy(data.test.images[:1000]).float() / 255
    mean, std = (torch.tensor(part)[:, None, None] for part in (data.mean, data.std))
    with torch.inference_mode():
        found = net((images - mean) / std).argmax(1)
    right = (found == torch.from_numpy(data.test.labels[:1000])).float().mean()
    assert right > least


def test_the_weights_are_those_of_the_plain_model_and_of_one_with_slots():
    net = models.build("resnet18-small", width=24, size=32, classes=10)
    state = load_file(WEIGHTS)
    net.load_state_dict(state)
    slotted = models.slots(models.build("resnet18-small", width=24, size=32, classes=10))
    slotted.load_state_dict(state)
    x = torch.randn(2, 3, 32, 32)
    assert torch.equal(slotted.eval()(x), net.eval()(x))


def test_the_recipe_of_the_second_training_is_read():
    found = fidelity(str(TEACHERS / "long.toml"))
    assert (found.epochs, found.recipe.crop, found.recipe.cutout) == (60, 4, 10)
