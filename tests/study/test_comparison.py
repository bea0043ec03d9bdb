"""Spreads over seeds, and pairs with the original network."""

from __future__ import annotations

import pytest

from syno.study.training.comparison import Paired, Spread, paired, student


def test_a_spread_has_the_samples_deviation() -> None:
    assert Spread.of([]) is None
    assert Spread.of([0.5]) == Spread(0.5, None, 1)
    found = Spread.of([1.0, 2.0, 3.0])
    assert found == Spread(2.0, 1.0, 3)


def test_only_seeds_that_both_have_are_compared() -> None:
    assert paired({1: 0.5}, {2: 0.4}) is None
    assert paired({1: 0.5, 2: 0.9}, {1: 0.25}) == Paired(0.25, None, None, None, 1, 1)


def test_pairs_have_students_interval() -> None:
    # Differences 1, 2 and 3: mean 2, deviation 1; 4.3027 / sqrt(3) = 2.4841.
    found = paired({0: 2.0, 1: 4.0, 2: 6.0}, {0: 1.0, 1: 2.0, 2: 3.0})
    assert found is not None
    assert (found.difference, found.deviation, found.count, found.wins) == (2.0, 1.0, 3, 3)
    assert found.low == pytest.approx(-0.4841, abs=1e-4)
    assert found.high == pytest.approx(4.4841, abs=1e-4)
    worse = paired({0: 2.0, 1: 1.0}, {0: 1.0, 1: 2.0}, greater_is_better=False)
    assert worse is not None
    assert worse.wins == 1


def test_students_quantiles_are_the_published_ones() -> None:
    published = {1: 12.7062, 5: 2.5706, 10: 2.2281, 11: 2.2010, 20: 2.0860, 30: 2.0423, 120: 1.9799}
    for degrees, value in published.items():
        assert student(degrees) == pytest.approx(value, abs=2e-4)
