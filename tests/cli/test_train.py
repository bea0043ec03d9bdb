"""`syno train`: chosen operators, several seeds, one store."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from marks import with_slow
from syno.cli.main import cli
from syno.operators import zoo
from syno.store import Store
from syno.train import Fidelity

QUICK = ["--data", "digits", "--images", "200", "--epochs", "1", "--model-option", "width=8"]
QUICK += ["--no-isolate", "--repeats", "20"]
# A process of its own for each evaluation: a start of torch more for each seed.
ISOLATED = ["--data", "digits", "--images", "100", "--epochs", "1", "--model-option", "width=4"]
ISOLATED += ["--isolate", "--repeats", "20"]


def run(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(cli, ["train", *arguments])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, so that no store lies about."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Two operators and the baseline, two seeds each, in a store."""
    path = tmp_path_factory.mktemp("trained") / "r.db"
    result = CliRunner().invoke(
        cli,
        [
            *("train", "conv1x1", "grouped", "--baseline", *QUICK, "--seeds", "2"),
            *("--store", str(path), "--name", "mine", "--json"),
        ],
    )
    assert result.exit_code == 0, result.output
    return path, json.loads(result.stdout)


def by_name(rows: list[dict[str, Any]], precision: str = "float32") -> dict[str, dict[str, Any]]:
    """The rows of one precision."""
    return {row["name"]: row for row in rows if row["precision"] == precision}


def test_results_have_mean_spread_and_pairs(stored: tuple[Path, dict[str, Any]]) -> None:
    _, found = stored
    rows = by_name(found["results"])
    assert list(rows) == ["baseline", "conv1x1", "grouped"]
    for row in rows.values():
        assert [entry["seed"] for entry in row["seeds"]] == [0, 1]
        values = [entry["accuracy"] for entry in row["seeds"]]
        assert row["accuracy"]["mean"] == pytest.approx(sum(values) / 2)
        assert row["accuracy"]["deviation"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
        assert len(row["seeds"][0]["losses"]) == 1
    base = [entry["accuracy"] for entry in rows["baseline"]["seeds"]]
    own = [entry["accuracy"] for entry in rows["grouped"]["seeds"]]
    pair = rows["grouped"]["accuracy_beside_baseline"]
    mean = sum(a - b for a, b in zip(own, base, strict=True)) / 2
    assert pair["difference"] == pytest.approx(mean)
    assert pair["low"] <= mean <= pair["high"]
    assert rows["baseline"]["accuracy_beside_baseline"] is None
    assert rows["conv1x1"]["key"] is not None
    assert rows["conv1x1"]["macs"] * 9 == rows["baseline"]["macs"]


def test_each_network_is_timed_beside_the_original(stored: tuple[Path, dict[str, Any]]) -> None:
    _, found = stored
    rows = by_name(found["results"])
    assert rows["baseline"]["latency_ratio"] == 1.0
    for row in rows.values():
        assert row["latency_ms"] > 0
        ratios = [entry["latency_ratio"] for entry in row["seeds"]]
        assert row["latency_ratio"] == pytest.approx(sum(ratios) / 2)
        assert all(entry["noisy"] in (True, False) for entry in row["seeds"])
    result = run("conv1x1", *QUICK, "--no-latency", "--json")
    (row,) = json.loads(result.stdout)["results"]
    assert row["latency_ms"] is None
    shown = run("conv1x1", *QUICK)
    assert "latency" in shown.output
    assert "speed-up" in shown.output
    assert re.search(r" ms +[0-9.]+\N{MULTIPLICATION SIGN}", shown.output)


@pytest.mark.parametrize(
    "operators", with_slow([(), ("conv1x1", "grouped")], ("conv1x1", "grouped"))
)
def test_rows_in_int8_stand_behind_those_in_float32(
    operators: tuple[str, ...], stored: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path = a_copy(stored[0], tmp_path)
    options = [*QUICK, "--store", str(path), "--name", "mine", "--json"]
    ran = run(*operators, "--baseline", *options, "--seeds", "2", "--quantize")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    order = [(row["name"], row["precision"]) for row in found["results"]]
    names = ("baseline", *operators)
    assert order == [(name, kind) for name in names for kind in ("float32", "int8")]
    plain, quantised = by_name(found["results"]), by_name(found["results"], "int8")
    for name in names:
        assert quantised[name]["ok"]
        assert [entry["seed"] for entry in quantised[name]["seeds"]] == [0, 1]
        assert quantised[name]["macs"] == plain[name]["macs"]
        for one, other in zip(quantised[name]["seeds"], plain[name]["seeds"], strict=True):
            assert abs(one["accuracy"] - other["accuracy"]) < 0.06
            assert one["network_macs"] >= one["int8_macs"] > 0.9 * one["network_macs"]
            assert one["network_macs"] > plain[name]["macs"]
            assert one["calibration_images"] == 200
            assert one["latency_ratio"] > 0
        assert quantised[name]["accuracy_beside_baseline"]["count"] == 2
    with Store.open(str(path), read_only=True) as store:
        summary = store.summary("mine")
    assert len(summary.quantized) == 2 * len(names)
    for evaluation in summary.quantized:
        assert evaluation.precision == "int8"
        assert evaluation.recipe["engine"] == "syno-cpp-int8"
        assert evaluation.recipe["calibration"] == {"images": 256, "seed": 0}
    assert {e.precision for e in (*summary.evaluations, *summary.baselines)} == {"float32"}


@pytest.mark.slow
def test_int8_is_added_to_a_training_that_is_there(here: Path) -> None:
    options = [*QUICK, "--store", "r.db", "--name", "a", "--json"]
    first = json.loads(run("conv1x1", *options).stdout)["results"]
    second = run("conv1x1", *options, "--quantize", "--calibration-images", "32")
    assert second.exit_code == 0, second.output
    plain, quantised = json.loads(second.stdout)["results"]
    assert [plain] == first
    assert quantised["precision"] == "int8"
    assert quantised["seeds"][0]["calibration_images"] == 32
    shown = run("conv1x1", *QUICK, "--store", "r.db", "--name", "a", "--quantize")
    assert "conv1x1 in INT8: 100.0% of the network's MACs" in shown.output


def test_the_store_has_each_training_with_its_recipe(
    stored: tuple[Path, dict[str, Any]],
) -> None:
    path, found = stored
    with Store.open(str(path), read_only=True) as store:
        summary = store.summary("mine")
    assert summary.baseline is not None
    assert [e.seed for e in summary.baselines] == [0, 1]
    assert [(e.ask, e.seed) for e in summary.evaluations] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    for evaluation in summary.evaluations:
        fidelity = Fidelity.from_json(evaluation.recipe["fidelity"])
        assert fidelity.to_json() == Fidelity.from_json(found["fidelity"]).to_json()
        assert (fidelity.images, fidelity.epochs, fidelity.recipe.name) == (200, 1, "fast/digits")
        assert evaluation.rung == fidelity.name == "digits-images200-epochs1"
        assert evaluation.split == "holdout"
        assert evaluation.details["loss_sum"] > 0
    assert not summary.final
    assert summary.stop_reason == "done"
    assert summary.settings["method"] == "given"


def a_copy(store: Path, folder: Path) -> Path:
    """A copy of a store, for a test that adds to it."""
    return shutil.copytree(store.parent, folder / "copy") / store.name


def test_a_study_goes_on_with_what_is_missing(
    stored: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, before = a_copy(stored[0], tmp_path), stored[1]
    options = [*QUICK, "--store", str(path), "--name", "mine", "--json"]
    again = run("conv1x1", "grouped", "--baseline", *options, "--seeds", "2")
    assert json.loads(again.stdout)["results"] == before["results"]
    more = run("conv1x1", *options, "--seeds", "3")
    assert more.exit_code == 0, more.output
    rows = by_name(json.loads(more.stdout)["results"])
    assert [entry["seed"] for entry in rows["conv1x1"]["seeds"]] == [0, 1, 2]
    assert rows["conv1x1"]["seeds"][:2] == by_name(before["results"])["conv1x1"]["seeds"]
    assert rows["conv1x1"]["accuracy_beside_baseline"]["count"] == 2


def test_status_and_report_and_final_read_the_study(
    stored: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path = a_copy(stored[0], tmp_path)
    status = CliRunner().invoke(cli, ["status", str(path), "--study", "mine", "--operators"])
    assert status.exit_code == 0, status.output
    page = tmp_path / "page.html"
    arguments = ["report", str(path), "--study", "mine", "-o", str(page), "--final"]
    report = CliRunner().invoke(cli, arguments)
    assert report.exit_code == 0, report.output
    assert page.stat().st_size > 10_000
    with Store.open(str(path), read_only=True) as store:
        final = store.summary("mine").final
    assert {e.split for e in final} == {"test"}
    assert None in {e.text for e in final}


def test_resume_says_that_it_was_no_search(stored: tuple[Path, dict[str, Any]]) -> None:
    result = CliRunner().invoke(cli, ["resume", str(stored[0]), "--study", "mine"])
    assert result.exit_code == 2
    assert "its operators were given by name" in result.output
    assert "`syno train OP --name mine`" in result.output


@pytest.mark.parametrize("form", ["file", "folder", "artifact", "one", "list", "formula", "json"])
def test_operators_come_in_many_forms(here: Path, form: str) -> None:
    text = zoo.load("conv1x1").text
    (here / "one.txt").write_text(text)
    (here / "some").mkdir()
    (here / "some" / "one.txt").write_text(text)
    (here / "some" / "two.txt").write_text(zoo.load("shift-conv").text)
    (here / "found" / "0.91_3f2a").mkdir(parents=True)
    (here / "found" / "0.91_3f2a" / "operator.txt").write_text(text)
    (here / "list.txt").write_text("# chosen\nconv1x1\n\none.txt  # the same\nfound\nshift-conv\n")
    (here / "one.json").write_text(json.dumps(zoo.load("conv1x1").to_json()))
    operand, names = {
        "file": ("one.txt", 1),
        "folder": ("some", 2),
        "artifact": ("found", 1),
        "one": ("found/0.91_3f2a", 1),
        "list": ("list.txt", 2),
        "formula": ("y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * w0[o,i]", 1),
        "json": ("one.json", 1),
    }[form]
    result = run(operand, *QUICK, "--json", "--binding", "k=3" if form != "formula" else "q=3")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]
    assert len(rows) == names
    first = {"artifact": "0.91_3f2a", "one": "0.91_3f2a", "list": "conv1x1"}
    first |= {"file": "one", "folder": "one", "json": "one", "formula": "formula"}
    assert rows[0]["name"] == first[form]


def test_operators_of_one_name_are_told_apart(here: Path) -> None:
    for folder, name in (("a", "conv1x1"), ("b", "shift-conv"), ("c", "conv1x1")):
        (here / folder).mkdir()
        (here / folder / "mine.txt").write_text(zoo.load(name).text)
    operands = [f"{folder}/mine.txt" for folder in "abc"]
    result = run(*operands, *QUICK, "--binding", "k=3", "--store", "r.db", "--name", "a", "--json")
    rows = json.loads(result.stdout)["results"]
    assert [row["name"] for row in rows] == ["mine", "mine-2"]  # a and c are the same operator
    assert all(row["ok"] for row in rows)
    again = run(rows[1]["key"][:6], *QUICK, "--store", "r.db", "--name", "a", "--json")
    (row,) = json.loads(again.stdout)["results"]
    assert (row["name"], row["key"]) == (rows[1]["key"][:6], rows[1]["key"])


def test_a_dry_run_says_what_and_how_long_and_writes_nothing(here: Path) -> None:
    result = run("conv2d", "--baseline", *QUICK, "--seeds", "3", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "6 trainings of about" in result.output
    assert "recipe fast/digits 1" in result.output
    assert "Nothing was written" in result.output
    as_json = run("conv2d", "--baseline", *QUICK, "--seeds", "3", "--dry-run", "--json")
    found = json.loads(as_json.stdout)
    assert found["trainings"] == 6
    assert 0 < found["seconds_each"] < 60
    assert found["operators"][0]["macs"] == found["baseline"]["macs"]
    assert not list(here.iterdir())


@pytest.fixture
def text(here: Path) -> str:
    """A text of sums."""
    lines = (f"{a} plus {b} is {a + b}.\n" for a in range(40) for b in range(40))
    (here / "sums.txt").write_text("".join(lines))
    return "./sums.txt"


LANGUAGE = ["--model-option", "layers=1", "--model-option", "width=32", "--context", "32"]
LANGUAGE += ["--no-isolate"]


def test_a_projection_is_trained_in_a_language_model(text: str) -> None:
    operand = ["gpt2-projection", "--binding", "g=16,k=2", "--baseline"]
    result = run(*operand, "--data", text, *LANGUAGE, "--steps", "30", "--batch", "4", "--json")
    assert result.exit_code == 0, result.output
    base, own = json.loads(result.stdout)["results"]
    assert own["loss_beside_baseline"]["count"] == 1
    assert own["seeds"][0]["perplexity"] > 1
    assert own["seeds"][0]["steps"] == 30
    assert own["latency_ratio"] > 0
    assert base["macs"] == 2 * own["macs"]
    shown = run("--baseline", "--data", text, *LANGUAGE, "--seconds", "0.3", "--batch", "4")
    assert shown.exit_code == 0, shown.output
    assert "fidelity fast/text-context32-batch4-seconds0.3" in shown.output.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "digits"], "there is nothing to train"),
        (["convd2", *QUICK], "did you mean: conv2d"),
        (["conv2d", *QUICK, "--recipe", "fast/digit"], "unknown recipe 'fast/digit'"),
        (["conv2d", *QUICK, "--recipe", "fast/digit"], "did you mean: fast/digits"),
        (["conv2d", *QUICK, "--model", "resnet-smal"], "did you mean: resnet-small"),
        (["conv2d", *QUICK, "--fidelity", "smal"], "did you mean: small?"),
        (
            ["conv2d", *QUICK, "--batch", "201"],
            "batches of 201, and 'digits' has 200 training images",
        ),
        (["conv2d", *QUICK, "--batch", "1"], "cannot have batch = 1"),
        (["conv2d", *QUICK, "--images", "9999"], "requests 9999 training images"),
        (["linear", *QUICK], "expected: as many dimensions\n  operator 'linear' in model"),
        (["grouped", *QUICK, "--binding", "g=5"], "the operator fits no slot"),
        (["conv2d", *QUICK, "--binding", "g"], "binding"),
        (["conv2d", *QUICK, "--device", "tpu"], "unknown device 'tpu'"),
        (
            ["conv2d", "--data", "digits", "--recipe", "fast/text"],
            "text, and data set 'digits' is",
        ),
        (["conv2d", *QUICK, "--steps", "3"], "cannot have steps = 3\n  expected: none"),
        (["conv2d", *QUICK, "--model", "gpt2-small"], "'gpt2-small' is for text, and 'digits' is"),
        (["conv2d", "--data", "{text}"], "as many dimensions"),
        (["linear", "--data", "{text}", "--context", "9000"], "too short"),
        (["linear", "--data", "{text}", "--batch", "9000"], "too short for batches of 9000"),
        (["linear", "--data", "{text}", "--model", "resnet-small"], "'resnet-small' is for images"),
        (["y[o] = sum(i:C_in) x[i] * w0[o,i]", *QUICK], "formula"),
        (["empty", *QUICK], "the folder 'empty' contains no operators"),
        (["ab12", *QUICK], "no store to search for an id or a key"),
        (["operator-1", "mine.txt", *QUICK], "operator 'mine' needs values of z"),
        (
            ["linear", "--data", "{text}", "--quantize"],
            "only networks for images can be quantized to INT8",
        ),
        (["conv2d", *QUICK, "--repeats", "3"], "x>=20"),
    ],
)
def test_mistakes_are_refused_before_anything_is_trained(
    here: Path, text: str, arguments: list[str], message: str
) -> None:
    (here / "empty").mkdir()
    own = "y[n:N,o:C_out,h:H,w:H] = sum(i:C_in,j:z) x[n,i,h,w] * w0[o,i,j]"
    (here / "mine.txt").write_text(own)
    result = run(*(argument.format(text=text) for argument in arguments))
    assert result.exit_code == 2, result.output
    assert message in result.output
    if "needs a size" in message:
        assert "--binding with these variables, such as z=2" in result.output
    assert not (here / "runs.db").exists()


def test_a_study_keeps_to_its_coefficients_and_its_model(here: Path) -> None:
    result = run("conv2d", *QUICK, "--store", "r.db", "--name", "a")
    assert result.exit_code == 0, result.output
    result = run("grouped", *QUICK, "--store", "r.db", "--name", "a")
    assert result.exit_code == 2
    assert "study 'a' has no coefficient g" in result.output
    result = run("conv2d", "--data", "digits", "--store", "r.db", "--name", "a")
    assert result.exit_code == 2
    assert "has a different model_options\n  expected: {'width': 8}      got: {}" in result.output


def test_a_training_that_fails_is_a_row_with_its_reason(here: Path) -> None:
    result = run("conv1x1", *QUICK, "--deadline-s", "0.001", "--json")
    assert result.exit_code == 1
    (row,) = json.loads(result.stdout)["results"]
    assert row["accuracy"] is None
    assert row["seeds"][0]["status"] == "timeout"
    assert row["seeds"][0]["reason"].startswith("deadline: ")


HOSTILE = textwrap.dedent("""
    import ctypes, time
    from syno.study.evaluate.evaluator import NetworkEvaluator, make_evaluator

    class Hostile(NetworkEvaluator):
        def evaluate(self, operator):
            if "shift" in operator.primitives():
                time.sleep(600)
            if set(operator.primitives()) == {"contract", "reduce"}:
                ctypes.string_at(0)
            return super().evaluate(operator)

    def make(*arguments, **settings):
        evaluator = make_evaluator(*arguments, **settings)
        evaluator.__class__ = Hostile
        return evaluator
""")


@pytest.mark.slow
def test_an_operator_that_crashes_or_hangs_is_a_row_among_others(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "hostile_training.py").write_text(HOSTILE)
    monkeypatch.syspath_prepend(str(here))
    make = importlib.import_module("hostile_training").make
    monkeypatch.setattr("syno.study.evaluate.evaluator.make_evaluator", make)
    monkeypatch.setattr("syno.study.evaluate.isolated_evaluator.GRACE_S", 0.0)
    options = [*ISOLATED, "--deadline-s", "4", "--name", "a", "--json"]
    result = run("conv1x1", "shift-conv", "grouped", *options)
    assert result.exit_code == 1, result.output
    rows = by_name(json.loads(result.stdout)["results"])
    assert rows["conv1x1"]["seeds"][0]["status"] == "error"
    assert rows["conv1x1"]["seeds"][0]["reason"].startswith(
        "crash: the process was ended by SIGSEG"
    )
    assert rows["shift-conv"]["seeds"][0]["status"] == "timeout"
    assert rows["shift-conv"]["seeds"][0]["reason"].startswith("hang: no result within 8 s")
    assert rows["grouped"]["ok"]
    # As in this process, to the last digit.
    plain = run("grouped", *ISOLATED, "--no-isolate", "--json")
    (alone,) = json.loads(plain.stdout)["results"][0]["seeds"]
    (apart,) = rows["grouped"]["seeds"]
    assert (apart["accuracy"], apart["losses"]) == (alone["accuracy"], alone["losses"])


@pytest.mark.slow
def test_too_little_memory_is_refused_before_anything_is_trained(here: Path) -> None:
    result = run("conv1x1", *ISOLATED, "--memory-limit", "20M")
    assert result.exit_code == 2
    assert "memory_limit (--memory-limit) is 20 MiB, too little for an evaluation" in result.output


# The command, which goes on after its first checkpoint when it is told to.
WAITING = """
import sys
from syno.cli.main import main
from syno.train import trainer
written = trainer.write_checkpoint
def write(*given):
    trainer.write_checkpoint = written
    written(*given)
    print("written", flush=True)
    sys.stdin.readline()
trainer.write_checkpoint = write
main()
"""


@pytest.mark.parametrize(
    "isolate", ["--no-isolate", pytest.param("--isolate", marks=pytest.mark.slow)]
)
def test_sigterm_pauses_and_the_same_command_goes_on(here: Path, isolate: str) -> None:
    command = ["conv2d", "--data", "digits", "--model-option", "width=8", "--name", "long"]
    command += ["--seeds", "2", "--checkpoints", "states", "--no-latency", "--json"]
    # Enough that the processes of --isolate, which do not wait, are not done when they are stopped.
    epochs = "2" if isolate == "--no-isolate" else "40"
    command += ["--epochs", epochs, "--images", "200", "--kernels", "eager"]
    code = ["-c", WAITING] if isolate == "--no-isolate" else ["-m", "syno.cli"]
    launched = [sys.executable, *code, "train", *command, "--store", "paused.db", isolate]
    command.append("--no-isolate")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(launched, cwd=here, **pipes)
    while not list(here.glob("states/*.ckpt")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, remarks = process.communicate(b"\n", timeout=300)
    assert process.returncode == 143, remarks
    assert b"paused; `syno train conv2d " in remarks
    assert b" --name long " in remarks and b"` resumes it" in remarks
    (state,) = here.glob("states/*.ckpt")
    resumed = run(*command, "--store", "paused.db")
    assert resumed.exit_code == 0, resumed.output
    whole = run(*command, "--store", "whole.db")
    rows = [json.loads(result.stdout)["results"][0] for result in (resumed, whole)]
    for first, second in zip(rows[0]["seeds"], rows[1]["seeds"], strict=True):
        assert (first["accuracy"], first["losses"]) == (second["accuracy"], second["losses"])
    assert not state.exists()


@pytest.mark.slow
def test_processes_of_torchrun_train_together(here: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc-per-node", "2", "-m", "syno.cli", "train"]
    done = subprocess.run(
        [*launcher, "conv1x1", "--baseline", *QUICK, "--seeds", "2", "--store", "r.db", "--json"],
        cwd=here,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = json.loads(done.stdout)["results"]
    assert [len(row["seeds"]) for row in rows] == [2, 2]
    assert all(row["ok"] for row in rows)


@pytest.mark.slow
@pytest.mark.skipif("SYNO_DATA" not in os.environ, reason="needs CIFAR-10 in SYNO_DATA")
def test_a_convolution_learns_cifar_as_the_original_does() -> None:
    arguments = ["conv2d", "--baseline", "--data", "cifar10", "--fidelity", "tiny", "--json"]
    result = run(*arguments, "--images", "5000", "--model-option", "width=8")
    assert result.exit_code == 0, result.output
    base, own = json.loads(result.stdout)["results"]
    assert base["accuracy"]["mean"] > 0.3
    assert own["accuracy"]["mean"] > 0.3
    assert abs(own["accuracy_beside_baseline"]["difference"]) < 0.1
