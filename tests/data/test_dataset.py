"""Splits: in proportion, disjoint, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syno import UserError
from syno.data import DataSet, Split, Stream
from syno.data.dataset import apportion, statistics, stratified


def labelled(counts: list[int]) -> DataSet:
    """A data set whose pixels tell each image's position."""
    labels = np.repeat(np.arange(len(counts)), counts)
    labels = labels[Stream(5).permutation(len(labels))]
    images = np.arange(len(labels)).astype(np.uint8).reshape(-1, 1, 1, 1)
    split = Split(images, labels)
    names = tuple(f"class{i}" for i in range(len(counts)))
    return DataSet("made", split, split, names, (0.5,), (0.5,), "0" * 32)


CLASSES = st.lists(st.integers(2, 30), min_size=2, max_size=6)


@given(CLASSES, st.floats(0.02, 0.98), st.integers(0, 2**63))
def test_a_holdout_divides_every_class_and_loses_no_image(
    counts: list[int], fraction: float, seed: int
) -> None:
    dataset = labelled(counts)
    fit, held = dataset.validation_indices(fraction, seed)
    assert sorted([*fit, *held]) == list(range(sum(counts)))
    for label, count in enumerate(counts):
        share = int((dataset.train.labels[held] == label).sum())
        assert 1 <= share <= count - 1
        assert abs(share - fraction * count) <= 1
    again = dataset.validation_indices(fraction, seed)
    assert np.array_equal(held, again[1])


def test_another_seed_holds_out_other_images() -> None:
    dataset = labelled([50, 50])
    assert not np.array_equal(
        dataset.validation_indices(0.2, 0)[1], dataset.validation_indices(0.2, 1)[1]
    )


def test_a_holdout_carries_images_and_labels_together() -> None:
    dataset = labelled([10, 20])
    for part in dataset.validation_split(0.3, 7):
        positions = part.images[:, 0, 0, 0]
        assert np.array_equal(part.labels, dataset.train.labels[positions])


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_a_fraction_outside_0_and_1_is_refused(fraction: float) -> None:
    with pytest.raises(UserError, match=r"cannot hold out a fraction of .* of 'made'"):
        labelled([5, 5]).validation_split(fraction, 0)


def test_a_class_with_one_image_cannot_be_held_out() -> None:
    with pytest.raises(UserError, match=r"class 'class1'[^$]*at least 2 .* got: 1"):
        labelled([5, 1]).validation_split(0.5, 0)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.floats(0, 1))
def test_apportioned_shares_sum_to_the_total_and_stay_proportional(
    counts: list[int], fraction: float
) -> None:
    total = int(fraction * sum(counts))
    shares = apportion(np.array(counts), total)
    assert shares.sum() == total
    assert (shares <= np.array(counts)).all()
    exact = np.array(counts) * (total / max(sum(counts), 1))
    assert (np.abs(shares - exact) < 1 + 1e-6).all()


def test_a_class_is_drawn_alike_whatever_the_other_classes_do() -> None:
    small = stratified(np.array([0] * 9 + [1] * 9), [4, 4], 3)
    large = stratified(np.array([0] * 9 + [1] * 20), [4, 4], 3)
    assert np.array_equal(small[small < 9], large[large < 9])


def test_the_draws_of_a_stream_never_change() -> None:
    # Splits and batch orders of stored results rest on these numbers.
    assert Stream(0, 0).permutation(8).tolist() == [0, 2, 1, 5, 4, 3, 6, 7]
    assert Stream(3, 1).below(10, 8).tolist() == [6, 3, 1, 4, 4, 9, 7, 5]


def test_statistics_agree_with_numpy_and_survive_a_constant_channel() -> None:
    images = np.random.default_rng(0).integers(0, 256, (50, 3, 5, 5), dtype=np.uint8)
    images[:, 1] = 7
    mean, std = statistics(images)
    assert np.allclose(mean, images.mean(axis=(0, 2, 3)) / 255)
    assert np.allclose(np.delete(std, 1), np.delete(images.std(axis=(0, 2, 3)), 1) / 255)
    assert std[1] == pytest.approx(1 / 255)
