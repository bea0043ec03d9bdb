"""The parts of an adaptation, without a search."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.adaptation.pipeline import fine_tuning
from syno.adaptation.pipeline.fine_tuning import without_dropout
from syno.adaptation.pipeline.goals import Goal, goal
from syno.adaptation.pipeline.journal import open_journal
from syno.adaptation.pipeline.latency import NetworkLatency
from syno.adaptation.pipeline.rivals.low_rank import low_rank
from syno.adaptation.pipeline.scores import combined
from syno.adaptation.pipeline.screening import best_fronts
from syno.network import models
from syno.network.choice import Choices
from syno.store import Store

from .conftest import options

# Settings.


def test_long_settings_are_compared_whole():
    with Store.open("sqlite://") as store:
        with open_journal(store, "one", "one", {"operators": [300 * "a" + "b"]}, 0):
            pass
        other = open_journal(store, "one", "one", {"operators": [300 * "a" + "c"]}, 0)
        with pytest.raises(UserError, match="with other settings\n  operators: "), other:
            pass


# Goals.


@pytest.mark.parametrize(
    ("resource", "value", "expected"),
    [
        ("latency", "0.5x", Goal("latency", share=0.5)),
        ("latency", "50%", Goal("latency", share=0.5)),
        ("latency", "1.5ms", Goal("latency", amount=1.5)),
        ("latency", "200 us", Goal("latency", amount=0.2)),
        ("latency", 2.5, Goal("latency", amount=2.5)),
        ("slots", "0.5ms", Goal("slots", amount=0.5)),
        ("macs", "40M", Goal("macs", amount=40e6)),
        ("params", "1200", Goal("params", amount=1200.0)),
    ],
)
def test_a_goal_is_a_share_or_an_amount(resource, value, expected):
    assert goal(resource, value) == expected


@pytest.mark.parametrize("value", ["half", "0.5y", "1.2x", "0x", "-1", "40M", True, None, 0.0])
def test_another_goal_is_an_error(value):
    with pytest.raises(UserError, match="'latency' of a goal"):
        goal("latency", value)


# Choice.


def test_fronts_are_taken_one_after_the_other():
    points = [(1.0, 5.0), (2.0, 3.0), (3.0, 4.0), (4.0, 1.0), (5.0, 2.0)]
    assert best_fronts(points, 3) == [0, 1, 3]
    assert best_fronts(points, 2) == [0, 3]
    assert best_fronts(points, 4) == [0, 1, 2, 3]
    assert best_fronts([], 3) == []


def test_pairs_of_slots_count_as_in_all_assignments():
    random = np.random.default_rng(3)
    counts = (3, 4, 2)
    for _ in range(20):
        scores = [random.random(n).tolist() for n in counts]
        cost = [random.random(n).tolist() for n in counts]
        pairs = {
            (0, 1): random.normal(size=(3, 4)).tolist(),
            (1, 2): random.normal(size=(4, 2)).tolist(),
        }
        choices = Choices(scores, {"latency": cost}, pairs)
        every = [choices.assignment(c) for c in itertools.product(*map(range, counts))]
        for limit in (0.8, 1.5, 3.0):
            kept = [one for one in every if one.costs["latency"] <= limit]
            if not kept:
                continue
            found = choices.best({"latency": limit})
            assert found.score == pytest.approx(min(one.score for one in kept))


def test_pairs_of_another_size_are_an_error():
    with pytest.raises(UserError, match="for 2 x 1 candidates"):
        Choices([[0.0, 1.0], [0.0]], {}, {(0, 1): [[0.0]]})


def test_scores_join_distances_and_errors():
    distances = {"original": 0.0, "a": 0.2, "b": 0.4}
    errors = {"original": 0.0, "a": 0.1, "b": 0.2}
    assert combined(distances, errors, "both") == pytest.approx(distances)
    assert combined(distances, errors, "distance") == distances
    assert combined({"original": 0.0, "a": 0.2}, errors, "both")["b"] == pytest.approx(0.4)
    assert combined({"original": 0.0}, errors, "both", 3.0)["b"] == pytest.approx(0.6)
    noisy = combined({"original": 0.0, "a": 0.2, "b": 0.15}, errors, "both")
    assert noisy["b"] > noisy["a"]


def test_the_model_of_latencies_learns_a_line():
    model = NetworkLatency(original_ms=10.0, slots_ms=6.0)
    assert model.predicted(6.0) == pytest.approx(10.0)
    assert model.slots(7.0) == pytest.approx(3.0)
    model.learn(2.0, 8.0)  # predicted as 6
    assert model.predicted(6.0) == pytest.approx(10.0)
    assert model.predicted(2.0) == pytest.approx(8.0)
    model.learn(2.0, 8.0)
    assert model.predicted(4.0) == pytest.approx(9.0)


# Rivals.


def test_low_rank_is_the_nearest_matrix(trained):
    net = syno.substitute(trained, example_input=torch.randn(1, 4, 8, 8))
    x = torch.randn(2, 4, 8, 8)
    found = low_rank(net, 1.0)
    pair = syno.slots(found)["first"].kernel
    product = (pair[1].weight.flatten(1) @ pair[0].weight.flatten(1)).detach()
    matrix = trained.first.weight.detach().flatten(1)
    rank = pair[0].out_channels
    values = torch.linalg.svdvals(matrix)
    expected = values[rank:].square().sum()
    torch.testing.assert_close((matrix - product).square().sum(), expected, rtol=1e-3, atol=1e-5)
    assert found(x).shape == (2, 3)
    smaller = low_rank(net, 0.4)
    assert syno.slots(smaller)["first"].kernel[0].out_channels < rank


def test_whole_branches_are_kept_in_the_fine_tuning():
    net = models.build("efficientnet_v2_s", classes=4, channels=3, size=32)
    branches = [each for each in net.modules() if type(each).__name__ == "StochasticDepth"]
    before = [each.p for each in branches]
    assert max(before) > 0.1
    x = torch.ones(1000, 1)
    with without_dropout(net):
        assert all(torch.equal(each.train()(x), x) for each in branches)
    assert [each.p for each in branches] == before
    assert not torch.equal(branches[-1](x), x)


def test_dropout_is_off_in_the_fine_tuning(monkeypatch):
    net = nn.Sequential(nn.Dropout(0.3), nn.Dropout2d(0.2), nn.Linear(2, 2)).train()
    with pytest.raises(KeyError), without_dropout(net):
        assert [each.p for each in net[:2]] == [0.0, 0.0]
        raise KeyError
    assert [each.p for each in net[:2]] == [0.3, 0.2]

    def train(trained, *_, **__):
        assert [each.p for each in trained[:2]] == [0.0, 0.0]
        return SimpleNamespace(status="ok", accuracy=0.5, seconds=1.0)

    monkeypatch.setattr(fine_tuning, "train", train)
    objective = SimpleNamespace(field="accuracy")
    subject = SimpleNamespace(
        original=net, dimension=1, data=None, distance=None, objective=objective, frozen={}
    )
    tuner = fine_tuning.FineTuner(subject, options(), None, 0, print)
    assert tuner.tuned(net, None, seed=0).value == 0.5
    assert [each.p for each in net[:2]] == [0.3, 0.2]
