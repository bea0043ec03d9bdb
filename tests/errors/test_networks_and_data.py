"""Networks, recipes and data that do not go together, through the command line: exit code 2, what
is wrong, what was expected. Nothing is trained and nothing is written."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from syno.operators import zoo

from .bad_input import check, run

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, with a cache of its own and no data folder."""
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNO_DATA", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def photos(here: Path) -> Make:
    """photos({"train/cat": 4, ...}, size) makes a folder `photos` of noisy images."""

    def make(counts: dict[str, int], size: tuple[int, int] = (8, 8)) -> Path:
        for place, count in counts.items():
            (here / "photos" / place).mkdir(parents=True, exist_ok=True)
            for number in range(count):
                random = np.random.default_rng(number)
                pixels = random.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
                Image.fromarray(pixels).save(here / "photos" / place / f"{number:03}.png")
        return here / "photos"

    return make


TRAIN = ["train", "conv2d", "--data", "digits"]
SEARCH = ["search", "--data", "digits"]

NAMES = {
    "model of a training": (
        [*TRAIN, "--model", "resnet-smal"],
        ["unknown model 'resnet-smal'", "expected: ", "did you mean: resnet-small"],
    ),
    "model of a search": (
        [*SEARCH, "--model", "resnet2"],
        ["unknown model 'resnet2'", "did you mean: resnet"],
    ),
    "model that is shown": (
        ["models", "densenet12"],
        ["unknown model 'densenet12'", "did you mean: densenet121"],
    ),
    "model of timm": (
        ["models", "timm/resnet10tt"],
        ["has no model 'resnet10tt'", "expected: one of timm.list_models()", "resnet10t"],
    ),
    "model that is exported": (
        ["export", "mine.txt", "--network", "cnn-smal", "-o", "net"],
        ["unknown model 'cnn-smal'", "did you mean: cnn-small"],
    ),
    "option of a model": (
        [*TRAIN, "--model-option", "widht=8"],
        ["unknown option 'widht' of model 'resnet-small'", "did you mean: width"],
    ),
    "recipe": (
        [*TRAIN, "--recipe", "fast/cifra"],
        ["unknown recipe 'fast/cifra'", "did you mean: fast/cifar"],
    ),
    "recipe of a file that is not there": (
        [*TRAIN, "--recipe", "mine.toml"],
        ["mine.toml"],
    ),
    "fidelity": (
        [*SEARCH, "--fidelity", "smal"],
        ["unknown fidelity 'smal'", "did you mean: small"],
    ),
    "data set": (
        ["train", "conv2d", "--data", "digit"],
        ["'digit'", "digits"],
    ),
    "operator": (
        ["train", "convd2", "--data", "digits"],
        ["there is no", "expected: ", "did you mean: conv"],
    ),
}


@pytest.mark.parametrize("case", NAMES)
def test_an_unknown_name_suggests_the_nearest(case: str, here: Path) -> None:
    arguments, parts = NAMES[case]
    if "timm" in case and importlib.util.find_spec("timm") is None:
        pytest.skip("needs timm")
    (here / "mine.txt").write_text(zoo.load("conv1x1").text)
    check(run(arguments), *parts)
    # A search opens its store first.
    assert {path.name for path in here.iterdir()} <= {"mine.txt", "runs.db"}


def test_a_model_without_layers_that_the_operator_fits(here: Path) -> None:
    """Every model by name has layers to replace; `test_cli_mistakes` has a network without."""
    check(
        run(["train", "linear", "--data", "digits"]),
        "expected: as many dimensions",
        "operator 'linear' in model 'resnet-small'",
    )
    check(
        run(["train", "grouped", "--data", "digits", "--binding", "g=5"]),
        "the operator fits no slot of the network",
        "the size g^-1*C_in is not a positive integer under this binding",
    )
    assert not list(here.iterdir())


def test_images_of_mixed_sizes_need_a_size(photos: Make, here: Path) -> None:
    photos({"train/cat": 3, "train/dog": 3})
    photos({"train/eel": 3}, (12, 12))
    command = ["data", "show", "./photos"]
    check(
        run(command),
        "images of folder 'photos' differ in size",
        "8 x 8",
        "12 x 12",
        "what to do: give a size (size=32",
    )
    assert run([*command, "--resolution", "8"]).code == 0


def test_files_that_are_no_images(photos: Make, here: Path) -> None:
    folder = photos({"train/cat": 3, "train/dog": 3})
    (folder / "train" / "dog" / "001.png").write_text("a dog")
    for command in (
        ["data", "show", "./photos"],
        ["search", "--data", "./photos", "--resolution", "8", "--dry-run"],
        ["train", "conv2d", "--data", "./photos", "--resolution", "8"],
    ):
        check(run(command), "train/dog/001.png': not an image of a known format", "remove")
    assert [path.name for path in here.iterdir()] == ["photos"]


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        (
            {"train/cat": 4, "train/dog": 4, "test/cat": 2, "test/eel": 2},
            ["different classes", "dog", "eel"],
        ),
        ({"train/cat": 4, "train/dog": 4, "test/cat": 2}, ["different classes", "dog"]),
        ({"train/cat": 4}, ["only one class, 'cat'"]),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["data", "show"], ["train", "conv2d", "--resolution", "8", "--data"], ["search", "--data"]],
)
def test_class_folders_that_differ_between_splits(
    photos: Make, counts: dict[str, int], parts: list[str], command: list[str]
) -> None:
    photos(counts)
    check(run([*command, "./photos"]), *parts)


@pytest.fixture
def words(here: Path) -> str:
    """A text of 7,000 bytes."""
    (here / "words.txt").write_text("".join(f"{n:03} is one\n" for n in range(600)))
    return "./words.txt"


LANGUAGE = ["--model-option", "layers=1", "--model-option", "width=16"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--context", "6000"], ["too short", "expected: "]),
        (["--context", "16", "--batch", "500"], ["too short for batches of 500"]),
    ],
)
def test_a_text_that_is_too_short(
    words: str, here: Path, options: list[str], parts: list[str]
) -> None:
    check(run(["train", "--baseline", "--data", words, *LANGUAGE, *options]), *parts)
    assert [path.name for path in here.iterdir()] == ["words.txt"]


def test_an_empty_text(here: Path) -> None:
    (here / "words.txt").write_text("")
    check(run(["data", "show", "./words.txt"]), "words.txt")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            [*TRAIN, "--images", "100", "--batch", "101"],
            [
                "batches of 101",
                "'digits' has 100 training images",
                "expected: a batch of at most 100",
            ],
        ),
        (
            [*SEARCH, "--images", "100", "--batch", "101"],
            [
                "batches of 101",
                "'digits' has 100 training images",
                "expected: a batch of at most 100",
            ],
        ),
        (
            [*TRAIN, "--images", "5000"],
            ["requests 5000 training images", "expected: at most 1078, those of 'digits'"],
        ),
    ],
)
def test_a_batch_larger_than_the_data(here: Path, arguments: list[str], parts: list[str]) -> None:
    check(run(arguments), *parts)
    assert arguments[0] == "search" or not list(here.iterdir())


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--data", "digits", "--model", "gpt2-small"], ["'gpt2-small' is for text", "is images"]),
        (["--data", "./words.txt", "--model", "resnet-small"], ["is for images", "is text"]),
        (["--data", "digits", "--recipe", "fast/text"], ["trains on text", "a recipe for images"]),
        (["--data", "./words.txt", "--recipe", "fast/short"], ["trains on images", "fast/text"]),
        (
            ["--data", "./words.txt", "--quantize"],
            ["only networks for images can be quantized to INT8"],
        ),
    ],
)
def test_kinds_that_do_not_go_together(
    words: str, here: Path, arguments: list[str], parts: list[str]
) -> None:
    check(run(["train", "--baseline", *arguments]), *parts)
    assert [path.name for path in here.iterdir()] == ["words.txt"]
