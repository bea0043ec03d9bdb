"""`syno.search` and `syno.resume`: arguments, modules of the user's, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from pathlib import Path

import pytest
import torch
from sqlalchemy import create_engine
from torch import nn

import syno
from syno import (
    IsolationOptions,
    SpaceOptions,
    Specification,
    TimingOptions,
    TrainOptions,
    UserError,
)
from syno.data import load
from syno.report import gather, write_page
from syno.store import Store
from syno.store.sealing import seal_store
from syno.study.evaluate.network import Network
from syno.study.observer import StudyObserver
from syno.study.specifications import small_vision, specification_for
from syno.study.training.finalists import Finalists
from syno.train import fidelity

BRIEF = dataclasses.replace(fidelity("digits"), name="brief", images=128, epochs=1)
# In this process, where torch is loaded; the first test uses isolation, and so do tests of it.
# Nothing is rejected for being slow, which a busy machine could be the reason of.
FAST = {
    "train": TrainOptions(fidelity=BRIEF, max_slowdown=1000.0),
    "isolation": IsolationOptions(isolate=False),
    "evaluations": 1,
    "space": SpaceOptions(max_nodes=1000),
    "timing": TimingOptions(repeats=20),
}


def own_net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3, padding=1),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "runs.db")


@pytest.mark.slow
def test_a_module_of_the_users_own_is_searched_and_resumed(path):
    net = own_net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    isolated = FAST | {"isolation": IsolationOptions(isolate=True)}
    summary = syno.search(net, "digits", store=path, **isolated)
    assert summary.study.name == "network-digits-1"
    assert [e.status for e in summary.evaluations] == ["ok"]
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    with pytest.raises(UserError, match=r"was started with a module.*\n.*net=\.\.\."):
        syno.resume(path, evaluations=2)
    notes = []

    class Watch(StudyObserver):
        def on_note(self, text):
            notes.append(text)

    assert summary.settings["training"]["max_attempts"] == 5
    seven = IsolationOptions(max_attempts=7)
    more = syno.resume(path, net=own_net(), evaluations=2, isolation=seven, observer=Watch())
    assert notes[0].startswith("max_attempts is 7 from now on: without isolation, an operator is")
    assert more.settings["training"]["max_attempts"] == 7
    assert more.evaluations[:1] == summary.evaluations
    assert len(more.trained) == 2


def test_a_study_of_before_there_were_recipes_is_read_and_goes_on(path):
    options = {"model_options": {"width": 4}, "store": path}
    syno.search("cnn-small", "digits", **options, **FAST)
    recipe = BRIEF.recipe.to_json()
    former = ("batch", "learning_rate", "momentum", "weight_decay", "warmup", "label_smoothing")
    former = {key: recipe[key] for key in (*former, "clip_norm", "crop", "flip")}
    amounts = ("name", "images", "resolution", "epochs", "holdout", "split_seed")
    former |= {key: getattr(BRIEF, key) for key in amounts}
    with sqlite3.connect(path) as connection:
        (settings,) = connection.execute("SELECT settings FROM study").fetchone()
        changed = json.dumps(json.loads(settings) | {"fidelity": former})
        connection.execute("UPDATE study SET settings = ?", (changed,))
    with create_engine(f"sqlite:///{path}").begin() as sealing:  # as if it had been written so
        assert seal_store(sealing) == []
    summary = syno.resume(path, evaluations=2)
    first, second = summary.trained
    assert first.recipe["fidelity"]["recipe"]["name"] == "fast/digits"
    assert second.recipe["fidelity"]["recipe"]["name"] == "stored"
    assert second.rung == "brief"
    with Store.open(path) as store:
        finalists = Finalists(store, None)
        assert all(finalists.evaluate(number) is not None for number in finalists.waiting)
        report = gather(store.summary())
    assert write_page(report, Path(f"{path}.html")).exists()


def test_a_search_into_an_open_store_leaves_it_open(path):
    with Store.open(path) as store:
        for _ in range(2):
            syno.search("cnn-small", "digits", model_options={"width": 4}, store=store, **FAST)
        assert [s.name for s in store.studies()] == ["cnn-small-digits-1", "cnn-small-digits-2"]
        first, second = (store.summary(s) for s in store.studies())
    assert [e.key for e in first.evaluations] == [e.key for e in second.evaluations]
    assert [e.accuracy for e in first.evaluations] == [e.accuracy for e in second.evaluations]


def test_a_study_about_a_model_takes_no_module(path):
    syno.search("cnn-small", "digits", model_options={"width": 4}, store=path, **FAST)
    with pytest.raises(UserError, match="is about the model 'cnn-small', not a module"):
        syno.resume(path, net=own_net())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"net": "lenet"}, "unknown model 'lenet'"),
        ({"net": 3}, "must be a torch.nn.Module or the name of a model, got 3"),
        ({"data": "no-such-data", "data_dir": "/nowhere"}, "/nowhere"),
        ({"train": TrainOptions(fidelity="huge")}, "unknown fidelity 'huge'"),
        ({"specification": "paper/lenet"}, "unknown preset 'paper/lenet'"),
        ({"method": "best"}, "no search method 'best'"),
        ({"evaluations": 0}, "'evaluations' is an integer of at least 1, got 0"),
        ({"max_nodes": 10}, r"no argument 'max_nodes'\n.*space=syno.SpaceOptions\(max_nodes=...\)"),
        ({"deadline_s": 1.0}, r"train=syno.TrainOptions\(deadline_s=...\)"),
        ({"repeats": 20}, r"timing=syno.TimingOptions\(repeats=...\)"),
        ({"isolate": True}, r"isolation=syno.IsolationOptions\(isolate=...\)"),
        ({"budget": 10}, "no argument 'budget'\n  expected: one of net, data"),
        ({"method": {"window": 0.5}}, "'method' has no field 'name'"),
        ({"store": "mysql://host/db"}, "expected: a file such as runs.db"),
        ({"net": nn.Linear(64, 10)}, "fails on the example input"),
        ({"net": nn.Sequential(nn.Flatten(), nn.Linear(64, 3))}, "has no slots"),
    ],
)
def test_what_cannot_be_searched_is_refused_and_leaves_no_study(path, changes, message):
    arguments = {"net": "cnn-small", "data": "digits", "store": path, **FAST, **changes}
    with pytest.raises(UserError, match=message):
        syno.search(**arguments)
    if "store" not in changes:
        with Store.open(path) as store:
            assert store.studies() == []


def test_shapes_that_no_operator_connects_are_refused_with_the_reasons(path):
    specification = syno.Specification(
        "[N, C_in, H, H]",
        "[N, C_out, H, H]",
        ["N: 0", "C_in: 0", "C_out: 0", "H: 0"],
        passed_through=[(0, 0)],
        max_depth=1,
    )
    with pytest.raises(UserError, match="no operator connects the shapes"):
        syno.search("cnn-small", "digits", specification=specification, store=path, **FAST)


@pytest.mark.parametrize("layers", [(), ("C_in=64,C_out=64,H=28",)])
def test_limits_replace_those_of_the_specification(path, layers):
    """A limit on macs is about the network, also when the specification has layers of its own."""
    specification = small_vision(bindings=layers, max_macs=10**7) if layers else None
    limits = {"max_macs": 30_000, "max_depth": 9}
    with Store.open(path) as store:
        arguments = FAST | {"space": SpaceOptions(max_nodes=4000, limits=limits), "store": store}
        options = {"model_options": {"width": 4}, "specification": specification}
        summary = syno.search("cnn-small", "digits", **arguments, **options)
    stored = summary.study.specification["limits"]
    assert (stored["max_macs"], stored["max_depth"]) == (30_000, 9)
    assert all(e.macs <= 30_000 for e in summary.trained)
    wrong = FAST | {"space": SpaceOptions(limits={"max_dept": 3})}
    with pytest.raises(UserError, match="unknown argument or limit 'max_dept'"):
        syno.search("cnn-small", "digits", store=path, **wrong)


def test_there_is_nothing_to_resume_in_a_store_that_does_not_exist(path):
    with pytest.raises(UserError, match="there is no store"):
        syno.resume(path)


def test_a_preset_of_the_paper_has_its_window_of_macs_for_the_network():
    """Shares of the whole network, the layers that stay counted in; what is asked for here wins."""
    network = Network.named("resnet-small", {"width": 4}, load("digits", size=8), 0)
    assert network.macs is not None and network.all_macs is not None
    kept = network.all_macs - network.macs
    assert kept > 0
    found = specification_for("paper/resnet18", {}, network).limits
    window = [0.15 * network.all_macs - kept, 0.9 * network.all_macs - kept]
    assert [found["min_macs"], found["max_macs"]] == pytest.approx(window, abs=1)
    found = specification_for("paper/resnet18", {"max_macs": 9000, "max_depth": 3}, network).limits
    assert (found["max_macs"], found["max_depth"]) == (9000, 3)
    assert found["min_macs"] == pytest.approx(window[0], abs=1)
    with pytest.raises(UserError, match="min_macs=8862 is above max_macs=5000"):
        specification_for("paper/resnet18", {"max_macs": 5000}, network)
    # One that the paper gives no window for, and layers of one's own.
    assert specification_for("paper/vit", {}, network).limits["max_macs"] == 0
    own = Specification.preset("paper/resnet18")
    assert specification_for(own, {}, network) is own


def test_the_resolution_of_the_default_fidelity_is_that_of_the_slots(path):
    net = syno.substitute(own_net_of_size(12), example_input=torch.zeros(1, 1, 12, 12))
    options = FAST | {"train": TrainOptions(max_slowdown=1000.0)}
    summary = syno.search(net, "digits", store=path, **options)
    assert summary.settings["fidelity"]["resolution"] == 12
    assert [each.status for each in summary.evaluations] == ["ok"]


def test_slots_of_another_resolution_than_the_fidelity_are_refused(path):
    net = syno.substitute(own_net_of_size(12), example_input=torch.zeros(1, 1, 12, 12))
    message = (
        "slots of the network were created for images of 12x12 pixels, and the training uses 8x8"
        r"\n.*fidelity.changed\(resolution=12\)"
    )
    with pytest.raises(UserError, match=message):
        syno.search(net, "digits", store=path, **FAST)
    assert not Path(path).exists()


def own_net_of_size(size: int) -> nn.Module:
    """A network for images of any size, whose slots have one."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3, padding=1),
        nn.AdaptiveAvgPool2d(size),
        nn.Flatten(),
        nn.Linear(8 * size * size, 10),
    )


def test_layers_that_a_small_resolution_takes_from_a_search_are_named(path):
    notes = []

    class Watch(StudyObserver):
        def on_note(self, text):
            notes.append(text)

    options = {"model_options": {"cifar_stem": 1}, "store": path, "observer": Watch()}
    with pytest.raises(UserError, match="no operator"):  # no time is spent on a training
        impossible = SpaceOptions(max_nodes=1000, limits={"max_depth": 1})
        syno.search("resnet18", "digits", **options, **(FAST | {"space": impossible}))
    slots, lost = notes
    assert slots.startswith("operators replace ") and "layer1.0.conv1" in slots
    assert lost.startswith("no operator can replace layer3.0.conv1, layer3.0.conv2 and")
    assert "at 8x8 pixels, their feature maps are too small (H=2, W=2 is below 4)" in lost
    assert "--resolution" in lost
