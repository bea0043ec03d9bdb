"""A search in a language model: judged by the held-out loss, and never by reading ahead."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from syno import (
    IsolationOptions,
    SpaceOptions,
    Specification,
    TimingOptions,
    TrainOptions,
)
from syno.cli.main import cli
from syno.store import Store
from syno.study.search import resume, search
from syno.study.specifications import small_text
from syno.train import fidelity

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs transformers"
)

OPTIONS = {"layers": 1, "width": 32, "heads": 2}
BRIEF = fidelity("fast/text").changed(
    name="brief", context=16, steps=20, batch=4, held_tokens=400, learning_rate=0.01
)


def run(*arguments: object) -> Result:
    """A command in this process, which must not fail."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sums, a line each."""
    path = tmp_path_factory.mktemp("text") / "sums.txt"
    lines = (f"{a} plus {b} is {a + b}.\n" for a in range(40) for b in range(40))
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def found(text: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a search that was resumed once."""
    path = str(tmp_path_factory.mktemp("runs") / "runs.db")
    # Steps of a millisecond say little about how slow an operator is.
    arguments: dict[str, Any] = {"timing": TimingOptions(repeats=20), "model_options": OPTIONS}
    arguments |= {"train": TrainOptions(fidelity=BRIEF, max_slowdown=1000.0)}
    arguments |= {"isolation": IsolationOptions(isolate=False)}
    space = SpaceOptions(max_nodes=1500)
    first = search("gpt2-small", str(text), evaluations=2, space=space, store=path, **arguments)
    again = resume(path, evaluations=4)
    assert again.evaluations[: len(first.evaluations)] == first.evaluations
    return path


def test_a_search_judges_by_the_held_out_loss(found: str) -> None:
    with Store.open(found, read_only=True) as store:
        summary = store.summary()
    assert summary.objective.name == "loss"
    assert summary.stop_reason == "evaluations"
    assert len(summary.trained) == 4
    for evaluation in (summary.baseline, *summary.trained):
        assert evaluation is not None
        details = evaluation.details
        assert details["loss"] == summary.quality(evaluation)
        assert details["perplexity"] == pytest.approx(math.exp(details["loss"]))
        assert 0 < details["loss"] < 1.5 * math.log(257)
        assert evaluation.latency_ms is not None
        assert evaluation.macs is not None
    assert all(e.latency_ratio and e.source_hash for e in summary.trained)
    # The default asks for no more multiply-adds than the projections have.
    assert all(e.macs <= summary.baseline.macs for e in summary.trained)
    (binding,) = summary.study.specification["bindings"]
    assert {"seq_len": 16, "H_in": 32, "H_out": 96}.items() <= binding.items()


def test_every_command_shows_the_loss_and_the_best_is_the_least(found: str, tmp_path: Path) -> None:
    with Store.open(found, read_only=True) as store:
        summary = store.summary()
    losses = {e.key: e.details["loss"] for e in summary.trained}
    best = min(losses, key=losses.__getitem__)
    status = json.loads(run("status", found, "--operators", "--json").stdout)["studies"][0]
    assert status["objective"] == "loss"
    assert status["best"]["key"] == best
    assert status["best"]["loss"] == losses[best]
    assert status["baseline_loss"] == summary.baseline.details["loss"]
    shown = run("status", found, "--operators").stdout
    assert f"loss {losses[best]:.3f}" in shown
    assert "perplexity" in shown
    picked = json.loads(run("select", "--store", found, "--by", "loss", "--json").stdout)[
        "operators"
    ]
    assert [entry["loss"] for entry in picked] == sorted(losses.values())
    # A perplexity at most so many percent above the best one's.
    limit = sorted(losses.values())[1]
    points = 100 * math.expm1(limit - losses[best]) + 1e-6
    within = ("--within", points, "--reference", "best")
    chosen = json.loads(run("select", "--store", found, *within, "--json").stdout)["operators"]
    assert {entry["key"] for entry in chosen} == {k for k, v in losses.items() if v <= limit}
    folder = tmp_path / "picked"
    run("select", "--store", found, "--by", "loss", "--top", 1, "--out", folder)
    assert [path.name for path in folder.iterdir()] == [f"{losses[best]:.4f}_{picked[0]['id'][:8]}"]


def test_the_test_part_is_read_by_the_final_report_alone(found: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with Store.open(found, read_only=True) as store:
        assert store.summary().final == ()
    run("report", found, "--final", "--png", "-o", page)
    with Store.open(found, read_only=True) as store:
        summary = store.summary()
    held = {e.ask: e.details["loss"] for e in (summary.baseline, *summary.trained)}
    assert {e.ask for e in summary.final} >= {summary.baseline.ask}
    for evaluation in summary.final:
        assert evaluation.split == "test"
        # The same training again, and another part of the text.
        assert evaluation.details["holdout_loss"] == pytest.approx(held[evaluation.ask], rel=1e-4)
        assert evaluation.details["loss"] != evaluation.details["holdout_loss"]
        assert evaluation.details["loss"] == pytest.approx(held[evaluation.ask], abs=0.5)
    content = page.read_text()
    for words in ("Baseline loss", "Best loss", "Loss against MACs", "perplexity", "nats a token"):
        assert words in content
    assert "Baseline accuracy" not in content
    assert (tmp_path / "front.png").stat().st_size > 5000


@pytest.mark.slow
def test_an_operator_that_reads_ahead_is_rejected_before_training(
    text: Path, tmp_path: Path
) -> None:
    # The published setting does not mark positions: windows look at both sides.
    path = str(tmp_path / "runs.db")
    summary = search(
        "gpt2-small",
        str(text),
        model_options=OPTIONS,
        train=TrainOptions(fidelity=BRIEF, max_slowdown=1000.0),
        specification=small_text(
            input="[N, seq_len, H_in: unordered]",
            output="[N, seq_len, H_out]",
            coefficient=["k=3: 2"],
            max_merges=0,
            max_splits=0,
        ),
        evaluations=2,
        space=SpaceOptions(max_nodes=1500),
        timing=TimingOptions(repeats=20),
        isolation=IsolationOptions(isolate=False),
        store=path,
    )
    refused = [e for e in summary.evaluations if e.status == "rejected"]
    assert refused
    for evaluation in refused:
        assert evaluation.reason.startswith("not causal along seq_len: output position ")
        assert not evaluation.is_evaluated
        assert "loss" not in evaluation.details
    # The same operators are refused where they are named one by one.
    operator = tmp_path / "ahead.txt"
    operator.write_text(refused[0].text or "")
    result = CliRunner().invoke(
        cli,
        [
            *("train", str(operator), "--data", str(text), "--binding", "k=3", "--json"),
            *("--model-option", "layers=1", "--model-option", "width=32", "--context", "16"),
            *("--model-option", "heads=2", "--steps", "2", "--store", str(tmp_path / "t.db")),
        ],
    )
    assert result.exit_code == 1, result.output
    (row,) = json.loads(result.stdout)["results"]
    assert row["seeds"][0]["status"] == "rejected"
    assert "not causal along seq_len" in row["seeds"][0]["reason"]


def test_positions_that_are_marked_leave_nothing_to_reject(found: str) -> None:
    with Store.open(found, read_only=True) as store:
        summary = store.summary()
    assert not any("not causal" in e.reason for e in summary.evaluations)
    assert summary.rejections["reads_future"] > 0
    specification = Specification.from_json(json.dumps(summary.study.specification))
    assert "seq_len: causal" in specification.input
