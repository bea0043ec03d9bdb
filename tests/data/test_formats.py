"""Data sets in other forms than class folders: IDX, CIFAR as packed by its authors, shards."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from syno import UserError
from syno.data import Stream, load
from syno.data.arrays import parse_idx


def pixels(seed: int, *shape: int) -> np.ndarray:
    """Random bytes."""
    return Stream(seed).below(256, int(np.prod(shape))).astype(np.uint8).reshape(shape)


def idx(array: np.ndarray) -> bytes:
    """The array as an IDX file."""
    head = b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """A set of 30 and 10 images of 28 x 28 in MNIST's files, two of them compressed."""
    root = tmp_path / "mnist" / "raw"
    root.mkdir(parents=True)
    for part, count in (("train", 30), ("t10k", 10)):
        (root / f"{part}-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(idx(pixels(count, count, 28, 28)))
        )
        labels = (np.arange(count) % 10).astype(np.uint8)
        (root / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    return root.parent


def test_idx_files_are_a_data_set(mnist: Path) -> None:
    data = load("mnist", mnist.parent)
    assert data.classes == tuple("0123456789")
    assert (data.channels, data.size) == (1, 28)
    assert np.array_equal(data.train.images[:, 0], pixels(30, 30, 28, 28))
    assert np.array_equal(data.test.labels, np.arange(10) % 10)
    assert isinstance(data.train.images, np.memmap)


def test_arrays_scale_and_change_channels_as_decoded_images_do(mnist: Path) -> None:
    expected = Image.fromarray(pixels(30, 30, 28, 28)[3]).resize(
        (14, 14), Image.Resampling.BILINEAR
    )
    data = load("mnist", mnist.parent, size=14, channels=3)
    assert data.train.images.shape == (30, 3, 14, 14)
    for channel in range(3):
        assert np.array_equal(data.train.images[3, channel], np.asarray(expected))


def test_idx_files_without_a_test_part_get_a_split_of_their_own(mnist: Path) -> None:
    for path in mnist.glob("raw/t10k-*"):
        path.unlink()
    data = load("mnist", mnist.parent)
    assert (len(data.train), len(data.test)) == (20, 10)
    assert np.array_equal(np.bincount(data.test.labels), np.ones(10))


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("train-labels-idx1-ubyte", b"", r"not an IDX file of bytes\n.*got: nothing"),
        ("train-labels-idx1-ubyte", b"\0\0\x0d\1", r"not an IDX file of bytes\n.*got: 00 00 0d 01"),
        ("train-labels-idx1-ubyte", idx(pixels(0, 30))[:-1], r"expected: 30 bytes .* got: 29"),
        ("train-labels-idx1-ubyte", idx(pixels(0, 30))[:6], r"truncated or damaged"),
        ("train-labels-idx1-ubyte", idx(pixels(0, 29)), r"(?s)does not go with .*\[30, 28, 28\]"),
        ("train-images-idx3-ubyte.gz", b"\x1f\x8b\x08rubbish", r"is damaged: .*\n  fetch it again"),
        ("train-images-idx3-ubyte.gz", gzip.compress(b"x" * 9, mtime=0)[:-6], r"is damaged: "),
    ],
)
def test_a_damaged_idx_file_is_named(mnist: Path, name: str, content: bytes, text: str) -> None:
    (mnist / "raw" / name).write_bytes(content)
    with pytest.raises(UserError, match=text) as error:
        load("mnist", mnist.parent)
    assert str(mnist / "raw" / name) in str(error.value)


def test_idx_files_that_lack_a_partner_or_are_of_two_sets(mnist: Path) -> None:
    labels = mnist / "raw/train-labels-idx1-ubyte"
    content = labels.read_bytes()
    labels.unlink()
    with pytest.raises(UserError, match=r"has no labels of the train part.*\n.*train-labels-idx1"):
        load("mnist", mnist.parent)
    labels.write_bytes(content)
    (mnist / "raw/fashion-train-labels-idx1-ubyte").write_bytes(content)
    with pytest.raises(UserError, match="holds several data sets of IDX files"):
        load("mnist", mnist.parent)


def test_idx_of_huge_sizes_does_not_overflow() -> None:
    with pytest.raises(UserError, match=f"expected: {(2**32 - 1) ** 4:,} bytes"):
        parse_idx(b"\0\0\x08\4" + b"\xff" * 16, "file 'x'")


def cifar_rows(seed: int, count: int, classes: int, fine: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the binary version and their labels."""
    labels = (np.arange(count) % classes).astype(np.uint8)
    coarse = [labels[:, None] // 5] if fine else []
    return np.concatenate([*coarse, labels[:, None], pixels(seed, count, 3072)], axis=1), labels


def test_cifar_10_in_its_binary_version(tmp_path: Path) -> None:
    root = tmp_path / "cifar10" / "cifar-10-batches-bin"
    root.mkdir(parents=True)
    rows = [cifar_rows(i, 20, 10, False)[0] for i in range(6)]
    for i in range(5):
        (root / f"data_batch_{i + 1}.bin").write_bytes(rows[i].tobytes())
    (root / "test_batch.bin").write_bytes(rows[5].tobytes())
    names = [f"name{i}" for i in range(10)]
    (root / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    data = load("cifar10", tmp_path)
    assert data.classes == tuple(names)
    assert (len(data.train), len(data.test), data.size) == (100, 20, 32)
    assert np.array_equal(data.train.images[21].ravel(), rows[1][1, 1:])
    (root / "data_batch_3.bin").write_bytes(rows[2].tobytes()[:-1])
    with pytest.raises(UserError, match=r"data_batch_3.bin' is truncated .*\n.*3,073 .*61,459"):
        load("cifar10", tmp_path)


def test_cifar_100_takes_the_fine_labels(tmp_path: Path) -> None:
    for part, seed in (("train", 0), ("test", 1)):
        rows, _ = cifar_rows(seed, 200, 100, True)
        (tmp_path / f"{part}.bin").write_bytes(rows.tobytes())
    (tmp_path / "fine_label_names.txt").write_text("\n".join(f"c{i}" for i in range(100)))
    (tmp_path / "coarse_label_names.txt").write_text("\n".join(f"g{i}" for i in range(20)))
    data = load(str(tmp_path))
    assert len(data.classes) == 100
    assert np.array_equal(data.train.labels, np.arange(200) % 100)


class TestPickledCifar:
    def write(self, path: Path, content: Any) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(content, protocol=2))

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "cifar-100-python"
        for part, seed in (("train", 0), ("test", 1)):
            content = {
                b"data": pixels(seed, 8, 3072),
                b"fine_labels": [0, 1] * 4,
                b"coarse_labels": [0] * 8,
            }
            self.write(root / part, content)
        self.write(root / "meta", {b"fine_label_names": [b"apple", b"bear"]})
        return root

    def test_is_read_without_running_what_it_calls_for(self, root: Path) -> None:
        data = load(str(root.parent))
        assert data.classes == ("apple", "bear")
        assert np.array_equal(data.train.images.reshape(8, -1), pixels(0, 8, 3072))

    def test_that_calls_for_code_is_refused(self, root: Path, tmp_path: Path) -> None:
        class Bad:
            def __reduce__(self) -> tuple[Any, ...]:
                return (Path.touch, (tmp_path / "touched",))

        self.write(root / "train", {b"data": Bad(), b"fine_labels": []})
        with pytest.raises(UserError, match=r"train' is damaged: it calls for .*getattr"):
            load(str(root.parent))
        assert not (tmp_path / "touched").exists()

    def test_of_another_content_is_refused(self, root: Path) -> None:
        self.write(root / "train", {b"data": pixels(0, 7, 3072), b"fine_labels": [0] * 8})
        with pytest.raises(UserError, match=r"train' is not a CIFAR batch"):
            load(str(root.parent))
        self.write(root / "train", [1, 2])
        with pytest.raises(UserError, match=r"train' is not a CIFAR batch"):
            load(str(root.parent))
        (root / "train").write_bytes(b"\x80\x02}q")
        with pytest.raises(UserError, match=r"train' is damaged"):
            load(str(root.parent))


def png(seed: int, size: int = 8) -> bytes:
    """A random colour image, encoded."""
    buffer = io.BytesIO()
    Image.fromarray(pixels(seed, size, size, 3)).save(buffer, "PNG")
    return buffer.getvalue()


def shard(path: Path, samples: dict[str, bytes]) -> None:
    """A .tar of the samples' files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, content in samples.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def samples(first: int, count: int, form: str = "cls") -> dict[str, bytes]:
    """Images numbered from `first` with labels 0, 1, 2, 0, ..."""
    made = {}
    for i in range(first, first + count):
        label = str(i % 3) if form == "cls" else json.dumps({"label": i % 3, "id": i})
        made |= {f"{i:06}.{form}": label.encode(), f"{i:06}.png": png(i)}
    return made


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards to train and one to test on, with 6 samples each."""
    for i, part in enumerate(("train-000000", "train-000001", "val-000000")):
        shard(tmp_path / f"web/{part}.tar", samples(6 * i, 6, "json" if i == 1 else "cls"))
    return tmp_path / "web"


class TestShards:
    def test_samples_keep_their_labels_and_parts(self, shards: Path) -> None:
        data = load("web", shards.parent)
        assert data.classes == ("0", "1", "2")
        assert np.array_equal(data.train.labels, np.arange(12) % 3)
        assert np.array_equal(data.test.labels, np.arange(6) % 3)
        for part, first in ((data.train, 0), (data.test, 12)):
            for i, image in enumerate(part.images):
                assert np.array_equal(np.moveaxis(image, 0, 2), pixels(first + i, 8, 8, 3))

    def test_names_of_classes_stand_in_a_file(self, shards: Path) -> None:
        (shards / "classes.txt").write_text("ant\nbee\ncat\n")
        assert load("web", shards.parent).classes == ("ant", "bee", "cat")
        (shards / "classes.txt").write_text("ant\nbee\n")
        with pytest.raises(UserError, match=r"label 2 of folder .* is none of the 2 classes in"):
            load("web", shards.parent)
        (shards / "classes.txt").write_text("ant\nbee\ncat\ndog\n")
        with pytest.raises(UserError, match=r"class 'dog' of folder .* has no training image"):
            load("web", shards.parent)

    @pytest.mark.parametrize("form", ["tar", "tar.gz", "folder"])
    def test_one_archive_or_a_folder_of_samples_is_as_good(self, tmp_path: Path, form: str) -> None:
        path = tmp_path / f"one.{form}"
        if form == "folder":
            path.mkdir()
            for name, content in samples(0, 15).items():
                (path / name).write_bytes(content)
        else:
            shard(path, samples(0, 15))
            if form == "tar.gz":
                path.write_bytes(gzip.compress(path.read_bytes()))
        data = load(str(path))
        assert (len(data.train), len(data.test)) == (12, 3)
        assert sorted(data.test.labels) == [0, 1, 2]

    def test_a_changed_shard_is_read_again(self, shards: Path) -> None:
        first = load("web", shards.parent)
        shard(shards / "train-000001.tar", samples(30, 9))
        assert len(load("web", shards.parent).train) == len(first.train) + 3

    @pytest.mark.parametrize("keep", [0.2, 0.6, -1024])
    def test_a_truncated_shard_is_named(self, shards: Path, keep: float) -> None:
        path = shards / "train-000001.tar"
        content = path.read_bytes().rstrip(b"\0")  # the padding of the archive's end
        length = int(len(content) * keep) if keep > 0 else len(content) // 512 * 512 + 512
        path.write_bytes(content[:length])
        with pytest.raises(UserError, match=r"(?s)shard '.*train-000001.tar' is truncated"):
            load("web", shards.parent)

    def test_an_image_without_a_label_is_named_and_counted(self, shards: Path) -> None:
        made = samples(6, 6)
        del made["000007.cls"], made["000010.cls"]
        shard(shards / "train-000001.tar", made)
        with pytest.raises(UserError, match=r"(?s)2 of 18 images of .* '000007.cls'.*in shard"):
            load("web", shards.parent)

    @pytest.mark.parametrize(
        ("name", "content", "text"),
        [
            ("000006.cls", b"", "cannot be read"),
            ("000006.json", b"{", "is not JSON"),
            ("000006.json", b'{"id": 3}', "under label, cls or class"),
            ("000006.json", b'{"label": 1.5}', "cannot be read"),
            ("000006.cls", b"bird", "both numbers and names"),
        ],
    )
    def test_a_label_that_is_none(self, shards: Path, name: str, content: bytes, text: str) -> None:
        made = samples(6, 6)
        del made["000006.cls"]
        shard(shards / "train-000001.tar", {**made, name: content})
        with pytest.raises(UserError, match=text):
            load("web", shards.parent)

    def test_a_class_of_the_test_part_alone_is_named(self, shards: Path) -> None:
        made = samples(12, 6)
        made["000012.cls"] = b"7"
        shard(shards / "val-000000.tar", made)
        with pytest.raises(UserError, match=r"class '7' of folder .* has no training image"):
            load("web", shards.parent)

    def test_a_damaged_image_is_named_within_its_shard(self, shards: Path) -> None:
        made = samples(6, 6)
        made["000008.png"] = made["000008.png"][:60]
        shard(shards / "train-000001.tar", made)
        with pytest.raises(UserError, match=r"'000008.png' in shard '.*train-000001.tar'"):
            load("web", shards.parent)
        data = load("web", shards.parent, skip_damaged=True)
        assert (len(data.train), data.skipped) == (11, 1)
        assert data.train.labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 2]


def test_imagenet_has_an_unlabelled_test_part_that_is_passed_over(
    make_folder: Callable[..., Path],
) -> None:
    root = make_folder("imagenet", {"train/n01": 3, "train/n02": 3, "val/n01": 1, "val/n02": 2})
    (root / "test").mkdir()
    (root / "test/ILSVRC2012_test_1.JPEG").write_bytes((root / "val/n01/000.png").read_bytes())
    data = load("imagenet", root)
    assert (len(data.train), len(data.test)) == (6, 3)


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [("L", ".png"), ("LA", ".png"), ("RGBA", ".png"), ("P", ".png"), ("P", ".gif"), ("1", ".png"),
     ("CMYK", ".jpg"), ("CMYK", ".tiff"), ("YCbCr", ".jpg"), ("I;16", ".png")],
)  # fmt: skip
def test_every_mode_of_an_image_becomes_rgb(photos: Path, mode: str, suffix: str) -> None:
    rgb = Image.open(photos / "train/dog/000.png").resize((8, 8))
    picture = (
        Image.fromarray(np.asarray(rgb.convert("L")).astype(np.uint16) << 8)
        if mode == "I;16"
        else rgb.convert(mode)
    )
    assert picture.mode == mode
    path = photos / f"train/dog/odd{suffix}"
    picture.save(path)
    data = load("photos", photos)
    assert data.train.images.shape == (10, 3, 8, 8)
    found = np.moveaxis(data.train.images[-1], 0, 2).astype(int)
    expected = np.asarray(
        rgb.convert("L").convert("RGB") if mode == "I;16" else Image.open(path).convert("RGB")
    )
    assert np.abs(found - expected).max() <= 1


def test_damaged_files_are_counted_and_left_out_where_asked(photos: Path) -> None:
    for name in ("train/cat/001.png", "train/dog/000.png", "test/cat/001.png"):
        (photos / name).write_bytes(b"no image")
    with pytest.raises(UserError) as error:
        load("photos", photos)
    message = str(error.value)
    assert message.startswith(f"cannot decode image '{photos}/train/cat/001.png': not an image")
    assert (
        f"3 of 14 files are damaged or are not images: also '{photos}/train/dog/000.png'" in message
    )
    assert "skip_damaged=True" in message
    for cache in (True, False):
        data = load("photos", photos, skip_damaged=True, cache=cache)
        assert (len(data.train), len(data.test), data.skipped) == (7, 4, 3)
        assert data.train.labels.tolist() == [0, 0, 0, 0, 1, 1, 1]
        kept = Image.open(photos / "train/cat/002.png")
        assert np.array_equal(np.moveaxis(data.train.images[1], 0, 2), np.asarray(kept))


def test_a_class_whose_images_are_all_damaged_is_not_left_out(photos: Path) -> None:
    for path in (photos / "train/dog").iterdir():
        path.write_bytes(b"no image")
    with pytest.raises(UserError, match=r"(?s)no train image of class 'dog' .*4 of 14 files"):
        load("photos", photos, skip_damaged=True)
    for path in (photos / "test").rglob("*.png"):
        path.write_bytes(b"no image")
    with pytest.raises(UserError, match=r"no train image of class 'dog'"):
        load("photos", photos, skip_damaged=True)


def test_other_words_beside_images_in_class_folders_are_no_labels(photos: Path) -> None:
    expected = load("photos", photos)
    for path in list(photos.rglob("*.png")):
        path.with_suffix(".json").write_text('{"camera": "old"}')
    (photos / "train.bin").write_bytes(b"something else")
    data = load("photos", photos)
    assert data.classes == ("cat", "dog")
    assert np.array_equal(data.train.images, expected.train.images)


def test_the_nearest_names_are_suggested(mnist: Path) -> None:
    with pytest.raises(UserError, match="did you mean: digits"):
        load("digit")
    with pytest.raises(UserError, match="did you mean: mnist"):
        load("mnits", mnist.parent)
    with pytest.raises(UserError, match="did you mean: cifar10, cifar100"):
        load("cifar-10", mnist.parent)
