"""Numbers as text."""

from __future__ import annotations

import pytest

from syno._util import numbers as fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00 k"),
        (1_234_567, "1.23 M"),
        (45_600_000, "45.6 M"),
        (999_600, "1.00 M"),
        (1_820_000_000, "1.82 G"),
        (None, "–"),
    ],
)
def test_counts_have_three_digits_and_a_suffix(value: float | None, text: str) -> None:
    assert fmt.count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(9.44, "9.4 s"), (59.99, "1 min 00 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")],
)
def test_durations_change_unit(seconds: float, text: str) -> None:
    assert fmt.duration(seconds) == text


def test_accuracies_differences_times_and_ratios() -> None:
    assert fmt.percent(0.9312) == "93.1 %"
    assert fmt.points(-0.025) == "−2.5 points"
    assert fmt.milliseconds(1.4) == "1.40 ms"
    assert fmt.milliseconds(123.4) == "123 ms"
    assert fmt.ratio(0.514) == "0.51×"
    assert [fmt.short(value) for value in (0.5, 2e4, 1e6)] == ["0.5", "20k", "1M"]


def test_primitives_are_sorted_and_counted() -> None:
    assert fmt.primitives({"unfold": 1, "contract": 2, "merge": 0}) == "contract\xa02, unfold"
