"""Language models: losses, equal steps and equal time, pauses, mistakes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from syno import UserError
from syno.data import DataSet, TextData
from syno.data.tokens import ByteTokenizer
from syno.train import Fidelity, State, fidelity, train


@pytest.fixture
def text() -> TextData:
    """Counting in circles: the next token is known from the last."""
    tokens = (np.arange(3000) % 7 + 60).astype(np.uint16)
    return TextData(
        "circle",
        tokens[:2400],
        tokens[2400:],
        tokens[:0],
        ByteTokenizer(),
        "c" * 32,
        text_bytes={"held": 600},
    )


@pytest.fixture
def brief() -> Fidelity:
    """Sixty steps of four sequences."""
    return fidelity("fast/text").changed(
        name="brief", context=8, steps=60, batch=4, learning_rate=0.02
    )


def bigram(vocabulary: int = 257) -> nn.Module:
    """Knows the last token, with dropout."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(vocabulary, 16), nn.Dropout(0.1), nn.Linear(16, vocabulary))


def test_a_language_model_learns_and_the_outcome_adds_up(text: TextData, brief: Fidelity) -> None:
    outcome = train(bigram(), text, brief, 0)
    assert outcome.ok
    assert outcome.accuracy is not None
    assert outcome.accuracy > 0.9
    assert outcome.loss is not None
    assert outcome.perplexity == pytest.approx(math.exp(outcome.loss))
    assert outcome.bits_a_byte == pytest.approx(outcome.loss / math.log(2))
    assert (outcome.steps, outcome.tokens_seen, outcome.images_seen) == (60, 60 * 32, 0)
    assert outcome.tokens_per_s is not None
    assert outcome.tokens_per_s > 0
    assert len(outcome.curve) == 20
    assert outcome.tail_loss is not None
    assert outcome.tail_loss == pytest.approx(np.mean([p.loss for p in outcome.curve[16:]]))
    assert outcome.curve[0].loss == pytest.approx(math.log(257), rel=0.1)
    assert outcome.curve[-1].train_accuracy > 0.8


def test_the_loss_is_that_of_the_held_out_tokens(text: TextData, brief: Fidelity) -> None:
    net = bigram()
    outcome = train(net, text, brief, 0)
    inputs = torch.from_numpy(text.validation_tokens[:592].astype(np.int64))
    targets = torch.from_numpy(text.validation_tokens[1:593].astype(np.int64))
    with torch.no_grad():
        expected = nn.functional.cross_entropy(net(inputs), targets)
    assert outcome.loss == pytest.approx(float(expected), rel=1e-5)
    fewer = train(bigram(), text, replace(brief, held_tokens=100), 0)
    assert fewer.loss == pytest.approx(float(expected), rel=0.2)


@pytest.mark.parametrize("steps", [1, 7, 20, 61])
def test_so_many_steps_are_done(text: TextData, brief: Fidelity, steps: int) -> None:
    heard: list[State] = []
    outcome = train(bigram(), text, replace(brief, steps=steps), 0, progress=heard.append)
    assert outcome.steps == len(heard) == steps
    assert heard[-1].done == 1.0
    assert heard[-1].epoch_loss is not None
    assert outcome.epochs_done == heard[-1].epochs


def test_equal_time_ends_by_the_clock(text: TextData, brief: Fidelity) -> None:
    timed = replace(brief, steps=None, seconds=0.5)
    heard: list[State] = []
    outcome = train(bigram(), text, timed, 0, progress=heard.append)
    assert outcome.ok
    assert outcome.loss is not None
    assert 0.45 < outcome.seconds < 5
    assert outcome.steps > 10
    assert outcome.tokens_seen == outcome.steps * 32
    assert heard[-1].epochs == 0
    assert heard[-1].done == 1.0
    assert heard[len(heard) // 2].done < 0.9


@pytest.mark.parametrize("at", [1, 6])
def test_a_paused_training_ends_as_one_that_was_not(
    text: TextData, brief: Fidelity, tmp_path: Path, at: int
) -> None:
    path = tmp_path / "run.ckpt"
    whole, resumed = bigram(), bigram()
    expected = train(whole, text, brief, 2)
    first = train(bigram(), text, brief, 2, checkpoint=path, stop_after=at)
    assert (first.status, first.steps) == ("paused", 3 * at)
    outcome = train(resumed, text, brief, 2, checkpoint=path)
    assert (outcome.loss, outcome.tail_loss) == (expected.loss, expected.tail_loss)
    assert outcome.tokens_seen == expected.tokens_seen
    assert all(map(torch.equal, whole.state_dict().values(), resumed.state_dict().values()))


def test_time_that_was_spent_before_a_pause_counts(
    text: TextData, brief: Fidelity, tmp_path: Path
) -> None:
    timed = replace(brief, steps=None, seconds=0.6)
    path = tmp_path / "run.ckpt"
    first = train(bigram(), text, timed, 0, checkpoint=path, stop_after=1)
    second = train(bigram(), text, timed, 0, checkpoint=path)
    assert first.status == "paused"
    assert second.ok
    assert second.steps > first.steps
    again = train(bigram(), text, timed, 0, checkpoint=path)
    assert again.steps == second.steps


def test_a_diverging_model_is_rejected(text: TextData, brief: Fidelity) -> None:
    wild = brief.changed(steps=600, learning_rate=1e5, clip_norm=None, warmup=0.0)
    outcome = train(bigram(), text, wild, 0)
    assert outcome.status == "rejected"
    assert outcome.reason in ("loss_above_chance", "diverging", "non_finite_loss")
    assert outcome.loss is None


def test_mistakes_are_refused_by_text(
    text: TextData, dataset: DataSet, brief: Fidelity, quick: Fidelity
) -> None:
    with pytest.raises(UserError, match="'fast/text' trains on text, and the data is images\n"):
        train(bigram(), dataset, brief, 0)
    with pytest.raises(UserError, match=r"trains on images, and the data is text\n.*fast/text"):
        train(bigram(), text, quick, 0)
    with pytest.raises(UserError, match="'circle' is too short for batches of 400"):
        train(bigram(), text, brief.changed(batch=400), 0)
    with pytest.raises(
        UserError, match="validation part of text 'circle' is too short for a context"
    ):
        train(bigram(), text, brief.changed(context=700, batch=1), 0)
    with pytest.raises(UserError, match=r"scores of shape \[4, 8, 99\]\n  expected: \[4, 8, 257\]"):
        train(nn.Sequential(nn.Embedding(257, 4), nn.Linear(4, 99)), text, brief, 0)
