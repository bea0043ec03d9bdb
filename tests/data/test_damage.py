"""Files damaged at random: the message of a UserError, or data, but never another exception."""

from __future__ import annotations

import gzip
import lzma
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from syno import UserError
from syno.data import Records, load, load_text
from syno.data.prepare import RecordOptions, prepare

from .mixed import mixed_folder
from .test_formats import idx, pixels, samples, shard

SMALL = RecordOptions(longer_side=40, jpeg_share=0.4, shard_images=7)


def idx_files(root: Path) -> None:
    for part, count in (("train", 30), ("t10k", 10)):
        images = gzip.compress(idx(pixels(count, count, 9, 9)))
        (root / f"{part}-images-idx3-ubyte.gz").write_bytes(images)
        labels = (np.arange(count) % 10).astype(np.uint8)
        (root / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))


def shards(root: Path) -> None:
    for i, part in enumerate(("train-0", "train-1", "val-0")):
        shard(root / f"{part}.tar", samples(6 * i, 6))


def pickles(root: Path) -> None:
    folder = root / "cifar-100-python"
    folder.mkdir()
    for part, seed in (("train", 0), ("test", 1)):
        content = {b"data": pixels(seed, 8, 3072), b"fine_labels": [0, 1] * 4}
        (folder / part).write_bytes(pickle.dumps(content, protocol=2))
    names = {b"fine_label_names": [b"a", b"b"]}
    (folder / "meta").write_bytes(pickle.dumps(names, protocol=2))


def images(root: Path) -> None:
    mixed_folder(root / "images")


def records(root: Path) -> None:
    prepare(str(mixed_folder(root.parent / "source")), None, root, SMALL)


def texts(root: Path) -> None:
    lines = b"\n".join(b"line %d" % i for i in range(99))
    (root / "a.txt.gz").write_bytes(gzip.compress(lines))
    (root / "b.txt.xz").write_bytes(lzma.compress(lines[::-1]))


def as_images(folder: Path) -> None:
    load(str(folder), size=8, cache=False, progress=False)


def as_text(folder: Path) -> None:
    load_text(str(folder), cache=False, progress=False)


def record_by_record(folder: Path) -> None:
    found = Records(folder)
    for number in range(len(found.train)):
        found.train.image(number)


def damaged(data: bytearray, chance: random.Random) -> bytearray:
    """The bytes with one kind of damage, as often near the beginning as anywhere."""
    if not data:
        return data
    place = chance.randrange(len(data) if chance.random() < 0.5 else min(len(data), 600))
    match chance.choice(("flip", "cut", "zeros", "insert", "many", "empty")):
        case "flip":
            data[place] ^= 1 << chance.randrange(8)
        case "cut":
            del data[place:]
        case "zeros":
            data[place : place + 50] = bytes(len(data[place : place + 50]))
        case "insert":
            data[place:place] = chance.randbytes(chance.randrange(1, 40))
        case "many":
            for _ in range(20):
                data[chance.randrange(len(data))] = chance.randrange(256)
        case "empty":
            data.clear()
    return data


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (idx_files, as_images), (shards, as_images), (pickles, as_images), (images, as_images),
        (records, as_images), (records, record_by_record), (texts, as_text),
    ],
)  # fmt: skip
def test_random_damage_is_a_message_or_harmless(
    tmp_path: Path, make: Callable[[Path], None], use: Callable[[Path], None]
) -> None:
    whole, work = tmp_path / "whole", tmp_path / "work"
    whole.mkdir()
    make(whole)
    use(whole)
    refused = 0
    for seed in range(25):
        chance = random.Random(seed)
        shutil.copytree(whole, work)
        files = sorted(p for p in work.rglob("*") if p.is_file() and p.name != ".lock")
        for path in chance.choices(files, k=chance.choice((1, 1, 2))):
            path.write_bytes(damaged(bytearray(path.read_bytes()), chance))
        try:
            use(work)
        except UserError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
        shutil.rmtree(work)
    assert refused >= 5
