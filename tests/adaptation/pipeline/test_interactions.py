"""The model of what slots lose together, and the choice that is corrected by what was seen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from syno.adaptation.pipeline.interactions import Interactions
from syno.network.choice import Choices


def test_losses_are_those_of_the_slots_and_of_pairs() -> None:
    model = Interactions([[0.0, 4.0], [1.0]], {(0, 1): 0.5})
    assert model.pairs == {(0, 1): [[0.0], [2.0]]}
    assert model.predicted([1, 0]) == pytest.approx(4.0 + 1.0 + 2.0 * 0.5 * 2.0)
    assert model.predicted([0, 0]) == pytest.approx(1.0)


def test_a_network_that_was_seen_is_predicted() -> None:
    model = Interactions([[0.0, 4.0], [0.0, 1.0], [0.0, 2.0]], {(0, 1): 0.2, (1, 2): 0.1})
    before = model.predicted([1, 1, 1])
    model.learn([1, 1, 1], 1.3 * before)
    model.learn([1, 1, 0], model.predicted([1, 1, 0]))
    assert model.predicted([1, 1, 1]) == pytest.approx(1.3 * before, rel=0.05)
    assert model.predicted([0, 0, 0]) == 0.0


def test_what_is_seen_twice_counts_once() -> None:
    once = Interactions([[0.0, 4.0], [0.0, 1.0]], {(0, 1): 0.2})
    twice = Interactions([[0.0, 4.0], [0.0, 1.0]], {(0, 1): 0.2})
    for model, times in ((once, 1), (twice, 3)):
        for _ in range(times):
            model.learn([1, 1], 9.0)
            model.learn([1, 0], 4.0)
    assert once.scores == twice.scores and once.pairs == twice.pairs


def test_distances_that_are_zero_say_nothing() -> None:
    model = Interactions([[0.0, 4.0], [0.0, 1.0]], {})
    model.learn([0, 0], 0.0)
    model.learn([1, 1], 0.0)
    assert model.scores == [[0.0, 4.0], [0.0, 1.0]]


def test_slots_that_are_alike_have_a_common_error() -> None:
    model = Interactions([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], {}, alike=[1, 2])
    model.learn([1, 0, 0], 1.0)
    model.learn([0, 1, 0], 0.4)
    first, second, third = (of[1] for of in model.scores)
    assert second < third < 0.8 * first
    assert model.predicted([0, 1, 0]) == pytest.approx(0.4, rel=0.1)
    assert model.predicted([1, 0, 0]) == pytest.approx(1.0, rel=0.1)


def test_the_best_assignment_is_found_though_the_measured_pairs_are_wrong() -> None:
    """Chosen again by what was seen, assignments get near to the best of all within a limit."""
    first, last = [], []
    for seed in range(12):
        random = np.random.default_rng(seed)
        scores = [[0.0, *sorted(random.random(3))] for _ in range(5)]
        costs = [[1.0, *sorted(random.random(3))[::-1]] for _ in range(5)]
        pairs = list(itertools.combinations(range(5), 2))
        truth = Interactions(scores, {pair: float(random.random()) for pair in pairs})
        model = Interactions(scores, dict.fromkeys(pairs, 0.1))
        within = [
            choice
            for choice in itertools.product(range(4), repeat=5)
            if sum(of[c] for of, c in zip(costs, choice, strict=True)) <= 2.5
        ]
        best = min(map(truth.predicted, within))
        seen: dict[tuple[int, ...], float] = {}
        for _ in range(6):
            new = sorted((c for c in within if c not in seen), key=model.predicted)[:3]
            for choice in new:
                seen[choice] = truth.predicted(choice)
                model.learn(choice, seen[choice])
            if len(seen) == 3:
                first.append(min(seen.values()) / best)
        last.append(min(seen.values()) / best)
    assert np.mean(last) < 1.02
    assert np.mean(last) < 0.5 + 0.5 * np.mean(first)


def test_further_assignments_are_others() -> None:
    choices = Choices([[0.0, 1.0], [0.0, 1.0]], {"latency": [[1.0, 0.0], [1.0, 0.0]]})
    first = choices.several({"latency": 2.0}, 2)
    rest = choices.several({"latency": 2.0}, 9, other_than=[one.choice for one in first])
    assert len({one.choice for one in (*first, *rest)}) == 4
    every = [one.choice for one in (*first, *rest)]
    assert choices.several({"latency": 2.0}, 2, other_than=every) == []
