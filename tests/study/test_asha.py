"""Asynchronous successive halving, against a small model of its own."""

from __future__ import annotations

import random

import pytest

from syno.study.fidelity import asha
from syno.study.fidelity.asha import Promotion, RungScore


class Model:
    """The rule as the paper's Algorithm 2 has it: rungs as lists, tops taken one by one.

    It shares nothing with the rule that is tested, and asks for one job at a time.
    """

    def __init__(self, rungs: int, eta: int) -> None:
        self.eta = eta
        self.scores: list[dict[int, float]] = [{} for _ in range(rungs)]
        self.sent: list[set[int]] = [set() for _ in range(rungs)]

    def job(self) -> tuple[int, int] | None:
        for rung in range(len(self.scores) - 2, -1, -1):
            left = dict(self.scores[rung])
            for _ in range(len(self.scores[rung]) // self.eta):
                # The most accurate, of equals the earliest; -1 is a failure.
                best = min(left, key=lambda ask: (-left[ask], ask))
                if left.pop(best) >= 0 and best not in self.sent[rung]:
                    self.sent[rung].add(best)
                    return best, rung + 1
        return None


@pytest.mark.parametrize("seed", range(300))
def test_promotes_what_the_papers_algorithm_promotes(seed):
    draws = random.Random(seed)
    rungs, eta = draws.randint(2, 4), draws.randint(2, 4)
    model = Model(rungs, eta)
    results: list[RungScore] = []
    reached: dict[int, int] = {}
    # Several workers: what was asked for is told in any order.
    running: list[tuple[int, int]] = []
    asks = 0
    for _ in range(draws.randint(1, 80)):
        if running and draws.random() < 0.6:
            ask, rung = running.pop(draws.randrange(len(running)))
            # Few values, so that there are ties; one in six fails.
            score = -1.0 if draws.random() < 1 / 6 else draws.randint(0, 5) / 5
            results.append(RungScore(ask, rung, None if score < 0 else score))
            model.scores[rung][ask] = score
            continue
        due = asha.due(results, reached, rungs, eta)
        job = model.job()
        assert (due[0] if due else None) == (Promotion(*job) if job else None), f"seed {seed}"
        if job is None:
            asks += 1
            job = (asks, 0)
        ask, rung = job
        reached[ask] = rung
        running.append((ask, rung))


def test_nobody_is_promoted_before_eta_results():
    results = [RungScore(1, 0, 0.9), RungScore(2, 0, 0.1)]
    assert asha.due(results, {1: 0, 2: 0}, 3, 3) == []
    assert asha.due([*results, RungScore(3, 0, 0.5)], {1: 0, 2: 0, 3: 0}, 3, 3) == [Promotion(1, 1)]


def test_a_failure_counts_and_is_never_promoted():
    results = [RungScore(ask, 0, None) for ask in range(1, 9)] + [RungScore(9, 0, 0.1)]
    reached = dict.fromkeys(range(1, 10), 0)
    assert asha.due(results, reached, 2, 3) == [Promotion(9, 1)]
    assert asha.due(results[:8], reached, 2, 2) == []


def test_the_higher_rung_comes_first_and_there_the_best():
    results = [RungScore(ask, 0, ask / 10) for ask in range(1, 10)]
    results += [RungScore(9, 1, 0.5), RungScore(8, 1, 0.6), RungScore(7, 1, 0.4)]
    reached = dict.fromkeys(range(1, 7), 0) | {7: 1, 8: 1, 9: 1}
    assert asha.due(results, reached, 3, 3) == [Promotion(8, 2)]
    assert asha.due(results, reached, 3, 2) == [Promotion(8, 2), Promotion(6, 1)]


@pytest.mark.parametrize("seed", range(50))
def test_values_rise_with_the_rung_and_within_it_with_the_accuracy(seed):
    draws = random.Random(seed)
    rungs = 3
    found = {ask: draws.randint(0, rungs - 1) for ask in range(1, 30)}
    results = [
        RungScore(ask, rung, draws.randint(0, 6) / 6 if draws.random() > 0.2 else None)
        for ask, top in found.items()
        for rung in range(top + 1)
    ]
    values = asha.values(results, rungs)
    assert all(0 <= value <= 1 for value in values.values())
    best = {}  # by operator, (rung, accuracy) of the highest rung with an accuracy
    for result in results:
        if result.accuracy is not None:
            best[result.ask] = max(best.get(result.ask, (0, 0.0)), (result.rung, result.accuracy))
    for ask, value in values.items():
        if ask not in best:
            assert value == 0
    for a, (rung, accuracy) in best.items():
        # By counting: what it beats of the others of its rung, ties by half.
        here = [r for r in results if r.rung == rung and r.ask != a]
        beaten = sum(1 for r in here if r.accuracy is None or r.accuracy < accuracy)
        ties = sum(1 for r in here if r.accuracy == accuracy)
        share = (beaten + ties / 2) / len(here) if here else 0.5
        assert values[a] == pytest.approx((rung + share) / rungs)


@pytest.mark.parametrize("seed", range(100))
def test_no_checkpoint_is_given_up_that_a_promotion_would_need(seed):
    draws = random.Random(seed)
    most, eta = draws.randint(3, 40), draws.randint(2, 4)
    results: list[RungScore] = []
    reached: dict[int, int] = {}
    kept: set[int] = set()
    for ask in range(1, most + 1):
        results.append(RungScore(ask, 0, draws.randint(0, 9) / 9))
        reached[ask] = 0
        kept = asha.keeps(results, 0, most, eta) & (kept | {ask})
        for promotion in asha.due(results, reached, 2, eta):
            assert promotion.ask in kept, f"seed {seed}"
            reached[promotion.ask] = 1
