"""`syno.adapt` from end to end with small budgets."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
import re

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import syno
from marks import slow_but
from syno import UserError
from syno.adaptation.pipeline import fine_tuning, networks, page, screening
from syno.adaptation.pipeline.goals import Goal
from syno.adaptation.pipeline.results import NetworkRow, Reached, SlotRow
from syno.adaptation.pipeline.rivals import rivals
from syno.engines import engine
from syno.engines.engine_network import EngineNetwork
from syno.inference import load
from syno.store import Store
from syno.study.evaluate import engines

from .conftest import Net, options
from .conftest import adapted as adapt


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return str(tmp_path_factory.mktemp("adapt") / "runs.db")


@pytest.fixture(scope="module")
def before(trained):
    return copy.deepcopy(trained.state_dict())


@pytest.fixture(scope="module")
def found(before, trained, data, store):
    return adapt(trained, data, store, name="one")


def test_each_slot_has_an_operator_and_the_goal_is_kept(found):
    (network,) = found.networks
    assert network.name == "macs 0.6x"
    assert [row.slot for row in network.slots] == ["stem", "first", "second"]
    assert any(row.operator != "original" for row in network.slots)
    assert network.row.macs <= 0.6 * found.original.macs
    assert found.network("macs 0.6x") is network
    for row in network.slots:
        assert (row.error == 0.0) == (row.operator == "original")


def test_what_was_reached_of_each_goal_is_printed_first(found):
    (network,) = found.networks
    (reached,) = network.row.goals
    assert reached.resource == "macs" and not reached.missed
    assert reached.reached == pytest.approx(network.row.macs / found.original.macs)
    first = found.sections()[0]
    assert first.title == "Goals"
    assert first.facts == [("macs 0.6x", f"{reached.reached:.3f}x of macs, goal 0.6x")]
    missed = copy.copy(found)
    goal = Reached("latency", 0.35, 0.363)
    assert goal.missed and not Reached("latency", 0.35, 0.3505).missed
    row = dataclasses.replace(network.row, goals=(goal,))
    missed.networks = [dataclasses.replace(network, row=row)]
    text = "0.363x of latency, goal 0.35x missed"
    assert missed.sections()[0].facts == [("macs 0.6x", text)]
    assert f"The network macs 0.6x reaches {text}." in page.render(missed)
    (stored,) = json.loads(json.dumps(missed.to_json()))["networks"]
    assert stored["goals"] == [{"resource": "latency", "wanted": 0.35, "reached": 0.363}]


@pytest.mark.parametrize(
    ("goal", "wanted", "reached"),
    [
        (Goal("latency", share=0.35), 0.35, 0.363),
        (Goal("latency", amount=2.0), 0.5, 0.363),
        (Goal("slots", share=0.25), 0.25, 0.5),
        (Goal("slots", amount=1.0), 0.125, 0.5),
        (Goal("macs", amount=300.0), 0.3, 0.4),
        (Goal("params", share=0.5), 0.5, 0.6),
    ],
)
def test_what_is_reached_is_a_share_of_what_the_original_needs(goal, wanted, reached):
    original = NetworkRow("original", "", 0.9, latency_ms=4.0, macs=1000, params=50)
    row = NetworkRow("a", "", 0.9, ratio=0.363, latency_ms=1.452, macs=400, params=30)
    slots = [SlotRow("s", "", "", "", "", 4.0, 2.0, 1, 1, 0.0)] * 2
    found = networks._reached(goal, original, row, slots)
    assert found == Reached(goal.resource, pytest.approx(wanted), pytest.approx(reached))


def test_it_prints_as_its_table(found):
    assert str(found) == str(found.table())
    assert "Conv2d" not in repr(found)


def test_the_adapted_network_is_close_to_the_original(found, data):
    assert found.original.value > 0.8
    (network,) = found.networks
    assert network.row.value > found.original.value - 0.1
    inputs, targets = data.tensors
    with torch.no_grad():
        right = (network.net(inputs).argmax(1) == targets).float().mean()
    assert right > 0.8


def test_the_original_does_not_change(found, before, trained):
    assert all(torch.equal(v, trained.state_dict()[k]) for k, v in before.items())
    assert not syno.slots(trained)


def test_an_adaptation_that_is_repeated_computes_nothing_again(found, trained, data, store):
    seen = []
    again = adapt(trained, data, store, name="one", progress=lambda *told: seen.append(told[0]))
    assert again.rows == found.rows
    assert [n.slots for n in again.networks] == [n.slots for n in found.networks]
    assert not any(phase.startswith("fine-tuning") for phase in seen)
    x = torch.randn(4, 4, 8, 8)
    torch.testing.assert_close(again.networks[0].net(x), found.networks[0].net(x))


@pytest.mark.parametrize(
    "phase", slow_but(["candidates", "scores", "choice", "fine-tuning macs 0.6x"], "scores")
)
def test_an_interrupted_adaptation_goes_on(phase, found, trained, data, tmp_path):
    store = str(tmp_path / "runs.db")
    count = 0

    def interrupt(now, done, total, remark):
        nonlocal count
        count += now == phase
        if count == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt(trained, data, store, name="two", progress=interrupt)
    again = adapt(trained, data, store, name="two")
    (network,) = again.networks
    assert network.row.macs <= 0.6 * again.original.macs
    with Store.open(store) as opened:
        findings = [
            (event.data["what"], event.data["key"])
            for event in opened.events(opened.study("two"))
            if event.kind == "finding"
        ]
    assert len(findings) == len(set(findings))


@pytest.mark.slow
def test_a_half_trained_network_continues_without_another_fit(trained, data, tmp_path, monkeypatch):
    def interrupt(now, done, total, remark):
        if now.startswith("fine-tuning") and done > total / 2:
            raise KeyboardInterrupt

    store, given = str(tmp_path / "runs.db"), {"name": "two", "fidelity": {"epochs": 2}}
    with pytest.raises(KeyboardInterrupt):
        adapt(trained, data, store, **given, progress=interrupt)

    def again(*_, **__):
        raise AssertionError("the operators are fitted again")

    monkeypatch.setattr(networks, "assembled", again)
    (network,) = adapt(trained, data, store, **given).networks
    assert network.row.value > 0.7
    (file,) = tmp_path.rglob("*.safetensors")
    assert file.name == "macs-0.6x-0.safetensors"


def test_without_a_compiler_a_note_says_that_all_is_eager(trained, data, tmp_path, monkeypatch):
    def stop(now, done, total, remark):
        told.append((now, remark))
        if now == "original":
            raise KeyboardInterrupt

    told = []
    monkeypatch.setattr(engines, "no_compiler", lambda: "there is no C++ compiler\n  hint: ...")
    with pytest.raises(KeyboardInterrupt):
        adapt(trained, data, str(tmp_path / "runs.db"), options=syno.AdaptOptions(), progress=stop)
    notes = [remark for phase, remark in told if phase == "note"]
    assert notes == [
        "operators are trained and measured in eager PyTorch: there is no C++ compiler"
    ]


@pytest.mark.slow
def test_weights_that_are_gone_are_trained_again(trained, data):
    with Store.open("sqlite://") as store:  # which keeps no weights
        one = adapt(trained, data, store, name="one")
        again = adapt(trained, data, store, name="one")
        assert [each.row.macs for each in again.networks] == [row.row.macs for row in one.networks]


@pytest.mark.slow
def test_of_two_that_adapt_at_once_the_second_is_refused(trained, data, tmp_path):
    url = str(tmp_path / "runs.db")
    said = []

    def second(phase, *_):
        if phase == "candidates" and not said:
            said.append("")
            with pytest.raises(UserError, match="another process works on the adaptation 'one'"):
                adapt(trained, data, url, name="one")
            said.append("refused")

    adapt(trained, data, url, name="one", progress=second)
    assert said == ["", "refused"]
    with Store.open(url) as store:
        events = [e for e in store.events(store.study("one")) if e.kind == "finding"]
    keys = [(e.data["what"], e.data["key"]) for e in events]
    assert len(keys) == len(set(keys)) > 10


def test_other_settings_are_another_adaptation(found, trained, data, store):
    with pytest.raises(UserError, match=r"other settings\n  options\.keep: 2, now 3"):
        adapt(trained, data, store, name="one", options=options(keep=3))
    other = copy.deepcopy(trained)
    with torch.no_grad():
        other.head.bias.add_(1.0)
    with pytest.raises(UserError, match="fingerprint"):
        adapt(other, data, store, name="one")


def test_another_goal_continues_an_adaptation(found, trained, data, store):
    seen = set()
    both = adapt(
        trained,
        data,
        store,
        name="one",
        macs=["0.6x", "0.4x"],
        progress=lambda *told: seen.add(told[0]),
    )
    assert both.networks[0].row == found.networks[0].row
    assert both.networks[1].row.macs <= 0.4 * found.original.macs
    assert "fine-tuning macs 0.4x" in seen and "fine-tuning macs 0.6x" not in seen


@pytest.mark.slow
def test_times_decide_nothing_about_a_goal_for_macs(found, trained, data, tmp_path, monkeypatch):
    measured = screening.slot_latencies

    def random_times(*given, **more):
        times = random.Random(len(seen))
        seen.append("")
        return {
            name: found._replace(ms=times.uniform(0.1, 10.0))
            for name, found in measured(*given, **more).items()
        }

    seen: list[str] = []
    monkeypatch.setattr(screening, "slot_latencies", random_times)
    again = adapt(trained, data, str(tmp_path / "runs.db"))
    assert seen
    (first,), (second,) = found.networks, again.networks
    assert [row.operator for row in first.slots] == [row.operator for row in second.slots]
    assert first.row.value == second.row.value
    weights = first.net.state_dict()
    assert all(torch.equal(v, weights[k]) for k, v in second.net.state_dict().items())


@pytest.mark.slow
def test_a_goal_for_another_resource_has_candidates_of_its_own(trained, data, tmp_path):
    store = str(tmp_path / "runs.db")
    one = adapt(trained, data, store, name="one")
    two = adapt(trained, data, store, name="one", macs=None, slots="0.95x")
    assert [each.name for each in two.networks] == ["slots 0.95x"]
    with Store.open(store) as opened:
        events = opened.events(opened.study("one"))
    keys = [e.data["key"] for e in events if e.data.get("what") == "candidates"]
    kinds = ["stem", "first", "second"]
    assert sorted(keys) == sorted([*kinds, *(f"{kind} (latency)" for kind in kinds)])
    again = adapt(trained, data, store, name="one")
    assert again.rows == one.rows


@pytest.mark.slow
def test_neighbors_of_good_candidates_are_tried(found, trained, data, tmp_path):
    store = str(tmp_path / "runs.db")
    more = adapt(trained, data, store, name="one", options=options(mutations=8, keep=4))
    assert found.candidates < more.candidates <= found.candidates + 8
    with Store.open(store) as opened:
        events = opened.events(opened.study("one"))
    notes = [event.data for event in events if event.kind == "finding"]
    made = {row["name"] for note in notes if note["what"] == "mutations" for row in note["value"]}
    tried = {name for note in notes if note["what"] == "rough" for name in note["value"]}
    assert len(made) == more.candidates - found.candidates
    assert made & tried
    sources = {row.source for row in more.networks[0].slots}
    assert sources <= {"given", "mutation", "network"}


@pytest.mark.slow
def test_a_goal_for_the_slots_alone(trained, data, tmp_path):
    found = adapt(trained, data, str(tmp_path / "runs.db"), macs=None, slots="0.95x")
    (network,) = found.networks
    assert network.name == "slots 0.95x"
    before = sum(row.before_ms for row in network.slots)
    assert sum(row.after_ms for row in network.slots) <= 0.95 * before


def test_choices_are_made_again_until_nothing_better_comes(found, store):
    with Store.open(store) as opened:
        events = opened.events(opened.study("one"))
    notes = [event.data for event in events if event.kind == "finding"]
    (network,) = [n["value"] for n in notes if n["what"] == "network" and n["key"] == "macs 0.6x"]
    distances = {tuple(choice): far for choice, far in network["assembled"]}
    assert network["rounds"] >= 1 and len(distances) == len(network["assembled"])
    stored = {n["key"]: n["value"] for n in notes if n["what"] == "assembled"}
    for choice, far in distances.items():
        assert stored[" ".join(map(str, choice))] == far


@pytest.mark.slow
def test_further_seeds_are_added_when_an_adaptation_is_continued(trained, data, tmp_path):
    store = str(tmp_path / "runs.db")
    one = adapt(trained, data, store, name="one")
    three = adapt(trained, data, store, name="one", options=options(seeds=3))
    assert three.networks[0].row.values[0] == one.networks[0].row.value
    assert len(three.networks[0].row.values) == 3
    assert three.networks[0].slots == one.networks[0].slots
    seen = set()
    again = adapt(
        trained,
        data,
        store,
        name="one",
        options=options(seeds=3),
        progress=lambda *told: seen.add(told[0]),
    )
    assert again.networks[0].row == three.networks[0].row
    assert "fine-tuning macs 0.6x" not in seen


def test_a_training_that_makes_a_network_worse_is_taken_back(trained, data, tmp_path):
    recipe = tmp_path / "high.toml"
    recipe.write_text(
        'version = 1\ntask = "custom"\nsummary = "a rate that is far too high"\n'
        'learning_rate = 3.0\nbatch = 64\n\n[[rung]]\nname = "high"\nepochs = 1\n'
    )
    told = []
    found = adapt(
        trained,
        data,
        str(tmp_path / "runs.db"),
        fidelity=str(recipe),
        progress=lambda *what: told.append(what[0] == "note" and what[3]),
    )
    (network,) = found.networks
    assert network.row.value == network.row.fitted > 0.5
    assert any(text and "the fitted weights are kept" in text for text in told)
    inputs, targets = data.tensors
    with torch.no_grad():
        right = (network.net(inputs).argmax(1) == targets).float().mean()
    assert right > 0.5


def test_a_search_is_no_adaptation(trained, data, tmp_path):
    path = str(tmp_path / "runs.db")
    with Store.open(path) as opened:
        opened.create_study("taken", specification=("k", {}), settings={}, seed=0)
    with pytest.raises(UserError, match=r"study 'taken' .* is no adaptation"):
        adapt(trained, data, path, name="taken")


def test_an_unknown_option_names_its_group():
    with pytest.raises(UserError, match=r"options=syno\.AdaptOptions\(samples=\.\.\.\)"):
        syno.adapt(Net(), None, samples=3)


@pytest.mark.slow
def test_rivals_have_the_latency_of_the_network(trained, data, tmp_path, monkeypatch):
    monkeypatch.setattr(rivals, "_ENGINES", ("channels-last",))
    monkeypatch.setattr(rivals, "_FORMATS", ())
    teachers = []
    train = fine_tuning.train

    def trained_by(*arguments, distillation, **others):
        teachers.append(distillation.teacher)
        return train(*arguments, distillation=distillation, **others)

    monkeypatch.setattr(fine_tuning, "train", trained_by)
    found = adapt(trained, data, str(tmp_path / "runs.db"), macs=None, latency="1x", rivals=True)
    names = {row.name for row in found.rivals}
    assert {"original, trained on", "channel pruning 1x"} <= names
    assert {"narrower network 1x", "low rank 1x", "1x, syno-cpp-int8"} <= names
    tuned = next(row for row in found.rivals if row.name == "original, trained on")
    assert tuned.value > 0.8
    table = "\n".join(found.table().lines())
    assert "channel pruning 1x" in table
    (classic,) = (row for row in found.rivals if row.name == "depthwise-separable everywhere")
    assert classic.about == "in 3 of 3 slots"
    assert classic.params < found.original.params
    # A network from random weights is trained longer, by the same teacher.
    narrow = next(row for row in found.rivals if row.name == "narrower network 1x")
    assert narrow.about == "as pruned, from random weights, with the original as teacher"
    assert (tuned.length, found.networks[0].row.length) == ("1 epoch", "1 epoch")
    assert re.fullmatch(r"\d+ epochs?", narrow.length)
    assert teachers == [found.original_net] * len(teachers) and len(teachers) > 4


# NNCF clips values above the mean of what single samples reach.
@pytest.mark.parametrize(
    ("name", "most"),
    [
        pytest.param("onnxruntime-int8", 0.15, marks=pytest.mark.slow),
        ("syno-cpp-int8", 0.15),
        pytest.param("openvino-int8", 0.5, marks=pytest.mark.slow),
    ],
)
def test_int8_of_another_engine_is_calibrated_on_samples_and_has_an_accuracy(
    name, most, trained, data
):
    if not engine.available([name]):
        pytest.skip(f"the inference engine {name} is not installed")
    inputs = data.tensors[0]
    samples, example = list(inputs[:64].split(32)), inputs[:1]
    net = EngineNetwork(engine.get(name), trained, example, samples, 1)
    with torch.no_grad():
        expected = trained(inputs[64:128])
    # An adaptation in bfloat16 calls it, and so quantizes it, under autocast.
    with torch.autocast("cpu", torch.bfloat16):
        found = net(inputs[64:128])
    assert (found - expected).abs().max() < most * expected.abs().max()
    assert (found - expected).abs().median() < 0.03 * expected.abs().max()
    assert (found.argmax(1) == expected.argmax(1)).float().mean() > 0.95
    # Ranges of one sample with small numbers clip all others.
    narrow = EngineNetwork(engine.get(name), trained, example, [0.05 * samples[0][:1]], 1)
    assert (narrow(inputs[64:128]) - expected).abs().max() > 0.3 * expected.abs().max()
    assert torch.equal(net.once(), net(example))


@pytest.mark.slow
def test_int8_of_the_original_in_other_engines_is_a_row_with_its_accuracy(
    trained, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(rivals, "_ENGINES", ())
    monkeypatch.setattr(rivals.Rivals, "_tuned_original", lambda self, first: None)
    monkeypatch.setattr(rivals.Rivals, "_sized", lambda self, way, network: None)
    monkeypatch.setattr(rivals.Rivals, "_everywhere_it_fits", lambda self, name: {})
    found = adapt(trained, data, str(tmp_path / "runs.db"), rivals=True)
    names = engine.available(["onnxruntime-int8", "openvino-int8", "syno-cpp-int8"])
    rows = [row for row in found.rivals if row.engine in names]
    networks = [f"{each.name}, syno-cpp-int8" for each in found.networks]
    assert [row.name for row in rows] == [*(f"original, {name}" for name in names), *networks]
    for row in rows:
        assert row.about == "calibrated on 256 training samples"
        assert row.value == pytest.approx(found.original.value, abs=0.06)
        assert row.ratio > 0


def test_the_results_are_written(found, tmp_path):
    page = found.report(tmp_path / "page.html").read_text()
    for text in ("macs 0.6x", "conv 3x3", "fine-tuning", "one"):
        assert text in page
    stored = json.loads(json.dumps(found.to_json()))
    assert stored["environment"]["libraries"]["torch"] == torch.__version__
    assert stored["settings"]["fidelity"]["epochs"] == 1
    assert found.picture(tmp_path / "page.png").stat().st_size > 10_000
    with pytest.raises(UserError, match="cannot write the plot"):
        found.picture(tmp_path / "page.unknown")
    written = found.export(tmp_path / "net", "macs 0.6x")
    assert written.code.is_file()
    with pytest.raises(UserError, match="has no network '9x'"):
        found.network("9x")


@pytest.mark.parametrize("name", slow_but(["original", "macs 0.6x"], "macs 0.6x"))
def test_a_network_is_exported_in_int8(found, name, tmp_path):
    assert sum(map(len, found.samples)) == 256
    net = found.original_net if name == "original" else found.network(name).net
    written = found.export(tmp_path / "net", name, format="cpp-network", precision="int8")
    x = found.samples[0][:16]
    with torch.no_grad():
        expected = net(x)
    scores = torch.from_numpy(load(written.code)(x.numpy()))
    assert (scores - expected).norm() < 0.1 * expected.norm()
    with pytest.raises(UserError, match="does not have the precision 'int8'"):
        found.export(tmp_path / "net", name, precision="int8")


@pytest.mark.slow
def test_the_networks_are_timed_in_several_engines(found, tmp_path):
    timed = copy.copy(found)
    compared = timed.compare(["syno", "syno-cpp-int8"], rounds=3)
    pairs = {(time.network, time.engine) for time in compared.times}
    names = ["original", *(each.name for each in found.networks)]
    measured = ("eager", "syno", "syno-cpp-int8")
    assert pairs == {(name, engine) for name in names for engine in measured}
    accuracies = {time.engine: time.accuracy for time in compared.times if time.network == names[0]}
    assert accuracies["eager"] == accuracies["syno"] == pytest.approx(found.original.value)
    assert accuracies["syno-cpp-int8"] == pytest.approx(found.original.value, abs=0.06)
    assert compared.best in ("eager", "syno")
    (base,) = [t for t in compared.times if (t.network, t.engine) == ("original", compared.best)]
    assert base.over_best == 1
    assert "Inference engines" in timed.report(tmp_path / "page.html").read_text()
    assert "Inference engines" in [section.title for section in timed.sections()]
    assert timed.to_json()["engines"]["best"] == compared.best
    assert found.to_json()["engines"] is None
    with pytest.raises(UserError, match="there is no inference engine 'fast'"):
        timed.compare(["fast"])


def test_a_network_that_is_no_answer_is_marked_and_never_the_best(found):
    (network,) = found.networks
    base = found.original.value

    def marks(**changes):
        row = dataclasses.replace(network.row, value=base, ratio=0.5, **changes)
        one = dataclasses.replace(network, row=row)
        given = dataclasses.replace(found, networks=[one], max_drop=2.0)
        assert (given.best is None) == bool(given.marks(row))
        columns = given.table().names()
        assert ("but" in columns) == bool(given.marks(row))
        return given.marks(row)

    latency = Reached("latency", 0.5, 0.524)
    assert marks(goals=(latency,)) == []
    assert marks(goals=(Reached("latency", 0.5, 0.526),)) == ["misses its goal of 0.5x"]
    row = dataclasses.replace(network.row, goals=(latency,))
    given = dataclasses.replace(found, max_drop=2.0)
    worse = dataclasses.replace(row, value=base - 0.021, ratio=0.5)
    assert given.marks(worse) == ["loses more than 2.0 points"]
    slow = dataclasses.replace(row, value=base, ratio=1.01)
    assert given.marks(slow) == ["is no faster than the original"]
    # Fewer parameters may be wanted at any latency.
    small = dataclasses.replace(slow, goals=(Reached("params", 0.5, 0.4),))
    assert given.marks(small) == []


def test_an_adaptation_that_loses_too_much_has_no_best(found):
    worse = copy.copy(found)
    worse.original = found.original.__class__(name="original", about="", value=2.0)
    assert worse.best is None
    with pytest.raises(UserError, match="no network loses as little"):
        worse.export("net")


def test_a_regression_is_adapted(trained, data, tmp_path):
    inputs, _ = data.tensors
    with torch.no_grad():
        targets = trained(inputs)
    found = adapt(
        trained,
        TensorDataset(inputs, targets),
        str(tmp_path / "runs.db"),
        loss=nn.MSELoss(),
    )
    assert found.objective.name == "loss"
    assert found.networks[0].row.value < float(targets.var())
    assert re.search(r"0\.\d+", "\n".join(found.table().lines()))
