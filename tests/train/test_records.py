"""Training on records: images of several sizes, by the recipe for ImageNet on a small scale."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from syno import UserError
from syno.data import Records
from syno.data.prepare import prepare
from syno.study.evaluate.network import Network
from syno.train import fidelity, train


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Sixty bright and dark images of 20 to 40 pixels."""
    folder = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    for split, count in (("train", 30), ("test", 5)):
        for label, name in enumerate(("dark", "bright")):
            (folder / split / name).mkdir(parents=True)
            for number in range(count):
                height, width = random.integers(20, 40, 2)
                pixels = random.integers(0, 120, (height, width, 3)) + 120 * label
                image = Image.fromarray(pixels.astype(np.uint8))
                image.save(folder / split / name / f"{number}.png")
    out = folder.parent / "records"
    prepare(str(folder), None, out, workers=1, progress=False)
    return Records(out)


def test_the_recipe_for_imagenet_runs_on_a_small_scale(records: Records) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 2),
    )
    small = fidelity("paper/imagenet").changed(
        resolution=16,
        epochs=6,
        holdout=0.2,
        batch=8,
        precision="bfloat16",
    )
    outcome = train(net, records, small, 0)
    assert outcome.ok, outcome.detail
    assert outcome.images_seen == 6 * 48
    assert outcome.accuracy is not None
    assert outcome.accuracy > 0.8
    again = train(net, records, small.changed(batch=8), 0, workers=2)
    assert again.ok


def test_a_model_needs_to_know_the_size_of_images_of_several(records: Records) -> None:
    network = Network.named("resnet-small", {"width": 8}, records, 0, size=16)
    assert network.input_shape == (3, 16, 16)
    with pytest.raises(UserError, match="has images of several sizes: pass size="):
        Network.named("resnet-small", {"width": 8}, records, 0)
