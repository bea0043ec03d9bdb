"""Training: learns, repeats itself, stops early, and gives failures as values."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from syno import UserError
from syno.data import DataSet, Split, load
from syno.network.models import build
from syno.train import (
    Fidelity,
    MemoryLimit,
    ProcessorTimeLimit,
    SlowStep,
    State,
    Stop,
    TrainingOutcome,
    TrainingStopper,
    accuracy,
    fidelity,
    test_accuracy,
    train,
)


def linear(seed: int = 0) -> nn.Module:
    """A network for the made images."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(16, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 2)
    )


class Failing(nn.Module):
    """Calls `fail` in a chosen forward pass."""

    def __init__(self, fail: Callable[[torch.Tensor], torch.Tensor], at: int = 3) -> None:
        super().__init__()
        self.net = linear()
        self.fail = fail
        self.passes = 0
        self.at = at

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        y = self.net(x)
        return self.fail(y) if self.passes == self.at else y


def raising(error: Exception) -> Callable[[torch.Tensor], torch.Tensor]:
    """A forward pass that raises."""

    def fail(y: torch.Tensor) -> torch.Tensor:
        raise error

    return fail


def timeless(outcome: TrainingOutcome) -> TrainingOutcome:
    """The outcome without its clock readings."""
    curve = tuple(replace(point, seconds=0.0) for point in outcome.curve)
    clock = {"seconds": 0.0, "step_s": None, "peak_bytes": None, "tokens_per_s": None}
    return replace(outcome, curve=curve, **clock)  # type: ignore[arg-type]


def test_a_network_learns_and_the_outcome_adds_up(dataset: DataSet, quick: Fidelity) -> None:
    net = linear()
    outcome = train(net, dataset, quick, 0)
    assert outcome.ok
    assert outcome.accuracy is not None
    assert outcome.accuracy > 0.9
    assert outcome.accuracy == accuracy(net, dataset.validation_split(0.2, 0)[1], dataset)
    assert outcome.epochs_done == 4
    assert outcome.images_seen == 4 * 96
    assert [point.epoch for point in outcome.curve] == [1, 2, 3, 4]
    assert outcome.loss_sum == sum(point.loss for point in outcome.curve)
    assert outcome.curve[0].loss > outcome.curve[-1].loss
    assert 0 < outcome.curve[0].seconds <= outcome.curve[-1].seconds <= outcome.seconds
    assert outcome.threads == 1
    assert not net.training
    assert test_accuracy(net, dataset) > 0.9


def test_the_same_seed_gives_the_same_outcome_and_weights(
    dataset: DataSet, quick: Fidelity
) -> None:
    recipe = quick.changed(crop=1, flip=True, label_smoothing=0.1)
    first, second, other = linear(), linear(), linear()
    outcomes = [train(first, dataset, recipe, 5)]
    torch.manual_seed(77)  # the global generator has no say
    outcomes.append(train(second, dataset, recipe, 5))
    assert timeless(outcomes[0]) == timeless(outcomes[1])
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert train(other, dataset, recipe, 6).loss_sum != outcomes[0].loss_sum


def test_the_global_generator_is_left_alone(dataset: DataSet, quick: Fidelity) -> None:
    net = linear()
    before = torch.get_rng_state()
    train(net, dataset, quick, 0)
    assert torch.equal(before, torch.get_rng_state())


def test_the_test_split_is_never_read_while_training(dataset: DataSet, quick: Fidelity) -> None:
    unreadable = replace(dataset, test=None)  # type: ignore[arg-type]
    assert timeless(train(linear(), unreadable, quick, 0)) == timeless(
        train(linear(), dataset, quick, 0)
    )


def test_held_out_images_are_never_trained_on(dataset: DataSet, quick: Fidelity) -> None:
    held = dataset.validation_indices(quick.holdout, quick.split_seed)[1]
    images = dataset.train.images.copy()
    images[held] = 255 - images[held]
    changed = replace(dataset, train=Split(images, dataset.train.labels))
    a, b = (train(linear(), data, quick, 0) for data in (dataset, changed))
    assert a.loss_sum == b.loss_sum
    assert a.accuracy != b.accuracy


def test_measuring_accuracy_keeps_the_mode_of_the_network(dataset: DataSet) -> None:
    net = linear().train()
    state = copy.deepcopy(net.state_dict())
    scores = [accuracy(net, dataset.test, dataset) for _ in range(3)]
    assert len(set(scores)) == 1, "dropout was on"
    assert net.training
    accuracy(net.eval(), dataset.test, dataset)
    assert not net.training
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())


def test_fewer_images_are_a_stratified_part_and_the_holdout_stays(
    dataset: DataSet, quick: Fidelity
) -> None:
    few = replace(quick, images=40, epochs=1)
    outcome = train(linear(), dataset, few, 0)
    assert outcome.images_seen == 40
    with pytest.raises(UserError, match=r"requests 97 training images\n  expected: at most 96, "):
        train(linear(), dataset, replace(quick, images=97), 0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_rejected_and_spares_the_weights(
    dataset: DataSet, quick: Fidelity, value: float
) -> None:
    net = Failing(lambda y: y * value)
    outcome = train(net, dataset, quick, 0)
    assert (outcome.status, outcome.reason) == ("rejected", "non_finite_loss")
    assert "at step 3 of epoch 1" in outcome.detail
    assert outcome.accuracy is None
    assert outcome.curve == ()
    assert all(p.isfinite().all() for p in net.parameters())


def test_scores_that_are_not_finite_after_training_are_rejected(
    dataset: DataSet, quick: Fidelity
) -> None:
    steps = 4 * 8
    outcome = train(Failing(lambda y: y * math.nan, at=steps + 1), dataset, quick, 0)
    assert (outcome.status, outcome.reason) == ("rejected", "non_finite_scores")
    assert outcome.epochs_done == 4


class Confused(nn.Module):
    """Scores far from the truth that training cannot change."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bright = x.mean(dim=(1, 2, 3))
        return torch.stack([bright, -bright], dim=1) * 50 + 0 * self.unused


def test_a_loss_far_above_chance_is_rejected_after_the_first_epoch(
    dataset: DataSet, quick: Fidelity
) -> None:
    outcome = train(Confused(), dataset, quick, 0)
    assert (outcome.status, outcome.reason) == ("rejected", "loss_above_chance")
    assert outcome.detail.endswith("a uniform guess gives 0.693")
    assert outcome.images_seen == 96
    assert train(Confused(), dataset, quick, 0, stoppers=()).ok


def test_a_deadline_gives_a_timeout(dataset: DataSet, quick: Fidelity) -> None:
    outcome = train(linear(), dataset, replace(quick, epochs=100_000), 0, deadline_s=0.2)
    assert (outcome.status, outcome.reason) == ("timeout", "deadline")
    assert outcome.detail.startswith("the deadline of 0.2 s passed at step ")
    assert outcome.seconds > 0.2
    assert len(outcome.curve) == outcome.epochs_done


@pytest.mark.slow
def test_a_limit_of_processor_time_does_not_count_pauses(dataset: DataSet, quick: Fidelity) -> None:
    began = time.process_time()
    pauses = 0

    def pause(state: State) -> None:
        nonlocal pauses
        pauses += 1
        time.sleep(0.05)

    limit = ProcessorTimeLimit(0.5, began)
    long = replace(quick, epochs=100_000)
    outcome = train(linear(), dataset, long, 0, stoppers=[limit], progress=pause, deadline_s=120)
    assert (outcome.status, outcome.reason) == ("timeout", "deadline")
    assert outcome.detail.startswith("0.5 s of processor time passed at step ")
    assert pauses > 1 and outcome.seconds > 0.05 * pauses and time.process_time() - began > 0.5


@pytest.mark.parametrize(
    ("stopper", "reason", "steps"),
    [(SlowStep(1e-9), "slow_step", 5), (MemoryLimit(2**20), "memory", 1)],
)
def test_slow_steps_and_much_memory_end_a_training(
    dataset: DataSet, quick: Fidelity, stopper: TrainingStopper, reason: str, steps: int
) -> None:
    outcome = train(linear(), dataset, quick, 0, stoppers=[stopper])
    assert (outcome.status, outcome.reason) == ("rejected", reason)
    assert outcome.steps == steps
    assert outcome.peak_bytes is not None
    assert outcome.peak_bytes > 2**24
    generous = [SlowStep(60.0), MemoryLimit(2**40)]
    assert train(linear(), dataset, quick, 0, stoppers=generous).ok


def test_the_table_of_a_recipe_ends_a_training(dataset: DataSet, quick: Fidelity) -> None:
    strict = quick.changed(least_accuracy=((1, 0.0), (2, 1.0)), learning_rate=1e-6)
    outcome = train(linear(), dataset, strict, 0)
    assert (outcome.status, outcome.reason) == ("rejected", "below_least_accuracy")
    assert outcome.epochs_done == 2
    assert [point.accuracy is not None for point in outcome.curve] == [True, True]
    assert train(linear(), dataset, quick.changed(least_accuracy=((2, 0.0),)), 0).ok


def test_a_stopper_of_ones_own_ends_the_training(dataset: DataSet, quick: Fidelity) -> None:
    class AfterTwo:
        def check(self, state: State) -> Stop | None:
            done = state.epoch == 1 and state.epoch_loss is not None
            return Stop("rejected", "enough", "two epochs will do") if done else None

    outcome = train(linear(), dataset, quick, 0, stoppers=[AfterTwo()])
    assert (outcome.status, outcome.reason, outcome.detail) == (
        "rejected",
        "enough",
        "two epochs will do",
    )


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("shapes cannot be multiplied"), "runtime_error"),
        (MemoryError("no room"), "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out_of_memory"),
    ],
)
@pytest.mark.parametrize("at", [1, 33])
def test_a_network_that_fails_is_an_error_as_a_value(
    dataset: DataSet, quick: Fidelity, error: Exception, reason: str, at: int
) -> None:
    outcome = train(Failing(raising(error), at), dataset, quick, 0)
    assert (outcome.status, outcome.reason) == ("error", reason)
    assert outcome.detail == str(error)
    assert outcome.accuracy is None


def test_a_real_shape_error_of_torch_is_an_error_as_a_value(
    dataset: DataSet, quick: Fidelity
) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(17, 2))
    outcome = train(net, dataset, quick, 0)
    assert (outcome.status, outcome.reason) == ("error", "runtime_error")
    assert "mat1 and mat2 shapes cannot be multiplied (12x16 and 17x2)" in outcome.detail


@pytest.mark.parametrize(
    "error", [TypeError("t"), KeyError("k"), NotImplementedError("n"), RecursionError("r")]
)
def test_programming_errors_pass_through(
    dataset: DataSet, quick: Fidelity, error: Exception
) -> None:
    with pytest.raises(type(error)):
        train(Failing(raising(error)), dataset, quick, 0)


def test_mistakes_are_refused_by_text(dataset: DataSet, quick: Fidelity) -> None:
    wide = nn.Sequential(nn.Flatten(), nn.Linear(16, 5))
    with pytest.raises(UserError, match=r"shape \[12, 5\]\n  expected: \[12, 2\]"):
        train(wide, dataset, quick, 0)
    with pytest.raises(UserError, match=r"trains at 8 pixels, 'made' is loaded at 4\n.*size=8"):
        train(linear(), dataset, replace(quick, resolution=8), 0)
    with pytest.raises(UserError, match="the network has no parameters to train"):
        train(nn.Flatten(), dataset, quick, 0)


def test_progress_hears_of_every_step(dataset: DataSet, quick: Fidelity) -> None:
    heard: list[State] = []
    train(linear(), dataset, quick, 0, progress=heard.append)
    assert [(s.epoch, s.step) for s in heard] == [(e, s + 1) for e in range(4) for s in range(8)]
    assert {s.steps for s in heard} == {8}
    assert [s.epoch_loss is not None for s in heard] == [s.step == 8 for s in heard]


def test_weights_decay_but_normalisation_and_biases_do_not(
    dataset: DataSet, quick: Fidelity
) -> None:
    # The first linear layer never reaches the scores, so only decay moves it.
    class Aside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.idle = nn.Linear(4, 4)
            self.norm = nn.BatchNorm1d(4)
            self.used = linear()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            idle = self.norm(self.idle(x[:, 0, 0]))
            return self.used(x) + 0 * idle.sum()

    net = Aside()
    before = copy.deepcopy(net)
    train(net, dataset, quick.changed(weight_decay=0.1), 0)
    assert net.idle.weight.norm() < 0.99 * before.idle.weight.norm()
    assert torch.equal(net.idle.bias, before.idle.bias)
    assert torch.equal(net.norm.weight, before.norm.weight)


def test_an_outcome_survives_json(dataset: DataSet, quick: Fidelity) -> None:
    outcome = train(linear(), dataset, quick, 0)
    assert TrainingOutcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


def test_the_residual_network_reads_digits_within_the_demo_budget() -> None:
    digits = load("digits")
    torch.manual_seed(0)
    net = build("resnet-small", classes=10, channels=1, size=8)
    outcome = train(net, digits, fidelity("digits"), 0)
    assert outcome.accuracy is not None
    assert outcome.accuracy > 0.95
    assert np.isclose(test_accuracy(net, digits), outcome.accuracy, atol=0.04)
