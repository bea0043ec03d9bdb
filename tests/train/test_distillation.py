"""Distillation: the loss, the features, and the trainer."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from syno import UserError
from syno.data.custom import custom_data
from syno.train import Distillation, ForeignCheckpointError, fidelity, make_task, train


def net(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def data():
    random = torch.Generator().manual_seed(0)
    return custom_data(
        TensorDataset(
            torch.randn(200, 6, generator=random), torch.randint(3, (200,), generator=random)
        )
    )


LENGTH = fidelity("fast/adapt-custom").changed(epochs=4, batch=20, learning_rate=0.02)


def test_a_network_equal_to_its_teacher_has_its_own_loss_alone():
    one, other = net(0), net(0)
    x = torch.randn(5, 6)
    own = torch.tensor(2.0)
    with Distillation(other, weight=0.25).beside(one) as lesson:
        found = lesson.loss(own, one(x), x)
    torch.testing.assert_close(found, torch.tensor(1.5))


def test_the_distance_is_the_divergence_of_softened_scores():
    one, other = net(0), net(1)
    x = torch.randn(5, 6)
    with Distillation(other, weight=1.0, temperature=2.0).beside(one) as lesson:
        found = lesson.loss(torch.tensor(0.0), one(x), x)
    wanted = torch.softmax(other(x) / 2, 1)
    expected = (wanted * (wanted / torch.softmax(one(x) / 2, 1)).log()).sum(1).mean() * 4
    torch.testing.assert_close(found, expected)


def test_outputs_without_classes_have_a_squared_error():
    one, other = net(0), net(1)
    x = torch.randn(5, 6)
    with Distillation(other, dimension=None, weight=1.0).beside(one) as lesson:
        found = lesson.loss(torch.tensor(0.0), one(x), x)
    wanted = other(x)
    expected = (one(x) - wanted).square().mean() / wanted.var(correction=0)
    torch.testing.assert_close(found, expected)


def test_features_are_matched_and_hooks_go():
    one, other = net(0), net(1)
    x = torch.randn(5, 6)
    settings = Distillation(other, weight=0.0, features=["0"], feature_weight=2.0)
    with settings.beside(one) as lesson:
        scores = one(x)
        found = lesson.loss(torch.tensor(0.0), scores, x)
    wanted = other[0](x)
    error = (one[0](x) - wanted).square().mean() / wanted.var(correction=0)
    torch.testing.assert_close(found, 2 * error)
    assert not one[0]._forward_hooks and not other[0]._forward_hooks


def test_unknown_modules_and_settings_are_errors():
    with pytest.raises(UserError, match="the teacher has no module 'x'"):
        Distillation(net(0), features=["x"])
    with (
        pytest.raises(UserError, match="the network has no module '2'"),
        Distillation(net(0), features=["2"]).beside(nn.Linear(6, 3)),
    ):
        pass
    with pytest.raises(UserError, match="weight = 2"):
        Distillation(net(0), weight=2.0)


def test_a_network_learns_from_its_teacher_without_labels():
    teacher = net(0)
    found = {}
    x = torch.randn(100, 6)
    for weight in (0.0, 1.0):
        student = net(1)
        with torch.no_grad():
            before = (student(x).softmax(1) - teacher(x).softmax(1)).abs().mean()
        teaching = Distillation(teacher, weight=weight)
        outcome = train(student, data(), LENGTH, 0, stoppers=(), distillation=teaching)
        assert outcome.status == "ok"
        with torch.no_grad():
            after = (student(x).softmax(1) - teacher(x).softmax(1)).abs().mean()
        found[weight] = float(after / before)
    assert found[1.0] < 0.6 * found[0.0]


def test_a_checkpoint_belongs_to_its_teacher(tmp_path):
    path = tmp_path / "one.ckpt"
    first = Distillation(net(0))
    train(net(1), data(), LENGTH, 0, stoppers=(), checkpoint=path, stop_after=1, distillation=first)
    other = Distillation(net(2))
    for wrong in (None, other):
        with pytest.raises(ForeignCheckpointError, match="another data"):
            train(net(1), data(), LENGTH, 0, stoppers=(), checkpoint=path, distillation=wrong)
    resumed, whole = net(1), net(1)
    train(resumed, data(), LENGTH, 0, stoppers=(), checkpoint=path, distillation=first)
    train(whole, data(), LENGTH, 0, stoppers=(), distillation=copy.deepcopy(first))
    for a, b in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_task_gives_its_validation_split_in_order():
    task = make_task(data(), LENGTH)
    first, second = ([x for x, _ in task.validation()] for _ in range(2))
    assert sum(map(len, first)) == 20
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
