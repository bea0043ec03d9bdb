"""A user's mistakes with data: each says what was asked, where, what was found and what to do."""

from __future__ import annotations

import errno
import io
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from syno import UserError
from syno.data import load

Make = Callable[..., Path]


def refused(*parts: str) -> re.Pattern[str]:
    """A pattern for a message that holds the parts in this order."""
    return re.compile(".*".join(re.escape(part) for part in parts), re.DOTALL)


def test_no_data_folder_given() -> None:
    with pytest.raises(UserError) as error:
        load("cifar10")
    assert str(error.value) == (
        "data set 'cifar10' needs a data folder, and none is given\n"
        "  what to do: pass data_dir= (--data-dir) or set SYNO_DATA to a folder that holds "
        "'cifar10' or 'cifar10.tar.xz'"
    )


def test_data_folder_does_not_exist() -> None:
    with pytest.raises(UserError) as error:
        load("cifar10", "/nowhere/data")
    assert str(error.value) == (
        "data folder '/nowhere/data' does not exist\n"
        "  expected: a folder that holds 'cifar10' or 'cifar10.tar.xz'"
    )


def test_data_folder_holds_something_else(photos: Path) -> None:
    with pytest.raises(UserError, match=refused("'cifar10' is not in data folder", "got: photos")):
        load("cifar10", photos.parent)


def test_a_path_that_does_not_exist_or_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=refused("'/nowhere/set.tar' does not exist")):
        load("/nowhere/set.tar")
    (tmp_path / "set.zip").write_bytes(b"PK")
    with pytest.raises(UserError, match=refused("neither a folder nor an archive", ".tar.xz")):
        load(str(tmp_path / "set.zip"))


@pytest.mark.parametrize("cache", [True, False])
def test_a_truncated_image_is_named(photos: Path, cache: bool) -> None:
    path = photos / "train/dog/002.png"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=refused(f"cannot decode image '{path}'", "replace")):
        load("photos", photos, cache=cache)


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".gif", ".bmp"])
def test_a_truncated_image_is_named_in_every_format(photos: Path, suffix: str) -> None:
    path = photos / f"train/dog/cut{suffix}"
    Image.open(photos / "train/dog/002.png").resize((64, 64)).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=refused(f"cannot decode image '{path}'")):
        load("photos", photos, size=8)


def test_a_file_that_is_no_image_is_named_within_its_archive(
    photos: Path, pack: Callable[[Path, str], Path]
) -> None:
    (photos / "test/cat/000.png").write_text("not an image")
    archive = pack(photos, ".tar.xz")
    text = refused("'photos/test/cat/000.png' in archive", archive.name, "not an image of a known")
    with pytest.raises(UserError, match=text):
        load(str(archive))


@pytest.mark.parametrize("suffix", [".tar", ".tar.xz", ".tar.gz"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_truncated_archive_is_refused(
    photos: Path, pack: Callable[[Path, str], Path], suffix: str, share: float
) -> None:
    archive = pack(photos, suffix)
    content = archive.read_bytes()
    archive.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(UserError, match=refused("archive", archive.name, "truncated or damaged")):
        load(str(archive))


def test_an_archive_cut_between_two_members_is_refused(
    photos: Path, pack: Callable[[Path, str], Path]
) -> None:
    path = pack(photos, ".tar")
    with tarfile.open(path) as archive:
        boundary = archive.getmembers()[-3].offset
    path.write_bytes(path.read_bytes()[:boundary])
    with tarfile.open(path) as archive:
        archive.getmembers()  # tarfile takes it for a shorter archive
    with pytest.raises(UserError, match=refused("truncated or damaged", "no end-of-archive")):
        load(str(path))


def test_a_plain_archive_is_read_in_place_and_a_packed_one_says_where_it_needs_room(
    photos: Path, pack: Callable[[Path, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.BytesIO):
        def __init__(self, max_size: int) -> None:
            super().__init__()

        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile", Full)
    assert len(load(str(pack(photos, ".tar"))).train) == 9
    with pytest.raises(UserError, match=refused("cannot unpack archive", "set TMPDIR to a folder")):
        load(str(pack(photos, ".tar.gz")))


def test_an_unreadable_image_is_named(photos: Path) -> None:
    path = photos / "train/cat/001.png"
    path.unlink()
    path.symlink_to(photos / "gone.png")
    with pytest.raises(UserError, match=refused("001.png")):
        load("photos", photos)


def test_images_of_different_sizes_need_a_size(photos: Path) -> None:
    Image.new("RGB", (16, 16)).save(photos / "train/dog/009.png")
    text = refused("differ in size", "is 8 x 8", "009.png' is 16 x 16", "size=32")
    with pytest.raises(UserError, match=text):
        load("photos", photos)
    assert len(load("photos", photos, size=8).train) == 10


def test_images_that_are_not_square_need_a_size(make_folder: Make) -> None:
    root = make_folder("wide", {"a": 2, "b": 2}, size=(12, 8))
    with pytest.raises(UserError, match=refused("is 12 x 8 pixels, not square", "size=32")):
        load("wide", root)


def test_a_training_part_without_images_is_refused(photos: Path) -> None:
    shutil.rmtree(photos / "train")
    (photos / "train").mkdir()
    with pytest.raises(UserError, match=refused("no image under 'train' in folder")):
        load("photos", photos)


def test_an_empty_class_is_named(photos: Path, pack: Callable[[Path, str], Path]) -> None:
    (photos / "train/eel").mkdir()
    (photos / "train/eel/notes.txt").write_text("no image")
    with pytest.raises(UserError, match=refused("class folder 'train/eel'", "holds no image")):
        load("photos", photos)
    with pytest.raises(UserError, match=refused("'photos/train/eel'", "holds no image")):
        load(str(pack(photos, ".tar")))


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        ({"train/a": 2, "train/b": 2, "test/a": 1}, ("different classes", "b")),
        ({"train/a": 2, "train/b": 2, "other/a": 1}, ("unexpected folder 'other'",)),
        ({"a/x": 2, "b": 2}, ("wrong layout", "got: a/x/000.png")),
        ({"train/a/x": 2, "train/b/x": 2}, ("wrong layout", "got: train/a/x/000.png")),
        ({"a": 3}, ("only one class, 'a'",)),
        ({"a": 1, "b": 3}, ("class 'a'", "has one image")),
        ({"a": 0}, ("no image found",)),
    ],
)
def test_a_wrong_layout_says_what_is_expected(
    make_folder: Make, counts: dict[str, int], parts: tuple[str, ...]
) -> None:
    root = make_folder("set", counts)
    with pytest.raises(UserError, match=refused(*parts)) as error:
        load("set", root)
    assert "expected" in str(error.value) or "only in one" in str(error.value)
    assert str(root) in str(error.value)


@pytest.mark.parametrize("size", [0, -3, 1.5, 100_000])
def test_a_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(UserError, match=refused("to size", "from 1 to 4096")):
        load("digits", size=size)


def test_other_channels_than_grey_and_rgb_are_refused() -> None:
    with pytest.raises(UserError, match=refused("with 2 channels", "1 (grey) or 3 (RGB)")):
        load("digits", channels=2)
