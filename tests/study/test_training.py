"""`syno.train_operators` and `syno.select` from Python, and when a stored result counts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import syno
from syno import IsolationOptions, TrainOptions, UserError
from syno.operators import zoo
from syno.store import Outcome, Store
from syno.study.evaluate.quantization import Quantization
from syno.study.evaluate.run_key import RunKey
from syno.study.training.train import TrainedOperators, TrainingObserver
from syno.study.training.trainings import Job
from syno.train import fidelity

QUICK = fidelity("digits").changed(name="quick", images=100, epochs=1)


class Watch(TrainingObserver):
    """Notes which trainings began, and which ended with what."""

    def __init__(self) -> None:
        self.began: list[tuple[int, str, int]] = []
        self.ended: list[tuple[int, str | None]] = []

    def on_training(self, number: int, count: int, job: Job) -> None:
        self.began.append((number, job.name, job.seed))

    def on_trained(self, number: int, count: int, job: Job, outcome: Outcome | None) -> None:
        self.ended.append((number, None if outcome is None else outcome.status))


def train(folder: Path, *operators: Any, **given: Any) -> TrainedOperators:
    """Without processes of its own and without timing."""
    trained = TrainOptions(fidelity=QUICK)
    given = {"model_options": {"width": 4}, "train": trained, "name": "mine"} | given
    given = {"isolation": IsolationOptions(isolate=False)} | given
    store = f"sqlite:///{folder / 'r.db'}"
    return syno.train_operators(operators, "digits", latency=False, store=store, **given)


def test_operators_are_trained_once_and_selected(tmp_path: Path) -> None:
    watch = Watch()
    found = train(tmp_path, zoo.load("conv1x1"), "grouped", baseline=True, observer=watch)
    # An object is named by its key; its sizes are those of the zoo only under the zoo's name.
    key = zoo.load("conv1x1").key[:8]
    assert [row.name for row in found.rows] == ["baseline", key, "grouped"]
    assert found.ok and not found.paused and found.study == "mine"
    assert watch.began == [(0, "baseline", 0), (1, key, 0), (2, "grouped", 0)]
    assert [status for _, status in watch.ended] == ["ok"] * 3
    again = Watch()
    assert train(tmp_path, zoo.load("conv1x1"), "grouped", baseline=True, observer=again) == found
    assert again.began == []
    assert [status for _, status in again.ended] == [None] * 3
    chosen = syno.select(f"sqlite:///{tmp_path / 'r.db'}", "mine", by="params")
    assert [c.params for c in chosen] == sorted(row.params or 0 for row in found.rows[1:])
    with Store.open(f"sqlite:///{tmp_path / 'r.db'}", read_only=True) as opened:
        folder = tmp_path / "out"
        assert syno.select(opened, by="params", top=1, out=folder) == chosen[:1]
    (written,) = folder.iterdir()
    assert json.loads((written / "evaluation.json").read_text())["key"] == chosen[0].key


@pytest.mark.parametrize(
    ("operators", "given", "message"),
    [
        ((), {}, "there is nothing to train"),
        (("conv1x1",), {"seeds": 0}, "'seeds' is an integer of at least 1, got 0"),
        (("conv1x1",), {"threads": 0}, r"timing=syno.TimingOptions\(threads=...\)"),
        (
            ("conv1x1",),
            {"train": TrainOptions(fidelity=QUICK, eta=3)},
            "'eta' of TrainOptions has no effect here: given operators are trained completely",
        ),
        (
            ("conv1x1",),
            {"isolation": IsolationOptions(max_attempts=3)},
            "'max_attempts' of IsolationOptions has no effect here",
        ),
        (("conv1x1",), {"specification": "paper/nothing"}, "paper/nothing"),
        (("nothing",), {}, "expected: a name of the zoo"),
    ],
)
def test_mistakes_are_user_errors(
    tmp_path: Path, operators: tuple[str, ...], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        train(tmp_path, *operators, **given)
    assert not (tmp_path / "r.db").exists()


def test_selecting_from_a_store_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        syno.select(f"sqlite:///{tmp_path / 'none.db'}")


def key(**changes: Any) -> RunKey:
    """A run key that a rung of a ladder has."""
    return dataclasses.replace(RunKey(QUICK.to_json(), "digits-1", 2, 0.5, 8), **changes)


def test_a_run_key_is_the_recipe_of_a_store() -> None:
    how = Quantization("fbgemm", 64, 1)
    assert key().quantized(how).to_json() == {
        "fidelity": QUICK.to_json(),
        "data": "digits-1",
        "threads": 2,
        "width": 0.5,
        "of_epochs": 8,
        "precision": "int8",
        "engine": "fbgemm",
        "calibration": {"images": 64, "seed": 1},
    }
    assert list(key(threads=None, width=None).to_json()) == ["fidelity", "data"]


def test_a_result_counts_when_everything_it_depends_on_is_the_same(tmp_path: Path) -> None:
    train(tmp_path, "conv1x1")
    with Store.open(f"sqlite:///{tmp_path / 'r.db'}", read_only=True) as opened:
        (stored,) = opened.summary("mine").evaluations
    own = RunKey(QUICK.to_json(), stored.recipe["data"], 1)
    assert own.counts(stored)
    changed = [
        dataclasses.replace(own, fidelity=QUICK.changed(epochs=2).to_json()),
        dataclasses.replace(own, data="others"),
        dataclasses.replace(own, threads=2),
        dataclasses.replace(own, threads=None),
        dataclasses.replace(own, width=1.0, of_epochs=1),
        own.quantized(Quantization("fbgemm")),
    ]
    assert not any(each.counts(stored) for each in changed)
