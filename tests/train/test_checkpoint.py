"""Pause and resume: bit for bit, refused where it would not be, and never half written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from syno import UserError
from syno.data import DataSet
from syno.train import Fidelity, Recipe, State, TrainingOutcome, train
from syno.train.checkpoint import DamagedCheckpointError, read_checkpoint, write_checkpoint

from .networks import convolutional


@pytest.fixture
def full(quick: Fidelity) -> Fidelity:
    """Everything that has a state: momentum, averages, schedule, augmentation."""
    return quick.changed(
        ema=0.9,
        schedule="one-cycle",
        warmup=0.3,
        crop=1,
        flip=True,
        cutout=1,
        channels_last=True,
        flip_average=True,
    )


def same(first: nn.Module, second: nn.Module) -> bool:
    """Equal weights and statistics, bit for bit."""
    states = (first.state_dict(), second.state_dict())
    return all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def results(outcome: TrainingOutcome) -> tuple[object, ...]:
    """What an outcome says, without the clock."""
    curve = [(p.loss, p.train_accuracy) for p in outcome.curve]
    return outcome.status, outcome.accuracy, outcome.tail_loss, outcome.images_seen, curve


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("at", [1, 3])
def test_a_training_that_was_paused_ends_as_one_that_was_not(
    dataset: DataSet, full: Fidelity, tmp_path: Path, at: int, optimizer: str
) -> None:
    full = full.changed(optimizer=optimizer, learning_rate=0.01)
    path = tmp_path / "run.ckpt"
    whole, parts = convolutional(), convolutional()
    expected = train(whole, dataset, full, 3)
    first = train(parts, dataset, full, 3, checkpoint=path, stop_after=at)
    assert (first.status, first.reason, first.epochs_done) == ("paused", "epoch", at)
    assert first.accuracy is not None
    assert first.curve[-1].accuracy == first.accuracy
    resumed = convolutional()
    torch.manual_seed(99)  # the state is all in the file
    outcome = train(resumed, dataset, full, 3, checkpoint=path)
    assert results(outcome) == results(expected)
    assert same(resumed, whole)
    assert not same(parts, whole)


class Pausing(nn.Module):
    """Sends SIGTERM to its own process in a chosen forward pass."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.net = convolutional()
        self.at, self.passes = at, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += self.training
        if self.training and self.passes == self.at:
            os.kill(os.getpid(), signal.SIGTERM)
        return self.net(x)

    def extra_repr(self) -> str:
        """Without the step, so that all are one network."""
        return ""


@pytest.mark.parametrize("at", [1, 5, 8, 9, 32])
def test_sigterm_pauses_at_a_step_and_the_rest_is_the_same(
    dataset: DataSet, full: Fidelity, tmp_path: Path, at: int
) -> None:
    path = tmp_path / "run.ckpt"
    whole, parts, resumed = Pausing(0), Pausing(at), Pausing(0)
    expected = train(whole, dataset, full, 3)
    before = signal.getsignal(signal.SIGTERM)
    first = train(parts, dataset, full, 3, checkpoint=path)
    assert signal.getsignal(signal.SIGTERM) == before
    assert (first.status, first.reason, first.steps) == ("paused", "signal", at)
    assert first.accuracy is None
    assert results(train(resumed, dataset, full, 3, checkpoint=path)) == results(expected)
    assert same(resumed, whole)


def test_sigterm_ends_a_training_without_a_checkpoint(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal
        from torch import nn
        from syno.data import load
        from syno.train import fidelity, train

        def report(state):
            os.kill(os.getpid(), signal.SIGTERM)

        net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        train(net, load("digits"), fidelity("digits"), 0, progress=report)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGTERM


def test_a_kill_in_any_epoch_loses_no_finished_one(
    dataset: DataSet, full: Fidelity, tmp_path: Path
) -> None:
    class Killed(BaseException):
        pass

    def kill(state: State) -> None:
        if (state.epoch, state.step) == (2, 3):
            raise Killed

    path = tmp_path / "run.ckpt"
    whole, resumed = convolutional(), convolutional()
    expected = train(whole, dataset, full, 3)
    with pytest.raises(Killed):
        train(convolutional(), dataset, full, 3, checkpoint=path, progress=kill)
    heard: list[State] = []
    outcome = train(resumed, dataset, full, 3, checkpoint=path, progress=heard.append)
    assert (heard[0].epoch, heard[0].step) == (2, 1)
    assert results(outcome) == results(expected)
    assert same(resumed, whole)
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]


def test_a_finished_training_is_only_measured_again(
    dataset: DataSet, full: Fidelity, tmp_path: Path
) -> None:
    path = tmp_path / "run.ckpt"
    first = train(convolutional(), dataset, full, 3, checkpoint=path)
    heard: list[State] = []
    again = train(convolutional(), dataset, full, 3, checkpoint=path, progress=heard.append)
    assert not heard
    assert results(again) == results(first)


def test_time_goes_on_where_it_stopped(dataset: DataSet, quick: Fidelity, tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    long = quick.changed(epochs=100_000)
    first = train(convolutional(), dataset, long, 0, checkpoint=path, stop_after=20)
    second = train(
        convolutional(), dataset, long, 0, checkpoint=path, deadline_s=2 * first.seconds + 1
    )
    assert second.reason == "deadline"
    assert second.epochs_done > 20
    assert second.seconds > first.seconds


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("damage", [_cut, _flipped, lambda _: b"", lambda _: b"\0" * 500])
def test_a_damaged_checkpoint_is_reported_and_the_training_starts_over(
    dataset: DataSet, quick: Fidelity, tmp_path: Path, damage
) -> None:
    path = tmp_path / "run.ckpt"
    whole, again = convolutional(), convolutional()
    expected = train(whole, dataset, quick, 0)
    train(convolutional(), dataset, quick, 0, checkpoint=path, stop_after=1)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedCheckpointError, match=r"run\.ckpt' is (not a checkpoint|damaged)"):
        read_checkpoint(path)
    with pytest.warns(UserWarning, match=r"run\.ckpt.*; the training starts over"):
        outcome = train(again, dataset, quick, 0, checkpoint=path)
    assert results(outcome) == results(expected)
    assert same(whole, again)
    assert read_checkpoint(path) is not None


def test_a_checkpoint_of_another_training_is_refused(
    dataset: DataSet, quick: Fidelity, tmp_path: Path
) -> None:
    path = tmp_path / "run.ckpt"
    train(convolutional(), dataset, quick, 0, checkpoint=path, stop_after=1)
    kept = path.read_bytes()
    other = replace(dataset, fingerprint="1" * 32)
    wider = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    for net, data, fidelity, seed, message in (
        (wider, dataset, quick, 0, "it has another network, or one with other initial weights"),
        (convolutional(1), dataset, quick, 0, "other initial weights"),
        (convolutional(), dataset, quick, 1, r"it has another seed \(0, now 1\)"),
        (convolutional(), other, quick, 0, "it has another data"),
        (
            convolutional(),
            dataset,
            quick.changed(epochs=5, learning_rate=0.25),
            0,
            r"\(epochs 4, now 5; recipe.learning_rate 0.05, now 0.25\)",
        ),
    ):
        with pytest.raises(UserError, match=message):
            train(net, data, fidelity, seed, checkpoint=path)
    assert path.read_bytes() == kept


def test_other_rates_of_weights_are_another_training(
    dataset: DataSet, quick: Fidelity, tmp_path: Path
) -> None:
    """As when a later version gives an operator's weights other scales of the rate."""
    path = tmp_path / "run.ckpt"
    first, second = convolutional(), convolutional()
    second[0].lr_multipliers = {"weight": 0.5}  # type: ignore[assignment, union-attr]
    fidelity = quick.changed(step_scales=True)
    train(first, dataset, fidelity, 0, checkpoint=path, stop_after=1)
    with pytest.raises(
        UserError, match="it has other learning rates or weight decays of parameters"
    ):
        train(second, dataset, fidelity, 0, checkpoint=path)


def test_an_operator_of_other_code_is_another_network(
    dataset: DataSet, quick: Fidelity, tmp_path: Path
) -> None:
    path = tmp_path / "run.ckpt"
    first, second = convolutional(), convolutional()
    for net, code in ((first, "a"), (second, "b")):
        net[0].source_hash = code  # type: ignore[assignment, union-attr]
    train(first, dataset, quick, 0, checkpoint=path, stop_after=1)
    with pytest.raises(UserError, match="another network"):
        train(second, dataset, quick, 0, checkpoint=path)


def test_a_checkpoint_that_cannot_be_written_says_so(
    dataset: DataSet, quick: Fidelity, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot (write|read) the checkpoint"):
        train(convolutional(), dataset, quick, 0, checkpoint=tmp_path / "file" / "run.ckpt")
    with pytest.raises(UserError, match="cannot read the checkpoint"):
        train(convolutional(), dataset, quick, 0, checkpoint=tmp_path)
    with pytest.raises(UserError, match="cannot stop after 1 epochs\n  expected: 1 or more, with"):
        train(convolutional(), dataset, quick, 0, stop_after=1)


def test_a_failing_write_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, {"a": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        write_checkpoint(path, {"a": 2})
    assert read_checkpoint(path) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]


def test_a_checkpoint_holds_no_code(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, {"recipe": Recipe("made")})
    with pytest.raises(DamagedCheckpointError, match="cannot read the checkpoint"):
        read_checkpoint(path)
