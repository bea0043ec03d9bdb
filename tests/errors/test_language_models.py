"""Bad input about text and language models: refused before anything is trained."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from .bad_input import check, run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs transformers"
)

SEARCH = ["search", "--evaluations", "1", "--max-nodes", "500", "--store", "{store}"]
TRAIN = ["train", "linear", "--store", "{store}"]
LONG = ["--data", "{text}"]
SHORT = ["--data", "{short}"]
SMALL = ["--model-option", "layers=1", "--model-option", "width=16", "--model-option", "heads=2"]

CASES = {
    "too short for one batch": (
        [*SHORT, *SMALL, "--context", "8", "--batch", "64"],
        ("too short for batches of 64 with a context of 8", "take a smaller batch or context"),
    ),
    "too short for one sequence": (
        [*SHORT, *SMALL],
        ("is too short for", "context of 128", "take a smaller"),
    ),
    "hardly any documents": (
        ["--data", "{single}", *SMALL],
        ("cannot hold out documents", "expected: at least 3", "line, paragraph or file"),
    ),
    "longer than the positions of the model": (
        [*LONG, "--model-option", "context=32", "--context", "64"],
        (
            "model 'gpt2-small' has context=32 positions, and sequences of 64 tokens",
            "--context 32",
            "--model-option context=64",
        ),
    ),
    "fewer tokens than the text": (
        [*LONG, "--model-option", "vocabulary=100"],
        ("has vocabulary=100, and", "has 257 tokens", "expected: at least 257"),
    ),
    "images for a language model": (
        ["--data", "digits", "--model", "gpt2-small"],
        (
            "model 'gpt2-small' is for text, and 'digits' is images",
            "a model for images, such as resnet-small",
        ),
    ),
    "images and a recipe for text": (
        ["--data", "digits", "--fidelity", "fast/text"],
        ("recipe 'fast/text' trains on text, and data set 'digits' is images", "fast/short"),
    ),
    "text for a network of images": (
        [*LONG, "--model", "resnet-small"],
        ("model 'resnet-small' is for images, and", "a model for text, such as gpt2-small"),
    ),
    "text and a recipe for images": (
        [*LONG, "--fidelity", "tiny"],
        ("trains on images, and data set", "is text", "such as fast/text"),
    ),
    "epochs of a text": (
        [*LONG, "--epochs", "3"],
        ("cannot have epochs = 3", "expected: none: its recipe 'fast/text' is for text"),
    ),
    "steps of images": (
        ["--data", "digits", "--steps", "3"],
        ("cannot have steps = 3", "expected: none"),
    ),
    "another tokenizer": (
        [*LONG, "--tokenizer", "words"],
        ("'words' is not one of 'bytes', 'byte-pair'",),
    ),
    "a text that is nearly one": (
        ["--data", "somme", "--data-dir", "{folder}"],
        ("somme", "some"),
    ),
}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Texts of several lengths."""
    texts = {"text": 1600, "short": 20, "single": 1}
    found = {"store": tmp_path / "runs.db", "folder": tmp_path / "folder"}
    for name, lines in texts.items():
        found[name] = tmp_path / f"{name}.txt"
        found[name].write_text("".join(f"{n} and {n} is {2 * n}.\n" for n in range(lines)))
    found["folder"].mkdir()
    (found["folder"] / "some.txt").write_text("one\ntwo\nthree\n")
    return found


@pytest.mark.parametrize("command", ["search", "train"])
@pytest.mark.parametrize("case", CASES)
def test_what_does_not_go_together_is_refused(
    case: str, command: str, places: dict[str, Path]
) -> None:
    options, parts = CASES[case]
    arguments = [*(SEARCH if command == "search" else TRAIN), *options]
    ended = run([argument.format(**places) for argument in arguments])
    check(ended, *(part.format(**places) for part in parts))
    assert not places["store"].exists()


def test_a_projection_that_reads_ahead_cannot_be_compared(places: dict[str, Path]) -> None:
    ahead = "y[n,t,o] = sum(i:H_in,a:k) x[n,t+a-k/2,i] * w0[o,i,a]"
    arguments = ["experiment", "projection", ahead, "--data", "{text}", "--binding", "k=3"]
    arguments += [*SMALL, "--context", "16", "--steps", "2", "--out", "{folder}/out.json"]
    ended = run([argument.format(**places) for argument in arguments])
    check(ended, "not causal along seq_len", "expected: an operator whose outputs read")
    assert not (places["folder"] / "out.json").exists()
