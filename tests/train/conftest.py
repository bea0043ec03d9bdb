"""Data and networks small enough to train in a blink."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from syno.data import DataSet, Split
from syno.data.dataset import statistics
from syno.train import Fidelity, recipe


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Timing and sums do not depend on the machine's cores."""
    torch.set_num_threads(1)


def bright_or_dark(count: int, seed: int) -> Split:
    """Noisy images [count, 1, 4, 4] of two classes that differ in brightness."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    images = random.integers(0, 128, (count, 1, 4, 4)) + 100 * labels[:, None, None, None]
    return Split(images.astype(np.uint8), labels.astype(np.int64))


@pytest.fixture
def dataset() -> DataSet:
    """120 training and 40 test images, learnable in a few steps."""
    train = bright_or_dark(120, 0)
    mean, std = statistics(train.images)
    return DataSet("made", train, bright_or_dark(40, 1), ("dark", "bright"), mean, std, "0" * 32)


@pytest.fixture
def quick() -> Fidelity:
    """Four epochs of eight steps."""
    how = replace(recipe("fast/digits"), batch=12, learning_rate=0.05, crop=0)
    return Fidelity("quick", None, 4, epochs=4, recipe=how, holdout=0.2)
