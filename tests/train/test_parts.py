"""Batches, schedule and fidelities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syno import UserError
from syno.data import DataSet, Split
from syno.train import FIDELITIES, Fidelity, fidelity
from syno.train.batches import Normaliser, TrainingBatches
from syno.train.trainer import schedule


def batches(dataset: DataSet, *, seed: int = 0, **options: int | bool) -> TrainingBatches:
    """Batches of about 50."""
    chosen = {"batch": 50, "crop": 0, "flip": False} | options
    return TrainingBatches(dataset.train, dataset, seed=seed, **chosen)  # type: ignore[arg-type]


def test_an_epoch_holds_every_image_once_in_nearly_equal_batches(dataset: DataSet) -> None:
    parts = list(batches(dataset).epoch(0))
    assert [len(labels) for _, labels in parts] == [40, 40, 40]
    images = torch.cat([images for images, _ in parts])
    expected = Normaliser(dataset)(dataset.train.images)
    assert torch.equal(images.flatten(1).sort(dim=0).values, expected.flatten(1).sort(dim=0).values)
    assert abs(float(images.mean())) < 1e-5
    assert abs(float(images.std()) - 1) < 1e-2


def test_epochs_and_seeds_differ_and_repeat(dataset: DataSet) -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return torch.cat([y for _, y in batches(dataset, seed=seed).epoch(epoch)]).tolist()

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


def test_augmentation_shifts_and_mirrors_whole_images(dataset: DataSet) -> None:
    # One image many times, with a pixel that tells where it went.
    images = np.zeros((400, 3, 5, 5), np.uint8)
    images[:, :, 2, 1] = [10, 20, 30]
    made = replace(
        dataset,
        train=Split(images, np.zeros(400, np.int64)),
        mean=(0.0, 0.0, 0.0),
        std=(1 / 255, 1 / 255, 1 / 255),
    )
    mirrored = torch.cat([x for x, _ in batches(made, crop=1, flip=True).epoch(0)])
    places = set()
    for image in mirrored:
        rows, columns = torch.nonzero(image[0], as_tuple=True)
        assert len(rows) == 1
        assert torch.allclose(image[:, rows[0], columns[0]], torch.tensor([10.0, 20.0, 30.0]))
        places.add((int(rows[0]), int(columns[0])))
    # Column 1 or, mirrored, 3; each shifted by -1, 0 or 1.
    assert places == {(row, column) for row in (1, 2, 3) for column in (0, 1, 2, 3, 4)}
    shifted = torch.cat([x for x, _ in batches(made, crop=1).epoch(0)])
    assert set(torch.nonzero(shifted[:, 0])[:, 2].tolist()) == {0, 1, 2}


def test_a_shift_shows_the_mean_colour(dataset: DataSet) -> None:
    made = replace(dataset, train=Split(np.full((60, 1, 4, 4), 200, np.uint8), np.zeros(60, int)))
    images = torch.cat([x for x, _ in batches(made, crop=1).epoch(0)])
    border = images[(images - images.max()).abs() > 1e-3]
    assert len(border) > 0
    assert border.abs().max() < 0.5 / 255 / made.std[0] + 1e-6


@given(st.integers(1, 500), st.floats(0, 0.99))
def test_the_rate_rises_to_its_peak_and_falls_to_nothing(steps: int, warmup: float) -> None:
    rates = [schedule(step, steps, warmup) for step in range(steps)]
    assert all(0 < rate <= 1 for rate in rates)
    peak = int(np.argmax(rates))
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert peak <= warmup * steps + 1


def test_a_long_schedule_ends_near_zero() -> None:
    assert schedule(0, 100, 0.1) == pytest.approx(1 / 11)
    assert schedule(10, 100, 0.1) == pytest.approx(1.0)
    assert schedule(55, 100, 0.1) == pytest.approx(0.5)
    assert schedule(99, 100, 0.1) < 0.001


def test_fidelities_are_found_by_name_and_survive_json() -> None:
    for entry in FIDELITIES:
        assert fidelity(entry.name) is entry
        assert Fidelity.from_json(entry.to_json()) == entry
    tiny = fidelity("tiny")
    assert (tiny.images, tiny.resolution, tiny.epochs) == (10_000, 16, 3)
    assert not fidelity("digits").flip


def test_an_unknown_fidelity_lists_what_exists() -> None:
    with pytest.raises(UserError) as error:
        fidelity("huge")
    assert str(error.value) == (
        "unknown fidelity 'huge'\n  expected one of: digits, tiny, small, medium"
    )


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("epochs", 0, "a whole number of at least 1"),
        ("batch", 1, "a whole number of at least 2"),
        ("images", -5, "a whole number of at least 2"),
        ("learning_rate", 0.0, "above 0 and below inf"),
        ("holdout", 1.0, "above 0 and below 1.0"),
        ("momentum", 1.0, "at least 0.0 and below 1.0"),
        ("label_smoothing", float("nan"), "at least 0.0 and below 1.0"),
    ],
)
def test_a_field_out_of_range_is_refused(field: str, value: float, expected: str) -> None:
    with pytest.raises(UserError) as error:
        replace(fidelity("tiny"), **{field: value})
    assert str(error.value) == (
        f"fidelity 'tiny' cannot have {field} = {value!r}\n  expected: {expected}"
    )


def test_a_fidelity_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(UserError, match=r"(?s)cannot read a fidelity: .*'speed'"):
        Fidelity.from_json({**fidelity("tiny").to_json(), "speed": 1})
