"""Several objectives, constraints, the archive, the hypervolume, and one number for all of them."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from typing import Any

import pytest

from syno._util.errors import UserError
from syno.store import Evaluation
from syno.store.hypervolume import gain, hypervolume
from syno.store.objective import ACCURACY, LOSS
from syno.store.objectives import (
    Objectives,
    dominates,
    expected_improvement,
    fronts,
    parse_objectives,
    ranks,
    stale,
)
from syno.store.records import Environment


def result(ask: int, accuracy: float | None = 0.5, **fields: Any) -> Evaluation:
    given: dict[str, Any] = {
        "kind": "operator",
        "key": str(ask),
        "text": "",
        "status": "ok",
        "reason": "",
        "split": "validation",
        "rung": "tiny",
        "recipe": {},
        "seed": 0,
        "macs": 100,
        "params": 10,
        "primitives": {},
        "latency_ms": 1.0,
        "latency_spread_ms": 0.0,
        "latency_ratio": 1.0,
        "baseline_latency_ms": 1.0,
        "source_hash": "",
        "seconds": 1.0,
        "finished": f"{ask:04}",
        "environment": Environment("", "", {}, "", 1, ""),
    }
    return Evaluation(ask=ask, accuracy=accuracy, **(given | fields))


def two(*constraints: str) -> Objectives:
    return parse_objectives(["accuracy", "latency_ratio"], constraints, ACCURACY)


def counted(points: list[tuple[int, ...]], dims: int) -> int:
    """The unit cubes below at least one point."""
    cubes = itertools.product(*[range(max((p[d] for p in points), default=0)) for d in range(dims)])
    return sum(
        any(all(c < x for c, x in zip(cube, p, strict=True)) for p in points) for cube in cubes
    )


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
def test_the_hypervolume_is_that_of_counted_cubes(dims):
    rng = random.Random(dims)
    for _ in range(60):
        count = rng.randrange(0, 9)
        points = [tuple(rng.randrange(0, 6) for _ in range(dims)) for _ in range(count)]
        assert hypervolume(points, (0,) * dims) == counted(points, dims), points


def test_a_gain_is_the_difference_of_two_hypervolumes():
    rng = random.Random(5)
    for dims in (2, 3, 4):
        points = [tuple(rng.random() for _ in range(dims)) for _ in range(12)]
        origin = (0.0,) * dims
        for count in range(12):
            before, point = points[:count], points[count]
            difference = hypervolume([*before, point], origin) - hypervolume(before, origin)
            assert gain(point, before, origin) == pytest.approx(difference, abs=1e-12)
    assert gain((1.0, -1.0), [], (0.0, 0.0)) == 0.0


def test_a_hundred_results_with_four_targets_take_a_moment():
    rng = random.Random(7)
    names = ["accuracy", "latency_ratio", "macs", "params"]
    objectives = parse_objectives(names, [], ACCURACY)
    results = {
        n: result(
            n,
            rng.random(),
            latency_ratio=rng.random(),
            macs=1 + rng.randrange(100),
            params=1 + rng.randrange(10),
        )
        for n in range(100)
    }
    began = time.process_time()
    assert len(ranks(objectives, results)) == 100
    values = objectives.progress(list(results.values()), result(0))
    assert values == sorted(values)
    whole = objectives.volume(results.values(), result(0))
    assert values[-1] == pytest.approx(whole)
    assert time.process_time() - began < 10


def test_points_that_do_not_beat_the_reference_add_nothing():
    assert hypervolume([(2.0, -1.0), (-1.0, 2.0), (0.0, 5.0)], (0.0, 0.0)) == 0.0


def test_the_archive_is_the_front_of_the_results_that_satisfy_the_constraints():
    rng = random.Random(3)
    objectives = two("latency_ratio<=0.9")
    results = [
        result(n, rng.randrange(8) / 10, latency_ratio=rng.randrange(1, 12) / 10) for n in range(60)
    ]
    found = objectives.archive(results)
    allowed = [r for r in results if r.latency_ratio <= 0.9]
    best = [
        r
        for r in allowed
        if not any(
            dominates((o.accuracy, -o.latency_ratio), (r.accuracy, -r.latency_ratio))
            for o in allowed
        )
    ]
    assert {(r.accuracy, r.latency_ratio) for r in found} == {
        (r.accuracy, r.latency_ratio) for r in best
    }
    assert len(found) == len({(r.accuracy, r.latency_ratio) for r in found})
    assert all(r == min(best, key=lambda b: (b != r, b.ask)) for r in found)


def test_results_without_a_measure_are_on_no_archive():
    objectives = two()
    assert objectives.archive([result(1, None), result(2, latency_ratio=None)]) == []
    assert objectives.scores(result(3, math.nan)) is None


def test_ranks_order_failures_violations_and_fronts():
    objectives = two("latency_ratio<=1")
    found = ranks(
        objectives,
        {
            1: None,
            2: result(2, 0.9, latency_ratio=3.0),
            3: result(3, 0.9, latency_ratio=2.0),
            4: result(4, 0.5, latency_ratio=0.9),
            5: result(5, 0.6, latency_ratio=0.8),
            6: result(6, 0.7, latency_ratio=0.85),
        },
    )
    assert found[1] == 0.0
    assert 0 < found[2] < found[3] < found[4] < min(found[5], found[6])
    assert max(found.values()) <= 1


def test_ranks_of_one_objective_are_those_of_its_values():
    objectives = parse_objectives([], ["macs<=100"], LOSS)
    losses = {1: 2.0, 2: 1.0, 3: 1.5, 4: 1.5}
    found = ranks(objectives, {n: result(n, None, details={"loss": v}) for n, v in losses.items()})
    assert found == {1: 0.0, 3: 0.5, 4: 0.5, 2: 1.0}


def test_a_single_result_is_rated_in_the_middle_and_a_single_failure_at_the_bottom():
    assert ranks(two(), {1: result(1)}) == {1: 0.5}
    assert ranks(two(), {1: None}) == {1: 0.0}
    assert ranks(two(), {}) == {}


def test_fronts_contain_each_point_once():
    points = {n: (n % 4, -(n % 3)) for n in range(12)}
    found = fronts(points)
    assert sorted(itertools.chain(*found)) == list(range(12))
    for front in found:
        assert not any(dominates(points[a], points[b]) for a in front for b in front)
    for better, worse in itertools.pairwise(found):
        assert all(any(dominates(points[b], points[w]) for b in better) for w in worse)


def test_progress_never_falls_and_counts_in_units_of_the_baseline():
    objectives = two()
    baseline = result(0, 0.5)
    results = [
        result(1, 0.4, latency_ratio=0.5),
        result(2, 0.3, latency_ratio=0.6),
        result(3, None, status="error"),
        result(4, 0.5, latency_ratio=0.75),
        result(5, 0.9, latency_ratio=1.5),
    ]
    # An accuracy counts from 0, a latency from that of the baseline.
    assert objectives.progress(results, baseline) == pytest.approx([0.4, 0.4, 0.4, 0.45, 0.45])
    alone = parse_objectives(["accuracy"], ["latency_ratio<=0.7"], ACCURACY)
    assert alone.progress(results, baseline) == [0.4, 0.4, 0.4, 0.4, 0.4]
    strict = parse_objectives(["accuracy"], ["latency_ratio<=0.1"], ACCURACY)
    assert strict.progress(results, baseline) == [None] * 5


def test_a_bounded_target_counts_from_its_bound():
    baseline = result(0, 0.5, macs=100)
    results = [result(1, 0.5, latency_ratio=0.5), result(2, 0.4, latency_ratio=0.2)]
    bounds = ["accuracy>=0.3", "accuracy>=0.4", "accuracy<=0.9", "latency_ratio<=0.6"]
    objectives = parse_objectives(["accuracy", "latency_ratio"], bounds, ACCURACY)
    # (0.5 - 0.4) / 0.5 and 0.6 - 0.5; the second one lies on a bound, and adds nothing.
    assert objectives.volume(results, baseline) == pytest.approx(0.2 * 0.1)
    assert objectives.progress(results, baseline) == pytest.approx([0.02, 0.02])
    losses = parse_objectives(["loss", "macs"], ["loss<=3"], LOSS)
    found = [result(1, None, macs=50, details={"loss": 2.0})]
    reference = result(0, None, macs=100, details={"loss": 2.5})
    assert losses.volume(found, reference) == pytest.approx((3 - 2) / 2.5 * 0.5)
    # A bound on the better side of a target is no start.
    capped = parse_objectives(["accuracy", "latency_ratio"], ["accuracy<=0.9"], ACCURACY)
    assert capped.volume(results[:1], baseline) == pytest.approx(0.5)


def test_the_expected_improvement_follows_records_of_a_logarithm():
    curve = [0.5 + 0.1 * math.log(n) for n in range(1, 41)]
    assert expected_improvement(curve, 40) == pytest.approx(0.1 * math.log(2))
    assert expected_improvement(curve, 80) == pytest.approx(0.1 * math.log(3))
    assert expected_improvement([0.7] * 40, 10) == 0.0
    assert expected_improvement([*[0.1] * 10, *[0.7] * 30], 10) == 0.0  # a jump long ago
    assert expected_improvement([None] * 40, 10) is None
    assert expected_improvement([0.5] * 7, 10) is None
    assert expected_improvement([*[None] * 20, *curve[20:]], 40) == pytest.approx(
        0.1 * math.log(2), rel=1e-6
    )


def test_the_expected_improvement_is_about_right_for_random_results():
    found, true = [], []
    for seed in range(300):
        words = random.Random(seed)
        results = [words.gauss(0, 1) for _ in range(60)]
        best = [max(results[: n + 1]) for n in range(60)]
        found.append(expected_improvement(best[:40], 20))
        true.append(best[59] - best[39])
    assert statistics.fmean(found) == pytest.approx(statistics.fmean(true), rel=0.3)


def test_stale_counts_results_since_the_last_progress():
    assert stale([]) == 0
    assert stale([None, None]) == 2
    assert stale([None, 0.5]) == 0
    assert stale([0.5, 0.5, 0.5002, 0.5003]) == 3  # less than a thousandth is no progress
    assert stale([0.5, 0.5, 0.51]) == 0


@pytest.mark.parametrize(
    ("targets", "constraints", "message"),
    [
        (["speed"], [], "'speed' is no measure"),
        (["accuracy:up"], [], "no such direction"),
        (["accuracy", "accuracy:min"], [], "given twice"),
        (["accuracy", "latency_ratio", "macs", "params", "memory"], [], "too many"),
        ([], ["latency_ratio<0.8"], "is no constraint"),
        ([], ["latency_ratio<=fast"], "is no constraint"),
        ([], ["latency_ratio<=nan"], "is no constraint"),
        ([], ["loss<=1"], "'loss' is no measure"),
        ([], ["macs<=100", "macs>=200"], "nothing can satisfy macs<=100 and macs>=200"),
        ([], ["latency_ratio<=0"], "nothing can satisfy"),
        ([], ["accuracy>=1.5"], "nothing can satisfy"),
    ],
)
def test_mistakes_are_named(targets, constraints, message):
    with pytest.raises(UserError, match=message):
        parse_objectives(targets, constraints, ACCURACY)


def test_targets_have_their_usual_directions():
    found = parse_objectives(["loss", "macs", "params:max"], ["macs <= 2e6"], LOSS)
    assert list(map(str, found.all)) == ["loss:min", "macs:min", "params:max"]
    assert list(map(str, found.constraints)) == ["macs<=2000000"]
    assert parse_objectives([], [], LOSS).are_default
    assert parse_objectives(["loss"], [], LOSS).are_default
    assert not parse_objectives(["loss"], ["macs<=9"], LOSS).are_default
