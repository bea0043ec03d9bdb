"""`syno data`: what a folder holds and what is in a data set."""

from __future__ import annotations

import gzip
import json
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from syno.cli.main import cli


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with one set of each kind, and a cache of its own."""
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNO_DATA", raising=False)
    root = tmp_path / "data"
    for place in ("photos/train/cat", "photos/train/dog", "photos/test/cat", "photos/test/dog"):
        (root / place).mkdir(parents=True)
        for i in range(3):
            Image.effect_noise((12 + i, 10), 60).convert("RGB").save(root / place / f"{i}.png")
    with tarfile.open(root / "packed.tar.gz", "w:gz") as archive:
        archive.add(root / "photos", "photos")
    (root / "web").mkdir()
    with tarfile.open(root / "web/train-0.tar", "w") as archive:
        archive.add(root / "photos/train/cat/0.png", "0.png")
    (root / "digits-like").mkdir()
    for kind, shape in (("images-idx3", (6, 4, 4)), ("labels-idx1", (6,))):
        head = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
        content = (np.arange(np.prod(shape)) % 2).astype(np.uint8).tobytes()
        path = root / f"digits-like/train-{kind}-ubyte.gz"
        path.write_bytes(gzip.compress(head + content))
    (root / "book.txt").write_text("\n\n".join(f"chapter {i}: and so on" for i in range(20)))
    (root / "notes").mkdir()
    (root / "notes/readme.md").write_text("nothing to train on")
    return root


def test_list_tells_each_kind_by_its_files(folder: Path) -> None:
    listed = json.loads(run("data", "list", "--data-dir", str(folder), "--json").stdout)
    assert {entry["name"]: entry["kind"] for entry in listed["data_sets"]} == {
        "digits": "embedded",
        "book": "text",
        "digits-like": "arrays",
        "packed": "archive",
        "photos": "images",
        "web": "shards",
    }
    text = run("data", "list", "--data-dir", str(folder))
    assert text.exit_code == 0
    assert "photos" in text.stdout
    assert "notes" not in text.stdout


def test_list_without_a_folder_says_how_to_name_one(folder: Path) -> None:
    result = run("data", "list")
    assert result.exit_code == 0
    assert "digits" in result.stdout
    assert "--data-dir or SYNO_DATA" in result.stderr


def test_every_set_that_is_listed_can_be_shown(folder: Path) -> None:
    for name, count in (("digits", 1437), ("digits-like", 4), ("photos", 6), ("packed", 6)):
        result = run("data", "show", name, "--data-dir", str(folder), "--resolution", "8", "--json")
        assert result.exit_code == 0, result.stderr
        shown = json.loads(result.stdout)
        assert (shown["train_images"], shown["size"]) == (count, 8)
    shown = json.loads(run("data", "show", "book", "--data-dir", str(folder), "--json").stdout)
    assert shown["documents"] == {"train": 18, "held": 2, "test": 0}
    assert shown["tokens"]["train"] == shown["text_bytes"]["train"] + 18


def test_an_archive_of_text_is_shown_as_text(folder: Path) -> None:
    with tarfile.open(folder / "books.tar.gz", "w:gz") as archive:
        archive.add(folder / "book.txt", "books/train/one.txt")
        archive.add(folder / "book.txt", "books/test/two.txt")
    result = run("data", "show", "books", "--data-dir", str(folder), "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["documents"] == {"train": 18, "held": 2, "test": 20}


def test_show_prints_classes_and_counts(folder: Path) -> None:
    text = run("data", "show", "photos", "--data-dir", str(folder), "--resolution", "8").stdout
    assert "cat, dog" in text
    assert "train images a class  3, 3" in text
    text = run("data", "show", str(folder / "book.txt"), "--tokenizer", "byte-pair",
               "--vocabulary", "270").stdout  # fmt: skip
    assert "byte-pair" in text and "270" in text


def test_prepare_writes_records_that_are_a_data_set(folder: Path, tmp_path: Path) -> None:
    photos, out = str(folder / "photos"), str(tmp_path / "out")
    planned = run("data", "prepare", photos, "--out", out, "--dry-run", "--json")
    assert planned.exit_code == 0, planned.stderr
    assert json.loads(planned.stdout)["images"] == 12
    assert not Path(out).exists()
    done = run(
        "data", "prepare", photos, "--out", out, "--longer-side", "9", "--quality", "80",
        "--jpeg-share", "0.5", "--shard-images", "5", "--workers", "2", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    made = json.loads(done.stdout)
    assert (made["train_images"], made["test_images"], made["skipped"]) == (6, 6, 0)
    assert made["bytes"] == sum(path.stat().st_size for path in Path(out).glob("*.rec"))
    shown = run("data", "show", out, "--resolution", "8", "--json")
    assert json.loads(shown.stdout)["train_images"] == 6
    again = run("data", "prepare", photos, "--out", out, "--longer-side", "9")
    assert again.exit_code == 2
    assert "another set of options" in again.stderr


def test_a_search_trains_on_records(folder: Path, tmp_path: Path) -> None:
    photos, out = str(folder / "photos"), str(tmp_path / "out")
    assert run("data", "prepare", photos, "--out", out).exit_code == 0
    planned = run(
        "search", "--data", out, "--resolution", "8", "--images", "4", "--batch", "2",
        "--evaluations", "1", "--dry-run", "--json",
    )  # fmt: skip
    assert planned.exit_code == 0, planned.stderr
    assert json.loads(planned.stdout)["data"]["train_images"] == 6


def test_list_knows_records(folder: Path) -> None:
    out = folder / "records"
    assert run("data", "prepare", str(folder / "photos"), "--out", str(out)).exit_code == 0
    listed = json.loads(run("data", "list", "--data-dir", str(folder), "--json").stdout)
    assert ("records", "records") in {(e["name"], e["kind"]) for e in listed["data_sets"]}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["photos"], "12 x 10 pixels, not square"),
        (["photo", "--resolution", "8"], "did you mean: photos"),
        (["book", "--tokenizer", "words"], "expected: 'bytes', 'byte-pair'"),
        (["notes"], "no image found in folder"),
    ],
)
def test_mistakes_are_said_without_a_traceback(
    folder: Path, arguments: list[str], text: str
) -> None:
    result = run("data", "show", *arguments, "--data-dir", str(folder))
    assert result.exit_code == 2
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_list_of_a_folder_that_is_missing() -> None:
    result = run("data", "list", "--data-dir", "/nowhere")
    assert result.exit_code == 2
    assert "cannot read data folder '/nowhere'" in result.stderr


def test_text_is_no_image_data(folder: Path) -> None:
    store = str(folder / "runs.db")
    book = str(folder / "book.txt")
    result = run("search", "--model", "resnet-small", "--data", book, "--store", store)
    assert result.exit_code == 2
    assert "model 'resnet-small' is for images" in result.stderr
    result = run("experiment", "ranking", "--data", book, "--out", str(folder / "ranking.jsonl"))
    assert result.exit_code == 2
    assert "is text, not images" in result.stderr
