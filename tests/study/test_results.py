"""The results of a search as an object, enqueued operators, callbacks and trained weights."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sys
import types
from pathlib import Path

import pytest
import torch
from tests.study import own
from torch import nn

import syno
from syno import IsolationOptions, SpaceOptions, TimingOptions, TrainOptions, UserError
from syno.cli import main as cli_main
from syno.data import load
from syno.store import Store
from syno.study import Study, StudySettings
from syno.study.evaluate.network import Network
from syno.study.members import SamplerSpace
from syno.study.progress import SearchBar, is_shown
from syno.study.specifications import small_vision
from syno.study.trained_network import model_of_shape
from syno.train import fidelity

BRIEF = fidelity("custom").changed(name="brief", epochs=2, batch=32, learning_rate=0.01)
FAST = {
    "isolation": IsolationOptions(isolate=False),
    "space": SpaceOptions(max_nodes=3000),
    "timing": TimingOptions(repeats=20),
    "train": TrainOptions(fidelity=BRIEF, max_slowdown=1000.0),
}
CONV = "y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,h+a-k/2,w+b-k/2] * w0[o,i,a,b]"


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("results") / "runs.db")
    seen: list[syno.store.Evaluation] = []
    arguments = {"store": path, "enqueue": ["conv2d"], "callbacks": [seen.append], **FAST}
    return syno.search(own.network(), own.images(), evaluations=3, **arguments), seen, path


def test_results_have_a_short_text_the_best_and_the_front(searched):
    found, _, path = searched
    assert len(repr(found)) < 200 and "3 trained" in repr(found)
    assert found.best in found.trained
    assert found.quality(found.best) == max(map(found.quality, found.trained))
    for cost, field in (("latency", "latency_ratio"), ("macs", "macs"), ("params", "params")):
        front = found.front(cost)
        costs = [getattr(trial, field) for trial in front]
        values = [found.quality(trial) for trial in front]
        assert costs == sorted(costs) and values == sorted(values)
        for trial in (found.baseline, *found.trained):  # the baseline is a trial like any other
            assert any(
                getattr(f, field) <= getattr(trial, field)
                and found.quality(f) >= found.quality(trial)
                for f in front
            )
    with pytest.raises(UserError, match="'time' is no cost"):
        found.front("time")
    again = syno.load_study(path)
    assert repr(again) == repr(found) and again.trials == found.trials


def test_a_study_without_a_result_says_why_it_stopped(searched):
    found, _, _ = searched
    none = dataclasses.replace(found, evaluations=(), stop_reason="seconds")
    assert "0 trained" in repr(none) and "stopped: seconds" in repr(none)


def test_an_operator_of_a_trial_computes_what_its_formula_says(searched):
    found, _, _ = searched
    first = found.trials[1]
    assert found.operator(first).formula() == CONV
    assert found.trial(first.key[:6]) == first
    assert found.trial("baseline") == found.baseline
    with pytest.raises(UserError, match="no trial with the id 'zz'"):
        found.trial("zz")


def test_the_ids_of_tables_name_trials_everywhere(searched, tmp_path):
    found, _, path = searched
    table = _printed(["status", "--store", path, "--operators"])
    for trial, row in zip(found.trials[1:], found.rows()[1:], strict=True):
        assert row["id"][:8] in table and row["id"][:8] in repr(trial)
        assert found.trial(row["id"][:8]) == trial
    best = found.operator(found.best).structure
    assert f"({best[:8]})" in repr(found)
    line = ["export-network", "--store", path, "--key", best[:8], "-o", str(tmp_path / "net")]
    assert _exit_code([*line, "--net", f"{_own_file(tmp_path)}:build"]) == 0
    with pytest.raises(UserError, match=found.rows()[1]["id"][:8]):
        found.trial("zz")


def test_callbacks_are_called_with_each_trial_in_order(searched):
    found, seen, _ = searched
    assert [trial.ask for trial in seen] == [0, 1, 2, 3]
    assert tuple(seen) == found.trials


def test_a_callback_that_returns_true_stops_the_search(tmp_path):
    def enough(trial):
        return trial.ask == 1

    store = str(tmp_path / "runs.db")
    found = syno.search(
        own.network(), own.images(), evaluations=5, callbacks=[enough], store=store, **FAST
    )
    assert len(found.evaluations) == 1
    assert found.stop_reason == "callback"
    assert found.events[-1].data["text"] == "the callback 'enough' stopped the search"


def test_rows_become_a_table_of_pandas_and_its_absence_is_explained(searched, monkeypatch):
    found, _, _ = searched
    rows = found.rows()
    assert [row["number"] for row in rows] == [0, 1, 2, 3]
    assert rows[0]["key"] == "baseline" and rows[1]["formula"] == CONV
    assert rows[1]["accuracy"] == found.trials[1].accuracy
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"(?s)pip install pandas.*rows\(\)"):
        found.trials_dataframe()
    pandas = types.SimpleNamespace(DataFrame=lambda given: ("table", given))
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert found.trials_dataframe() == ("table", rows)


def test_the_front_is_drawn(searched, tmp_path):
    found, _, _ = searched
    figure = found.plot_front(tmp_path / "front.png")
    assert len(figure.axes) == 2
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


def test_enqueued_operators_come_first_and_once_also_after_a_resume(tmp_path):
    path = str(tmp_path / "runs.db")
    net = own.network()
    ops = [CONV, "conv2d", "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * w0[o,i]"]
    found = syno.search(net, own.images(), evaluations=1, enqueue=ops, store=path, **FAST)
    assert found.operator(found.trials[1]).formula() == CONV
    again = syno.resume(
        path, net=net, data=own.images(), evaluations=3, isolation=FAST["isolation"]
    )
    formulas = [again.operator(trial).formula() for trial in again.evaluations]
    assert formulas[:2] == [CONV, ops[2]]
    assert len(set(formulas)) == 3


def test_an_operator_that_the_space_cannot_hold_is_refused():
    with pytest.raises(UserError, match=r"maps .* and the search is for"):
        syno.search(own.network(), own.images(), enqueue=["linear"], store="sqlite://", **FAST)


def test_a_custom_trainer_asks_and_tells(tmp_path):
    net = syno.substitute(own.network(), example_input=torch.zeros(1, 3, 8, 8))
    sampler = syno.Sampler.from_specification(small_vision(), net=net, max_nodes=3000)
    with Store.open(str(tmp_path / "runs.db")) as store:
        study = Study.create(store, "mine", StudySettings(evaluations=2), SamplerSpace(sampler))
        for proposal in study.ask(3):
            value = 0.5 if proposal.operator is None else 0.25
            study.tell(proposal.id, syno.Outcome("ok", accuracy=value))
        study.close()
        found = syno.load_study(store, "mine")
    assert [trial.accuracy for trial in found.trials] == [0.5, 0.25, 0.25]


def test_outside_of_a_terminal_a_search_says_what_it_replaces_and_no_more(tmp_path, capsys):
    assert not is_shown()
    arguments = {"store": str(tmp_path / "runs.db"), "evaluations": 1, **FAST}
    found = syno.search(own.network(), own.images(), **arguments)
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    report = syno.layer_report(
        syno.substitute(own.network(), example_input=own.images()[0][0][None])
    )
    assert line == (
        f"operators replace {len(report.slots)} of {len(report.rows)} layers with "
        f"{sum(row.share for row in report.slots):.0%} of the MACs: "
        + ", ".join(row.name for row in report.slots)
    )
    assert len(found.trained) == 1


def test_the_progress_bar_counts_trials(tmp_path):
    import io

    from rich.console import Console
    from rich.progress import Progress, TextColumn

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    bar = Progress(TextColumn("{task.description} {task.completed}/{task.total}"), console=console)
    with SearchBar(bar) as shown:
        syno.search(
            own.network(), own.images(), evaluations=1, observer=shown, store="sqlite://", **FAST
        )
        assert (bar.tasks[0].completed, bar.tasks[0].total) == (1, 1)
    assert "1/1" in stream.getvalue() and "stopped:" in stream.getvalue()


def test_weights_of_the_front_are_kept_and_others_deleted(searched):
    found, _, _ = searched
    kept = {file.name.partition("-")[0] for file in found.weights.iterdir()}
    assert "baseline" in kept and found.best.key in kept
    # What neither costs less nor is better than another operator is gone.
    beaten = [
        trial
        for trial in found.trained
        if any(
            other.macs < trial.macs
            and other.params < trial.params
            and other.latency_ratio < trial.latency_ratio
            and found.quality(other) > found.quality(trial)
            for other in found.trained
        )
    ]
    assert not kept & {trial.key for trial in beaten}


@pytest.mark.parametrize(
    ("key", "format"),
    [
        ("best", "torch-network"),
        pytest.param("baseline", "cpp-network", marks=pytest.mark.slow),
    ],
)
def test_a_trained_network_is_exported_and_runs_without_syno(searched, tmp_path, key, format):
    from syno.codegen.export import formats
    from syno.codegen.export.write import network_subject
    from syno.study.trained_network import trained_network

    found, _, path = searched
    wanted = found.best.key[:8] if key == "best" else key
    trained, example = trained_network(syno.load_study(path), wanted, net=own.network())
    inputs, labels = own.images().tensors
    with torch.no_grad():
        right = (trained(inputs).argmax(1) == labels).float().mean()
    assert right > 0.8  # these are trained weights, a guess is right for a third
    written = syno.export_network(found, wanted, tmp_path / "net", net=own.network(), format=format)
    run = formats.get(format).check(written, network_subject(trained, example))
    assert run.passed and run.output.startswith("right:")
    again = found.network(found.best if key == "best" else key, own.network())
    assert not again.training
    torch.testing.assert_close(again(inputs), trained(inputs))


def test_what_is_missing_for_an_export_is_said(searched, tmp_path):
    found, _, path = searched
    key = found.best.key[:8]
    with pytest.raises(UserError, match=r"(?s)started with a module.*pass net="):
        syno.export_network(path, key, tmp_path / "net")
    with pytest.raises(UserError, match="are not those of the network Sequential"):
        syno.export_network(path, key, tmp_path / "net", net=own.network(classes=5))
    none = dataclasses.replace(found, weights=None)
    with pytest.raises(UserError, match=r"(?s)were not kept.*weights_limit"):
        syno.export_network(none, key, tmp_path / "net", net=own.network())


def test_no_weights_are_kept_beyond_the_limit(tmp_path):
    train = dataclasses.replace(FAST["train"], weights_limit=0)
    path = str(tmp_path / "runs.db")
    found = syno.search(
        own.network(), own.images(), evaluations=1, store=path, **FAST | {"train": train}
    )
    assert found.weights is None and not list(tmp_path.glob("*.weights"))
    train = dataclasses.replace(FAST["train"], weights_limit=3000)
    found = syno.search(
        own.network(), own.images(), evaluations=1, store=path, **FAST | {"train": train}
    )
    assert sum(file.stat().st_size for file in found.weights.iterdir()) <= 3000


def _exit_code(line: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        cli_main.cli(line)
    return int(ended.value.code)


def _printed(line: list[str]) -> str:
    """What a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert _exit_code(line) == 0
    return printed.getvalue()


def _own_file(folder: Path) -> Path:
    """A file with a function `build` that makes the network of the search."""
    file = folder / "own_net.py"
    file.write_text("from tests.study import own\n\n\ndef build():\n    return own.network()\n")
    return file


@pytest.mark.slow
def test_the_command_exports_a_network_of_a_module_and_of_a_model(searched, tmp_path, capsys):
    found, _, path = searched
    line = ["export-network", "--store", path, "--key", found.best.key[:8]]
    line += ["--net", f"{_own_file(tmp_path)}:build", "-o", str(tmp_path / "out"), "--check"]
    assert _exit_code(line) == 0
    assert "run without Syno: right:" in capsys.readouterr().out
    store = str(tmp_path / "runs.db")
    brief = dataclasses.replace(fidelity("digits"), name="brief", images=128, epochs=1)
    named = syno.search(
        "cnn-small",
        "digits",
        evaluations=1,
        store=store,
        **FAST | {"train": TrainOptions(fidelity=brief, max_slowdown=1000.0)},
    )
    line = ["export-network", "--store", store, "--key", "baseline", "-o", str(tmp_path / "cnn")]
    assert _exit_code(line) == 0
    assert (tmp_path / "cnn.py").is_file() and named.baseline.accuracy is not None


@pytest.mark.parametrize(
    ("model", "shape", "example", "scores"),
    [
        (
            "cnn-small",
            {"input_shape": [1, 8, 8], "classes": 7, "vocabulary": None},
            torch.zeros(1, 1, 8, 8),
            (1, 7),
        ),
        (
            "gpt2-small",
            {"input_shape": [16], "classes": None, "vocabulary": 65},
            torch.arange(16)[None],
            (1, 16, 65),
        ),
    ],
)
def test_a_model_by_name_is_built_as_it_was_trained(model, shape, example, scores):
    net = model_of_shape(model, {"weights": "none.pt"}, shape, example).eval()
    assert net(example).shape == scores
    assert all(slot.shapes is not None for slot in syno.slots(net).values())


def test_a_model_by_name_starts_from_the_weights_of_a_file(tmp_path, capsys):
    net = syno.models.build("cnn-small", classes=10, channels=1, size=8)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(0.125)
    torch.save(net.state_dict(), tmp_path / "given.pt")
    network = Network.named("cnn-small", {"weights": str(tmp_path / "given.pt")}, load("digits"), 3)
    assert all(bool((p == 0.125).all()) for p in network.original().parameters())
    line = ["search", "--model", "cnn-small", "--data", "digits", "--dry-run"]
    assert _exit_code([*line, "--weights", str(tmp_path / "given.pt")]) == 0
    assert _exit_code([*line, "--weights", str(tmp_path / "none.pt")]) == 2
    assert "none.pt" in capsys.readouterr().err


def test_a_search_starts_from_the_weights_of_the_network():
    net = own.network()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1.0)
    seen: list[dict[str, torch.Tensor]] = []

    def looking(given: nn.Module) -> float:
        seen.append({name: tensor.clone() for name, tensor in given.state_dict().items()})
        return 0.5

    syno.search(
        net,
        evaluate=looking,
        example_input=torch.zeros(1, 3, 8, 8),
        evaluations=1,
        store="sqlite://",
        **FAST | {"train": TrainOptions()},
    )
    baseline, operator = seen
    kept = {"0.weight", "0.bias", "5.weight", "5.bias"} & set(operator)
    assert kept >= {"5.weight", "5.bias"}
    for name in kept:  # only what is replaced is new
        assert torch.equal(operator[name], net.state_dict()[name])
    new = [name for name in operator if "kernel" in name]
    assert new and not set(new) & set(baseline)
