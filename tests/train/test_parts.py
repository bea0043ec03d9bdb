"""Schedules, fidelities, optimiser groups, averaged weights, stoppers."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from syno import UserError
from syno.data import DataSet
from syno.train import (
    FIDELITIES,
    Diverging,
    Fidelity,
    LeastAccuracy,
    MemoryLimit,
    Recipe,
    SlowStep,
    State,
    fidelity,
    recipe,
    train,
)
from syno.train.images import resized
from syno.train.numerics import Average
from syno.train.optimizers import make_optimizer, parameter_groups, set_rate
from syno.train.schedules import rate


@given(
    st.sampled_from(["linear", "cosine", "one-cycle", "cyclic", "constant"]),
    st.integers(1, 500),
    st.floats(0, 0.99),
)
def test_the_rate_rises_to_its_peak_and_falls(schedule: str, steps: int, warmup: float) -> None:
    how = Recipe("made", schedule=schedule, warmup=warmup)
    rates = [rate(how, step, steps) for step in range(steps)]
    assert all(0 < value <= 1 for value in rates)
    peak = int(np.argmax(rates))
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert peak <= warmup * steps + 1


def test_schedules_have_their_published_values() -> None:
    def at(schedule: str, step: int, **more: float | int) -> float:
        fields = {"warmup": 0.1, **more}
        return rate(Recipe("made", schedule=schedule, **fields), step, 100)  # type: ignore[arg-type]

    assert at("cosine", 0) == pytest.approx(1 / 11)
    assert at("cosine", 10) == at("linear", 10) == at("constant", 99) == pytest.approx(1.0)
    assert at("cosine", 55) == at("linear", 55) == pytest.approx(0.5)
    assert at("cosine", 99) < 0.001
    assert at("linear", 100, final_rate=0.2) == pytest.approx(0.2)
    # torch.optim.lr_scheduler.OneCycleLR is the reference.
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    reference = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 1.0, total_steps=100, pct_start=0.3, cycle_momentum=False
    )
    for step in range(100):
        # torch's top is one step earlier: it counts pct_start * total - 1.
        wanted = reference.get_last_lr()[0]
        assert at("one-cycle", step, warmup=29 / 99) == pytest.approx(wanted, abs=1e-6)
        optimizer.step()
        if step < 99:
            reference.step()


def test_a_cycle_begins_anew_and_the_papers_peak_is_at_epoch_two() -> None:
    how = Recipe("made", schedule="cyclic", warmup=0.5, cycles=2)
    rates = [rate(how, step, 40) for step in range(40)]
    assert rates[:20] == rates[20:]
    assert int(np.argmax(rates)) in (9, 10)
    imagenet = recipe("paper/imagenet")
    steps = 90 * 1252
    rates = [rate(imagenet, step, steps) for step in range(0, steps, 313)]
    assert int(np.argmax(rates)) == 2 * 4
    assert rates[46 * 4] == pytest.approx(0.5, abs=0.001)


def test_fidelities_are_found_by_name_and_survive_json() -> None:
    for entry in FIDELITIES:
        assert fidelity(entry.name) is entry
        assert Fidelity.from_json(json.loads(json.dumps(entry.to_json()))) == entry
    tiny = fidelity("tiny")
    assert (tiny.images, tiny.resolution, tiny.epochs) == (10_000, 16, 3)
    assert not fidelity("digits").recipe.flip
    assert fidelity("paper/cifar100").loaded_at == 32


def test_a_fidelity_of_before_there_were_recipes_is_read() -> None:
    stored = {
        "name": "tiny",
        "images": 10_000,
        "resolution": 16,
        "epochs": 3,
        "batch": 64,
        "learning_rate": 0.2,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "warmup": 0.2,
        "label_smoothing": 0.0,
        "clip_norm": 5.0,
        "crop": 0,
        "flip": True,
        "holdout": 0.1,
        "split_seed": 0,
    }
    found = Fidelity.from_json(stored)
    named = fidelity("tiny")
    assert found.recipe == replace(named.recipe, name="stored", version=0, summary="")
    assert replace(found, recipe=named.recipe) == named
    assert Fidelity.from_json(found.to_json()) == found


def test_a_fidelity_takes_another_recipe_and_other_amounts() -> None:
    found = fidelity("small", "fast/cifar").changed(epochs=5, batch=32)
    assert found.name == "small-fast/cifar"
    assert (found.images, found.epochs, found.batch) == (10_000, 5, 32)
    assert found.recipe.schedule == "one-cycle"
    with pytest.raises(UserError, match="has no 'epoch'\n  did you mean: epochs"):
        found.changed(epoch=3)


def test_an_unknown_fidelity_lists_what_exists() -> None:
    with pytest.raises(UserError) as error:
        fidelity("smal")
    first, second, third = str(error.value).split("\n")
    assert first == "unknown fidelity 'smal'"
    assert second.startswith("  expected: one of fast/adapt, ")
    assert third == "  did you mean: small?"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("epochs", 0, "a whole number of at least 1"),
        ("epochs", None, "a whole number; recipe 'fast/short' is for images"),
        ("images", -5, "a whole number of at least 2"),
        ("holdout", 1.0, "above 0 and below 1"),
        ("context", 5, "none: its recipe 'fast/short' is for images"),
        ("recipe", "x", "a Recipe, such as syno.train.recipe('fast/short')"),
    ],
)
def test_a_field_out_of_range_is_refused(field: str, value: object, expected: str) -> None:
    with pytest.raises(UserError) as error:
        replace(fidelity("tiny"), **{field: value})  # type: ignore[arg-type]
    assert str(error.value) == (
        f"fidelity 'tiny' cannot have {field} = {value!r}\n  expected: {expected}"
    )


def test_text_is_trained_for_steps_or_for_a_time() -> None:
    text = fidelity("fast/text")
    with pytest.raises(UserError, match="has steps = 600 and seconds = 2"):
        replace(text, seconds=2.0)
    with pytest.raises(UserError, match="has steps = None and seconds = None"):
        replace(text, steps=None)
    with pytest.raises(UserError, match="cannot have epochs = 3\n  expected: none"):
        replace(text, epochs=3)


def test_a_fidelity_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(UserError, match=r"(?s)cannot read a fidelity: .*'speed'"):
        Fidelity.from_json({**fidelity("tiny").to_json(), "speed": 1})
    with pytest.raises(UserError, match="has an unknown entry 'speed'"):
        Fidelity.from_json({"name": "old", "recipe": {"name": "x", "speed": 1}})


def scaled_net() -> nn.Module:
    """Three layers; the first two are one module."""
    inner = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, bias=False))
    return nn.Sequential(inner, nn.Linear(2, 2))


def test_rates_are_scaled_by_module_by_name_and_by_weight() -> None:
    net = scaled_net()
    net[0].lr_scale = 0.5  # type: ignore[assignment]
    net[0][1].lr_scale = {"weight": 0.25}  # type: ignore[index, union-attr]
    net[1].bias.lr_scale = 3.0  # type: ignore[union-attr]
    names = {id(p): name for name, p in net.named_parameters()}
    how = Recipe("made", weight_decay=0.1)
    found = {
        names[id(parameter)]: (group["weight_decay"], group["lr_scale"])
        for group in parameter_groups(net, how)
        for parameter in group["params"]  # type: ignore[attr-defined]
    }
    assert found == {
        "0.0.weight": (0.1, 0.5),
        "0.0.bias": (0.0, 0.5),
        "0.1.weight": (0.1, 0.25),
        "1.weight": (0.1, 1.0),
        "1.bias": (0.0, 3.0),
    }
    everything = parameter_groups(net, replace(how, decay_everything=True))
    assert {group["weight_decay"] for group in everything} == {0.1}
    copied = parameter_groups(copy.deepcopy(net[0]), how)
    assert {group["lr_scale"] for group in copied} == {0.5, 0.25}
    optimizer = make_optimizer(net, how)
    set_rate(optimizer, 0.2)
    assert {round(group["lr"], 6) for group in optimizer.param_groups} == {0.1, 0.05, 0.2, 0.6}


def test_steps_of_kernels_are_scaled_and_adamw_takes_the_root() -> None:
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[0].lr_multipliers = {"weight": 4.0}  # type: ignore[assignment]
    net[0].lr_scale = 0.5  # type: ignore[assignment]

    def scales(how: Recipe) -> list[object]:
        return [group["lr_scale"] for group in parameter_groups(net, how)]

    assert scales(Recipe("made")) == [2.0, 1.0]
    assert scales(Recipe("made", optimizer="adamw")) == [1.0]
    assert scales(Recipe("made", step_scales=False)) == [0.5, 1.0]
    net[0].lr_scale = 1.0  # type: ignore[assignment]
    assert scales(Recipe("made", optimizer="adamw")) == [2.0, 1.0]


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (-1.0, "lr_scale of '0' is -1.0\n  expected: a factor of at least 0"),
        ("big", "lr_scale of '0' is 'big'"),
        ({"wieght": 1.0}, "names 'wieght', which is no parameter of it"),
        ({"weight": float("nan")}, "lr_scale of '0.weight' is nan"),
    ],
)
def test_a_bad_scale_is_refused(scale: object, message: str) -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    net[0].lr_scale = scale  # type: ignore[assignment]
    with pytest.raises(UserError) as error:
        parameter_groups(net, Recipe("made"))
    assert message in str(error.value)


def test_a_scale_of_nothing_keeps_weights_as_they_were(dataset: DataSet, quick: Fidelity) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 2))
    net[1].lr_scale = 0.0  # type: ignore[assignment]
    before = copy.deepcopy(net)
    assert train(net, dataset, quick, 0).ok
    assert torch.equal(net[1].weight, before[1].weight)  # type: ignore[arg-type]
    assert not torch.equal(net[3].weight, before[3].weight)  # type: ignore[arg-type]


def test_the_optimiser_is_the_recipes() -> None:
    net = nn.Linear(2, 2)
    adam = make_optimizer(net, recipe("paper/gpt2"))
    assert isinstance(adam, torch.optim.AdamW)
    assert adam.param_groups[0]["betas"] == (0.9, 0.95)
    plain = make_optimizer(net, recipe("paper/cifar100"))
    assert isinstance(plain, torch.optim.SGD)
    assert (plain.defaults["nesterov"], plain.defaults["momentum"]) == (False, 0.9)
    assert make_optimizer(net, recipe("fast/short")).defaults["nesterov"]


def test_averaged_weights_follow_slowly_and_give_way() -> None:
    net = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(net.weight)
    average = Average(net, 0.5)
    nn.init.ones_(net.weight)
    average.update(net)
    assert average.kept["weight"].item() == pytest.approx(1 - 2 / 11)
    for _ in range(50):
        average.update(net)
    assert average.kept["weight"].item() == pytest.approx(1.0)
    nn.init.zeros_(net.weight)
    with average.inside(net):
        assert net.weight.item() == pytest.approx(1.0)
    assert net.weight.item() == 0.0


def test_statistics_are_averaged_with_the_weights_and_counters_are_copied() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).double()
    net[1].register_buffer("mask", torch.tensor(-math.inf), persistent=False)
    average = Average(net, 0.3)
    expected = {name: value.clone() for name, value in net.state_dict().items()}
    for step in range(1, 6):
        net(torch.randn(8, 3).double())
        with torch.no_grad():
            net[0].weight += torch.randn(4, 3)
        average.update(net)
        rate = 1 - min(0.3, (1 + step) / (10 + step))
        for name, value in net.state_dict().items():
            kept = expected[name]
            expected[name] = kept.lerp(value, rate) if value.is_floating_point() else value.clone()
    assert average.steps == 5
    assert average.kept["1.num_batches_tracked"] == 5
    assert list(average.kept) == list(expected)
    assert all(torch.equal(average.kept[name], value) for name, value in expected.items())


def test_images_are_scaled_to_a_resolution() -> None:
    images = torch.arange(16.0).view(1, 1, 4, 4)
    assert resized(images, 4) is images
    smaller = resized(images, 2)
    assert smaller.shape == (1, 1, 2, 2)
    assert smaller.mean() == pytest.approx(images.mean())
    assert resized(images, 7).shape == (1, 1, 7, 7)


def state(**fields: float | int | None) -> State:
    """A state in the middle of a training."""
    usual = {"epoch": 4, "epochs": 9, "step": 3, "steps": 8, "loss": 1.0, "epoch_loss": None}
    return State(**{**usual, "chance": 2.0, "seconds": 1.0, **fields})  # type: ignore[arg-type]


def test_stoppers_speak_at_their_limits() -> None:
    assert Diverging().check(state()) is None
    assert Diverging().check(state(recent_loss=6.0)) is None
    stop = Diverging().check(state(recent_loss=6.1))
    assert stop is not None
    assert (stop.status, stop.reason) == ("rejected", "diverging")
    table = LeastAccuracy(((1, 0.1), (5, 0.25)))
    assert table.check(state(accuracy=0.25)) is None
    assert table.check(state(accuracy=0.01, epoch=3)) is None
    stop = table.check(state(accuracy=0.24))
    assert stop is not None
    assert stop.detail == "the accuracy is 0.240 after epoch 5, and at least 0.25 is required"
    assert SlowStep(0.5).check(state(step_s=0.5)) is None
    stop = SlowStep(0.5).check(state(step_s=0.75))
    assert stop is not None
    assert stop.detail == "a step takes 0.75 s, more than 0.5 s"
    assert MemoryLimit(100).check(state(memory=100)) is None
    stop = MemoryLimit(2**20).check(state(memory=3 * 2**20))
    assert stop is not None
    assert stop.detail == "3 MiB of memory are in use, more than 1 MiB"
