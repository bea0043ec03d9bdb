"""Expected improvement of one value and of a hypervolume, against samples."""

import itertools
import math
import random

import numpy as np
import pytest

from syno.store.hypervolume import gain
from syno.study.improvement import boxes, expected_excess, expected_gain


def test_the_expected_excess_is_the_mean_of_samples():
    words = np.random.default_rng(0)
    mean, deviation = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.5, 0.0])
    samples = mean + deviation * words.standard_normal((400_000, 3))
    for level in (-0.5, 0.0, 1.2):
        expected = np.maximum(samples - level, 0).mean(axis=0)
        assert expected_excess(mean, deviation, level) == pytest.approx(expected, abs=0.005)
    assert expected_excess(mean, deviation, math.inf).tolist() == [0, 0, 0]


def points(words, count, objectives):
    return [tuple(words.uniform(0, 1) for _ in range(objectives)) for _ in range(count)]


@pytest.mark.parametrize("objectives", [1, 2, 3, 4])
def test_boxes_are_a_partition_of_what_no_point_dominates(objectives):
    words = random.Random(objectives)
    front = points(words, 6, objectives)
    found = boxes(front, objectives)
    for probe in points(words, 300, objectives):
        inside = sum(
            all(low < x <= high for x, low, high in zip(probe, box.low, box.high, strict=True))
            for box in found
        )
        is_dominated = any(all(a >= b for a, b in zip(p, probe, strict=True)) for p in front)
        assert inside == (not is_dominated)


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_the_expected_gain_is_the_mean_gain_of_samples(objectives):
    words = random.Random(7)
    front = points(words, 5, objectives)
    numbers = np.random.default_rng(3)
    mean = numbers.uniform(0, 1, (6, objectives))
    deviation = numbers.uniform(0, 0.5, (6, objectives))
    deviation[0] = 0  # known exactly
    origin = (0.0,) * objectives
    found = expected_gain(mean, deviation, front)
    for place in range(6):
        samples = mean[place] + deviation[place] * numbers.standard_normal((4000, objectives))
        gains = [gain(tuple(map(float, sample)), front, origin) for sample in samples]
        error = 4 * np.std(gains) / math.sqrt(len(gains)) + 1e-6
        assert found[place] == pytest.approx(np.mean(gains), abs=error)


def test_a_front_of_many_points_is_thinned_and_dominated_points_change_nothing():
    words = random.Random(1)
    front = points(words, 12, 2)
    below = [(x / 2, y / 2) for x, y in front]
    mean, deviation = np.array([[0.9, 0.9], [0.2, 0.1]]), np.full((2, 2), 0.2)
    assert expected_gain(mean, deviation, front).tolist() == pytest.approx(
        expected_gain(mean, deviation, [*below, *front, (-1.0, 2.0)]).tolist()
    )
    sphere = [
        tuple(v / math.sqrt(a * a + b * b + c * c + d * d) for v in (a, b, c, d))
        for a, b, c, d in itertools.product((1, 2, 5), repeat=4)
    ]
    found = expected_gain(np.full((1, 4), 0.9), np.full((1, 4), 0.1), sphere)
    assert 0 < found[0] < 0.9**4
