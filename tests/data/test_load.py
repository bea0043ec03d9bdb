"""Loading: what comes out is what the files hold, from a folder, an archive or the cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.progress import Progress, ProgressColumn, TaskID

from syno import UserError
from syno.data import DataSet, load, load_text, loading

Make = Callable[..., Path]


def pixels(root: Path, folder: str, count: int) -> np.ndarray:
    """The PNGs of a folder as [n, C, H, W], straight from Pillow."""
    images = [np.asarray(Image.open(root / folder / f"{i:03}.png")) for i in range(count)]
    return np.moveaxis(np.stack(images), 3, 1)


def same(a: DataSet, b: DataSet) -> bool:
    """Whether content, order, names and statistics agree."""
    return (
        a.classes == b.classes
        and (a.mean, a.std) == (b.mean, b.std)
        and all(
            np.array_equal(x.images, y.images) and np.array_equal(x.labels, y.labels)
            for x, y in ((a.train, b.train), (a.test, b.test))
        )
    )


def test_digits_have_a_fixed_split_of_1437_and_360_images() -> None:
    digits = load("digits")
    assert digits.train.images.shape == (1437, 1, 8, 8)
    assert digits.test.images.shape == (360, 1, 8, 8)
    assert digits.classes == tuple("0123456789")
    assert digits.train.images.dtype == np.uint8
    assert digits.train.images.max() == 255
    shares = np.bincount(digits.test.labels).tolist()
    assert shares == [36, 37, 35, 37, 36, 36, 36, 36, 35, 36]
    assert digits.fingerprint == load("digits").fingerprint
    joined = np.concatenate([digits.train.images, digits.test.images]).reshape(1797, -1)
    assert len(np.unique(joined, axis=0)) == 1797, "an image stands in both splits"


def test_digits_scale_and_repeat_channels_on_request() -> None:
    digits = load("digits", size=16, channels=3)
    assert digits.train.images.shape == (1437, 3, 16, 16)
    assert (digits.train.images[:, 0] == digits.train.images[:, 2]).all()
    assert digits.mean[0] == pytest.approx(load("digits").mean[0], abs=0.02)


@pytest.mark.parametrize("cache", [True, False])
def test_a_folder_gives_its_pixels_in_sorted_order(photos: Path, cache: bool) -> None:
    dataset = load("photos", photos.parent, cache=cache)
    expected = np.concatenate([pixels(photos, "train/cat", 5), pixels(photos, "train/dog", 4)])
    assert np.array_equal(dataset.train.images, expected)
    assert dataset.train.labels.tolist() == [0] * 5 + [1] * 4
    assert np.array_equal(dataset.test.images[2:], pixels(photos, "test/dog", 3))
    assert dataset.classes == ("cat", "dog")
    assert dataset.channels == 3
    assert dataset.size == 8


@pytest.mark.parametrize("suffix", [".tar", ".tar.xz", ".tar.gz"])
def test_an_archive_gives_the_same_as_its_folder(
    photos: Path, pack: Callable[[Path, str], Path], suffix: str
) -> None:
    archive = pack(photos, suffix)
    expected = load("photos", photos.parent, cache=False)
    assert same(load(str(archive)), expected)
    photos.rename(photos.with_name("elsewhere"))
    if suffix != ".tar.gz":
        assert same(load("photos", archive.parent), expected)


@pytest.mark.parametrize("kind", ["terminal", "jupyter"])
def test_each_step_of_loading_is_shown(
    photos: Path, pack: Callable[[Path, str], Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    archive = pack(photos, ".tar.xz")
    shown: list[str] = []

    class Shown(Progress):
        def __init__(self, *columns: ProgressColumn, console: Any, disable: bool, **_: Any) -> None:
            super().__init__(*columns, disable=True)
            self.hidden = disable

        def add_task(self, description: str, *arguments: Any, **more: Any) -> TaskID:
            shown.extend([] if self.hidden else [description])
            return super().add_task(description, *arguments, **more)

    monkeypatch.setattr("syno.data.progress.Progress", Shown)
    assert load(str(archive)) and not shown  # neither a terminal nor a notebook
    is_there = {"is_terminal" if kind == "terminal" else "is_jupyter": True}
    other = {"is_terminal": False, "is_jupyter": False} | is_there
    monkeypatch.setattr("syno.data.progress.Console", lambda **_: SimpleNamespace(**other))
    load(str(archive))
    assert shown == [f"looking for {archive} in the cache"]
    load(str(archive), size=4)
    assert [each.split()[0] for each in shown[2:]] == ["reading", "decoding"]
    load(str(archive), size=4, progress=False)
    assert len(shown) == 4


def test_the_data_folder_may_be_given_by_environment_or_be_the_set_itself(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load("photos", photos.parent)
    assert same(load("photos", photos), expected)
    assert same(load("cifar10", photos), expected), "a data folder that holds 'train' is the set"
    monkeypatch.setenv("SYNO_DATA", str(photos.parent))
    assert same(load("photos"), expected)


def test_classes_without_an_official_split_are_divided_by_a_fixed_seed(make_folder: Make) -> None:
    root = make_folder("flat", {"cat": 10, "dog": 20})
    dataset = load("flat", root.parent)
    assert np.bincount(dataset.train.labels).tolist() == [8, 16]
    assert np.bincount(dataset.test.labels).tolist() == [2, 4]
    assert same(dataset, load("flat", root.parent, cache=False))


def test_a_validation_part_serves_as_test_part(make_folder: Make) -> None:
    root = make_folder("set", {"train/a": 3, "train/b": 3, "val/a": 1, "val/b": 2})
    assert len(load("set", root).test) == 3


def test_images_scale_to_the_size_asked_for(make_folder: Make) -> None:
    root = make_folder("wide", {"train/a": 3, "train/b": 3, "test/a": 1, "test/b": 1}, size=(12, 8))
    dataset = load("wide", root, size=4)
    assert dataset.train.images.shape == (6, 3, 4, 4)
    # The centre is kept: 8 x 8 of the 12 x 8 pixels, whose mean scaling hardly moves.
    centre = pixels(root, "train/a", 3)[:, :, :, 2:10].mean()
    assert abs(float(dataset.train.images[:3].mean()) - centre) < 6


def test_grey_images_keep_one_channel_and_convert_on_request(make_folder: Make) -> None:
    root = make_folder("grey", {"a": 3, "b": 3}, mode="L")
    assert load("grey", root).channels == 1
    assert load("grey", root, channels=3).channels == 3


@pytest.mark.parametrize("cache", [True, False])
def test_one_colour_image_makes_the_whole_set_colour(make_folder: Make, cache: bool) -> None:
    root = make_folder("mixed", {"a": 3, "b": 3}, mode="L")
    Image.new("RGB", (8, 8), (255, 0, 0)).save(root / "b" / "red.png")
    dataset = load("mixed", root, cache=cache)
    assert dataset.channels == 3
    everything = np.concatenate([dataset.train.images, dataset.test.images])
    red = np.array([255, 0, 0], np.uint8).reshape(3, 1, 1)
    assert (everything == red).all(axis=(1, 2, 3)).sum() == 1
    assert load("mixed", root, channels=1).channels == 1


def test_sixteen_bit_grey_images_are_scaled_not_clipped(make_folder: Make) -> None:
    root = make_folder("deep", {"a": 2, "b": 2}, mode="L")
    for path in root.rglob("*.png"):
        Image.fromarray(np.full((8, 8), 0x8000, np.uint16)).save(path)
    assert (load("deep", root).train.images == 0x80).all()


def test_large_files_decode_in_order_on_several_threads(make_folder: Make) -> None:
    # Above 16 KB a file is decoded on a pool of threads.
    counts = {"train/a": 40, "train/b": 20, "test/a": 1, "test/b": 1}
    root = make_folder("large", counts, size=(96, 96))
    assert (root / "train/a/000.png").stat().st_size > 16 << 10
    dataset = load("large", root, cache=False)
    expected = np.concatenate([pixels(root, "train/a", 40), pixels(root, "train/b", 20)])
    assert np.array_equal(dataset.train.images, expected)


@pytest.mark.slow
@pytest.mark.skipif("SYNO_DATA" not in os.environ, reason="SYNO_DATA names no folder with CIFAR-10")
def test_real_cifar10_loads_and_comes_back_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = load("cifar10", REAL_DATA, size=16)
    assert dataset.train.images.shape == (50_000, 3, 16, 16)
    assert dataset.test.images.shape == (10_000, 3, 16, 16)
    assert np.bincount(dataset.train.labels).tolist() == [5000] * 10
    assert dataset.classes[0] == "airplane"
    monkeypatch.delattr(loading, "decode_all")
    assert same(dataset, load("cifar10", REAL_DATA, size=16))


# Read when the module loads: a fixture removes the variable for the tests.
REAL_DATA = os.environ.get("SYNO_DATA")


@pytest.mark.parametrize("data_dir", [1j, 3, b"x"])
def test_a_data_folder_that_is_no_path_is_named(data_dir: Any) -> None:
    with pytest.raises(UserError, match="'data_dir' is not a path\n"):
        load("space", data_dir)
    with pytest.raises(UserError, match="'data_dir' is not a path\n"):
        load_text("space", data_dir)
