"""The Pareto front and its staircase."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from syno.report.model import Baseline, OperatorRow, Report, Status
from syno.report.pareto import axis_ticks, front, latency, macs, on_front, staircase


def of(operators: list[OperatorRow], baseline: Baseline | None = None) -> Report:
    return Report("a study", {}, baseline or Baseline(), tuple(operators))


def made(points: list[tuple[int, int]], baseline: Baseline | None = None) -> Report:
    operators = [
        OperatorRow(number=i, key=f"{i:032x}", status=Status.OK, macs=cost, accuracy=score / 20)
        for i, (cost, score) in enumerate(points)
    ]
    return of(operators, baseline)


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), max_size=30))
def test_front_is_what_brute_force_finds(points: list[tuple[int, int]]) -> None:
    def beaten(point: tuple[int, int]) -> bool:
        return any(
            cost <= point[0] and score >= point[1] and (cost, score) != point
            for cost, score in points
        )

    expected = sorted({point for point in points if not beaten(point)})
    found = [(c.macs, round((c.accuracy or 0) * 20)) for c in front(made(points), macs)]
    assert found == expected


def test_of_equal_points_the_first_proposed_is_on_the_front() -> None:
    assert [c.number for c in front(made([(5, 5), (5, 5)]), macs)] == [0]


def test_the_baseline_is_a_point_of_the_front_and_takes_what_it_beats_from_it() -> None:
    baseline = Baseline(accuracy=0.9, macs=10)
    report = made([(10, 18), (11, 18), (5, 10), (12, 19)], baseline)
    cheap, between, accurate = front(report, macs)
    assert between is baseline
    assert [c.number for c in (cheap, accurate) if isinstance(c, OperatorRow)] == [2, 3]
    assert [c.number for c in on_front(report)] == [2, 3]
    # Slower than the baseline, with as many MACs and less accuracy: on no front.
    beaten = OperatorRow(
        number=0, key="0" * 32, status=Status.OK, macs=10, accuracy=0.89, latency_ratio=1.13
    )
    assert on_front(of([beaten], baseline)) == []
    assert front(of([beaten], baseline), latency) == [baseline]


def test_operators_without_accuracy_or_cost_are_left_out() -> None:
    unknown = [
        OperatorRow(number=0, key="0" * 32, status=Status.OK, macs=1),
        OperatorRow(number=1, key="1" * 32, status=Status.OK, accuracy=0.5),
    ]
    assert front(of(unknown), macs) == []


def test_staircase_goes_right_before_it_goes_up_and_ends_at_the_right_edge() -> None:
    xs, ys = staircase([(1, 0.5), (2, 0.7)], right=4)
    assert list(zip(xs, ys, strict=True)) == [(1, 0.5), (2, 0.5), (2, 0.7), (4, 0.7)]


def test_staircase_of_nothing_is_empty() -> None:
    assert staircase([], right=3) == ([], [])


def test_costs_that_spread_get_a_logarithmic_axis_with_round_ticks() -> None:
    assert axis_ticks([0.5, 7.6]) == [0.5, 1.0, 2.0, 5.0, 10.0]
    assert axis_ticks([19_000, 1_400_000]) == [1e4, 3e4, 1e5, 3e5, 1e6]
    assert axis_ticks([1.0, 1e9]) == [10.0**power for power in range(10)]


def test_costs_close_together_get_a_linear_axis() -> None:
    assert axis_ticks([1.0, 4.9]) is None
    assert axis_ticks([]) is None
