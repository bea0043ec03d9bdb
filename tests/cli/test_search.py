"""The whole way by the command line: search, resume, status, show, verify, export, report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from syno import Specification
from syno.cli.main import cli
from syno.store import Store

# One short epoch; nothing is rejected for being slow, which a busy machine could be the reason of.
QUICK = [
    "--epochs",
    "1",
    "--images",
    "200",
    "--repeats",
    "20",
    "--max-nodes",
    "2000",
    "--max-slowdown",
    "1000",
    "--kernels",
    "eager",
    "--latency",
    "eager",
]


def syno(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, one thread, outside of the source tree."""
    return subprocess.run(
        [sys.executable, "-m", "syno.cli", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1", "SYNO_DEBUG": ""},
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    """A search for two operators."""
    arguments = ("search", "--data", "digits", "--evaluations", "2", "--store", "runs.db", "--json")
    result = syno(*arguments, *QUICK, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "2/2" in result.stderr
    return json.loads(result.stdout)


def test_a_search_trains_times_and_stores(found: dict[str, Any]) -> None:
    assert found["trained"] == 2
    assert found["stop_reason"] == "evaluations"
    assert found["baseline_accuracy"] > 0.2
    trained = [entry for entry in found["operators"] if entry["status"] == "ok"]
    assert len(trained) == 2
    for entry in trained:
        assert entry["latency_ms"] > 0
        assert entry["macs"] > 0


@pytest.mark.slow
def test_resume_goes_on_and_repeats_nothing(
    found: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("resume", "runs.db", "--evaluations", "3")
    planned = inside(folder, monkeypatch, *words, "--dry-run")
    assert "2 operators completed, 1 left" in planned.stdout
    result = inside(folder, monkeypatch, *words, "--json")
    assert result.exit_code == 0, result.stderr
    after = json.loads(result.stdout)
    assert after["operators"][:2] == found["operators"]
    assert after["trained"] == 3
    keys = [entry["key"] for entry in after["operators"]]
    assert len(set(keys)) == len(keys)


def test_what_was_found_can_be_shown_verified_exported_and_reported(
    found: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = found["best"]["key"]
    for arguments, expected in (
        (("show", key[:10], "--store", "runs.db"), key),
        (("verify", key[:10], "--store", "runs.db"), "passed"),
        (("export", key[:10], "--store", "runs.db", "-o", "op.py", "--check"), "right: "),
        (("report", "runs.db", "-o", "report.html"), "wrote report.html"),
        (("status", "runs.db"), "resnet-small-digits-1"),
    ):
        result = inside(folder, monkeypatch, *arguments)
        assert result.exit_code == 0, result.stderr
        assert expected in result.stdout
    assert key[:8] in (folder / "report.html").read_text()


@pytest.mark.slow
def test_the_network_of_a_study_is_exported_as_it_was_trained(
    found: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = found["best"]
    words = ("export", best["key"][:10], "--store", "runs.db", "--network", "study", "-o", "net")
    result = inside(folder, monkeypatch, *words, "--check")
    assert result.exit_code == 0, result.stderr
    assert "without Syno: right: 120 outputs at batch sizes 1, 3, 8" in result.stdout
    assert f"validation accuracy: {best['accuracy']:.1%}" in result.stderr
    assert (folder / "net.pt2").is_file()


def inside(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    """Run the command line in this process: torch is imported once for all."""
    monkeypatch.chdir(folder)
    return CliRunner().invoke(cli, list(arguments))


def test_a_dry_run_tells_layers_and_cost_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = inside(tmp_path, monkeypatch, "search", "--data", "digits", *QUICK, "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert "10 layers: 0 replaced, 6 free slots (" in result.stdout
    assert "21 trainings of about" in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("preset", "layers"),
    [
        ("paper/resnet18", 19),
        pytest.param("paper/densenet121", 58, marks=pytest.mark.slow),
    ],
)
def test_a_preset_of_the_paper_brings_its_model(
    preset: str, layers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["search", "--data", "digits", "--preset", preset, "--resolution", "32", *QUICK]
    words += ["--model-option", "cifar_stem=1", "--dry-run", "--json"]
    words += ["--model-option", "width=4" if "resnet" in preset else "growth=4"]
    result = inside(tmp_path, monkeypatch, *words)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["layers"]
    assert sum(row["status"] == "slot" for row in found) == layers


@pytest.mark.slow
def test_a_preset_with_another_coefficient_is_searched_and_the_lack_of_windows_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["search", "--data", "digits", "--model", "resnet-small", "--evaluations", "1", *QUICK]
    words += ["--preset", "paper/resnet18", "--coefficient", "g=4", "--store", "runs.db"]
    result = inside(tmp_path, monkeypatch, *words)
    assert result.exit_code == 0, result.stderr
    assert "no operator reads neighboring positions: a window of 3 is not legal" in result.stderr
    with Store.open("runs.db") as store:
        (study,) = store.studies()
    specification = Specification.from_json(json.dumps(study.specification))
    assert "g=4: 3" in specification.coefficient


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--data", "cifar10", "--data-dir", "nowhere"], "nowhere"),
        (["--data", "digits", "--model", "resnet-huge"], "unknown model 'resnet-huge'"),
        (["--data", "digits", "--model-option", "width"], "cannot read the model option 'width'"),
        (["--data", "digits", "--fidelity", "huge"], "unknown fidelity 'huge'"),
        (["--data", "digits", "--preset", "paper/gpt2"], "model 'gpt2' is for text"),
        (["--data", "digits", "--method", "magic"], "there is no search method 'magic'"),
        (["--data", "digits", "--store", "none/runs.db"], "there is no folder"),
        (["--data", "digits", "--input", "[H]"], "--output is missing"),
        (["--data", "digits", "--max-depth", "1"], "no operator connects the shapes"),
    ],
)
def test_mistakes_end_with_code_2_and_no_traceback(
    more: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = inside(tmp_path, monkeypatch, "search", *more, "--max-nodes", "500")
    assert result.exit_code == 2, result.stderr
    assert "error: " in result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_the_demonstration_keeps_its_promises(tmp_path: Path) -> None:
    result = syno("demo", "--operators", "2", "--out", "demo", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    summary = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert summary == json.loads(result.stdout)
    assert summary["operators_trained"] == 2
    assert summary["missing"] == []
    assert summary["exported"]["ran_without_syno"] is True
    assert Path(tmp_path, summary["exported"]["path"]).is_file()
    assert {"report.html", "front.png", "progress.png"} <= {
        file.name for file in (tmp_path / "demo").iterdir()
    }


def test_final_reads_the_test_split_once(
    found: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tested() -> dict[int, tuple[float | None, float]]:
        with Store.open(str(folder / "runs.db"), read_only=True) as store:
            summary = store.summary()
        assert len(summary.evaluations) == len({e.ask for e in summary.evaluations})
        return {e.ask: (e.accuracy, e.details["holdout_accuracy"]) for e in summary.final}

    arguments = ("report", "runs.db", "-o", "final.html", "--final")
    for _ in range(2):
        result = inside(folder, monkeypatch, *arguments)
        assert result.exit_code == 0, result.stderr
    answers = tested()
    # The same seed trains the same network: its hold-out accuracy is that of the search.
    assert answers[0][1] == found["baseline_accuracy"]
    holdout = {entry["ask"]: entry["accuracy"] for entry in found["operators"]}
    assert any(ask in holdout for ask in answers)
    assert all(answers[ask][1] == holdout[ask] for ask in answers if ask in holdout)
    assert "on the test split" in (folder / "final.html").read_text()
