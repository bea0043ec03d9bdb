"""The training images that calibrate quantized networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from syno import UserError
from syno.data import DataSet, load, load_text
from syno.train import Fidelity, fidelity, training_images


@pytest.fixture(scope="module")
def digits() -> DataSet:
    """1,797 images of 8 px."""
    return load("digits")


@pytest.fixture(scope="module")
def few() -> Fidelity:
    return fidelity("digits").changed(epochs=3)


def test_calibration_reads_no_held_out_image(digits, few, monkeypatch) -> None:
    fit, held = digits.validation_indices(few.holdout, few.split_seed)
    read: list[np.ndarray] = []
    fetch = type(digits.train).fetch

    def watched(split: Any, index: np.ndarray, *rest: Any) -> np.ndarray:
        read.append(np.asarray(index))
        return fetch(split, index, *rest)

    monkeypatch.setattr(type(digits.train), "fetch", watched)
    images = torch.cat(list(training_images(digits, few, 200, 3)))
    numbers = np.concatenate(read)
    assert len(images) == len(set(numbers)) == 200
    assert set(numbers) <= set(fit)
    assert not set(numbers) & set(held)
    # Other held-out images change nothing.
    pixels = digits.train.images.copy()
    pixels[held] = 255
    other = replace(digits, train=replace(digits.train, images=pixels))
    assert torch.equal(torch.cat(list(training_images(other, few, 200, 3))), images)


def test_calibration_images_depend_on_the_seed_alone(digits, few) -> None:
    first, again, other = (torch.cat(list(training_images(digits, few, 50, s))) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    small = few.changed(images=40)
    assert len(torch.cat(list(training_images(digits, small, 50, 1)))) == 40
    large = few.changed(resolution=12, augmented_at=8)
    assert next(training_images(digits, large, 5, 1)).shape == (5, 1, 12, 12)
    with pytest.raises(UserError, match="cannot sample 0 training images"):
        next(training_images(digits, few, 0, 0))


def test_text_is_refused(tmp_path, few) -> None:
    (tmp_path / "words.txt").write_text("".join(f"{n} words\n" for n in range(3000)))
    text = load_text(str(tmp_path / "words.txt"), cache=False, progress=False)
    with pytest.raises(UserError, match=r"'.*words.*' is text\n  expected: images"):
        next(training_images(text, few, 5, 0))  # type: ignore[arg-type]
