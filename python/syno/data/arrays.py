"""Data sets that come as arrays: IDX files (MNIST and its like), and CIFAR as its authors pack it.

IDX (http://yann.lecun.com/exdb/mnist): two zero bytes, the type (8: uint8), the number of
dimensions, each dimension as a big-endian uint32, the values. Files are told by their names, maybe
under `raw/` and compressed with gzip:

    train-images-idx3-ubyte  train-labels-idx1-ubyte  t10k-images-idx3-ubyte  t10k-labels-idx1-ubyte

CIFAR (https://www.cs.toronto.edu/~kriz/cifar.html): the binary version, rows of one label byte (two
in CIFAR-100: coarse, fine) and 3 x 32 x 32 pixels, and the Python version, pickled dictionaries.
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import re
import struct
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from syno._util.errors import UserError
from syno._util.packed import DAMAGED
from syno.data.decode import fit, planes
from syno.data.layout import own_split
from syno.data.source import MOST_FILE, FileSource

_IDX = re.compile(r"(images|labels)[-.]idx\d[-.]ubyte(\.gz)?$")
_CIFAR = re.compile(
    r"(data_batch_\d|test_batch)(\.bin)?$|(^|/)(train|test)\.bin$|cifar-100-python/(train|test|meta)$"
    r"|batches\.meta(\.txt)?$|fine_label_names\.txt$"
)
_PIXELS = 3 * 32 * 32
# Bytes of the longest head of an IDX file.
_MOST_HEAD = 20


@dataclass(frozen=True)
class Arrays:
    """Images uint8 [N, C, H, W] and labels int64 [N] of both splits; labels are positions in
    `classes`."""

    classes: tuple[str, ...]
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def is_array(path: str) -> bool:
    """True for a file that is named as one of these."""
    return _IDX.search(path) is not None or _CIFAR.search(path) is not None


def read_arrays(source: FileSource) -> Arrays | None:
    """The data set that the files of `source` make up; None where they are none of these.

    Raises UserError, naming the file, for one that is damaged or does not fit the others.
    """
    if any(_IDX.search(path) for path in source.files):
        return _read_idx(source)
    if any(re.search(r"(data_batch_1|train)(\.bin)?$", path) for path in source.files):
        return _read_cifar(source)
    return None


def converted(images: np.ndarray, size: int | None, channels: int | None, where: str) -> np.ndarray:
    """uint8 [n, C, H, W] at another size or with other channels, as `decode` makes them."""
    present = images.shape[1]
    square = images.shape[2] == images.shape[3]
    if square and size in (None, images.shape[2]):
        if channels in (None, present):
            return images
        if present == 1:
            return np.repeat(images, channels, axis=1)
    wanted = channels or present
    made = []
    for image in images:
        picture = Image.fromarray(image[0] if present == 1 else np.moveaxis(image, 0, 2))
        made.append(
            planes(fit(picture.convert("L" if wanted == 1 else picture.mode), size, where), wanted)
        )
    return np.stack(made)


def parse_idx(data: bytes, where: str) -> np.ndarray:
    """The uint8 array of an IDX file. Raises UserError, naming `where`."""
    head, shape = _idx_head(data, where)
    expected = math.prod(shape)
    if len(data) - head != expected:
        raise UserError(
            f"{where} is truncated or damaged\n  expected: {expected:,} bytes behind its head of "
            f"shape {list(shape)}      got: {max(len(data) - head, 0):,}"
        )
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


def _idx_head(data: bytes, where: str) -> tuple[int, tuple[int, ...]]:
    """The length of the head of an IDX file and the shape in it; () for a head that is cut off."""
    if len(data) < 4 or data[:3] != b"\0\0\x08" or not 1 <= data[3] <= 4:
        raise UserError(
            f"{where} is not an IDX file of bytes\n  expected: a head of 00 00 08 and the "
            "number of "
            f"dimensions      got: {data[:4].hex(' ') or 'nothing'}"
        )
    head = 4 + 4 * data[3]
    return head, struct.unpack(f">{data[3]}I", data[4:head]) if len(data) >= head else ()


def _read_idx(source: FileSource) -> Arrays:
    found: dict[tuple[str, str], str] = {}
    for path in source.files:
        if match := _IDX.search(path):
            name = PurePosixPath(path).name
            part = "test" if re.search(r"t10k|test", name) else "train"
            previous = found.setdefault((part, match[1]), path)
            if previous != path and previous.removesuffix(".gz") != path.removesuffix(".gz"):
                raise UserError(
                    f"{source.where} holds several data sets of IDX files: '{previous}' and "
                    f"'{path}'\n  expected: a folder with one pair to train and one to test"
                )
    parts = {}
    for part in ("train", "test"):
        kinds = [kind for kind in ("images", "labels") if (part, kind) in found]
        if kinds == ["images", "labels"]:
            parts[part] = _idx_pair(source, found[part, "images"], found[part, "labels"])
        elif kinds or part == "train":
            missing = "labels" if kinds == ["images"] else "images"
            raise UserError(
                f"{source.where} has no {missing} of the {part} part among its IDX files\n"
                f"  expected: a name such as {'t10k' if part == 'test' else part}-{missing}-idx"
                f"{3 if missing == 'images' else 1}-ubyte(.gz)"
            )
    return _arrays(source, None, parts)


def _idx_pair(source: FileSource, images: str, labels: str) -> tuple[np.ndarray, np.ndarray]:
    pixels = parse_idx(_unpacked(source, images), f"file {source.locate(images)}")
    numbers = parse_idx(_unpacked(source, labels), f"file {source.locate(labels)}")
    if pixels.ndim != 3 or numbers.ndim != 1 or len(pixels) != len(numbers):
        raise UserError(
            f"file {source.locate(labels)} does not go with '{images}'\n  expected: images "
            f"[N, H, W] and labels [N]      got: {list(pixels.shape)} and {list(numbers.shape)}"
        )
    return pixels[:, None], numbers.astype(np.int64)


def _unpacked(source: FileSource, path: str) -> bytes:
    data = source.read(path)
    if not path.endswith(".gz"):
        return data
    where = f"file {source.locate(path)}"
    try:
        with gzip.open(io.BytesIO(data)) as file:
            begin = file.read(_MOST_HEAD)
            head, shape = _idx_head(begin, where)
            length = head + math.prod(shape)
            if length > MOST_FILE:
                raise UserError(
                    f"{where} has {length:,} bytes when it is unpacked\n"
                    f"  expected: at most {MOST_FILE:,}"
                )
            # One byte more, so that what is too long is seen.
            return begin + file.read(max(0, length - len(begin)) + 1)
    except DAMAGED as error:
        raise UserError(f"{where} is damaged: {error}\n  fetch it again") from error


def _read_cifar(source: FileSource) -> Arrays:
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"train": [], "test": []}
    names: tuple[str, ...] | None = None
    for path in sorted(source.files):
        if not _CIFAR.search(path):
            continue
        name = PurePosixPath(path).name
        if name.endswith((".meta", ".txt", "meta")):
            if not name.startswith("coarse"):
                names = _cifar_names(source, path)
        else:
            read = _cifar_binary if name.endswith(".bin") else _cifar_pickle
            parts["test" if "test" in name else "train"].append(read(source, path))
    if not parts["train"]:
        raise UserError(f"{source.where} holds CIFAR's test part alone, nothing to train on")
    joined = {
        part: (np.concatenate([p for p, _ in pairs]), np.concatenate([n for _, n in pairs]))
        for part, pairs in parts.items()
        if pairs
    }
    return _arrays(source, names, joined)


def _cifar_binary(source: FileSource, path: str) -> tuple[np.ndarray, np.ndarray]:
    data = source.read(path)
    fine = PurePosixPath(path).name in ("train.bin", "test.bin")
    row = _PIXELS + (2 if fine else 1)
    if not data or len(data) % row:
        raise UserError(
            f"file {source.locate(path)} is truncated or damaged\n"
            f"  expected: rows of {row:,} bytes      got: {len(data):,} bytes"
        )
    rows = np.frombuffer(data, np.uint8).reshape(-1, row)
    labels = rows[:, row - _PIXELS - 1].astype(np.int64)
    return rows[:, row - _PIXELS :].reshape(-1, 3, 32, 32), labels


def _cifar_pickle(source: FileSource, path: str) -> tuple[np.ndarray, np.ndarray]:
    content = _unpickled(source, path)
    try:
        labels = content[b"fine_labels"] if b"fine_labels" in content else content[b"labels"]
        images = np.asarray(content[b"data"], dtype=np.uint8).reshape(len(labels), 3, 32, 32)
        return images, np.array(labels, dtype=np.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"file {source.locate(path)} is not a CIFAR batch: {error}\n"
            "  expected: a dictionary with 'data' and 'labels' or 'fine_labels'"
        ) from error


def _cifar_names(source: FileSource, path: str) -> tuple[str, ...]:
    if path.endswith(".txt"):
        return tuple(source.read(path).decode("utf-8", "replace").split())
    content = _unpickled(source, path)
    found = content.get(b"fine_label_names", content.get(b"label_names"))
    if not isinstance(found, list):
        raise UserError(f"file {source.locate(path)} has no names of classes")
    return tuple(name.decode() if isinstance(name, bytes) else str(name) for name in found)


class _OnlyArrays(pickle.Unpickler):
    """Lists, dictionaries and arrays: a pickle that calls for anything else is refused."""

    _MODULES = ("numpy.core.multiarray", "numpy._core.multiarray", "numpy")

    def find_class(self, module: str, name: str) -> object:
        if module in self._MODULES and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if module in self._MODULES and name == "_reconstruct":
            return np.ndarray.__reduce__(np.empty(0))[0]
        if (module, name) == ("_codecs", "encode"):
            return _encode
        raise pickle.UnpicklingError(f"it calls for {module}.{name}")


def _encode(text: str, encoding: str) -> bytes:
    """How Python 3 pickles bytes for Python 2."""
    if encoding != "latin1":  # another name would make Python look for a module of that name
        raise pickle.UnpicklingError(f"it calls for the encoding {encoding!r}")
    return text.encode(encoding)


def _unpickled(source: FileSource, path: str) -> dict[bytes, Any]:
    try:
        content = _OnlyArrays(io.BytesIO(source.read(path)), encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises whatever its parts raise
        raise UserError(
            f"file {source.locate(path)} is damaged: {error}\n  fetch it again"
        ) from error
    if not isinstance(content, dict):
        raise UserError(f"file {source.locate(path)} is not a CIFAR batch")
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}


def _arrays(
    source: FileSource,
    names: tuple[str, ...] | None,
    parts: dict[str, tuple[np.ndarray, np.ndarray]],
) -> Arrays:
    images, labels = parts["train"]
    if not len(labels):
        raise UserError(f"{source.where} holds no training image")
    highest = max(int(numbers.max(initial=0)) for _, numbers in parts.values())
    names = names or tuple(str(label) for label in range(highest + 1))
    if (
        highest >= len(names)
        or min(int(numbers.min(initial=0)) for _, numbers in parts.values()) < 0
    ):
        raise UserError(
            f"{source.where} has a label {highest}\n  expected: 0 to {len(names) - 1}, the classes "
            "that it names"
        )
    if "test" in parts:
        test_images, test_labels = parts["test"]
        if test_images.shape[1:] != images.shape[1:]:
            raise UserError(
                f"the parts of {source.where} hold images of different shapes: "
                f"{list(images.shape[1:])} to train, {list(test_images.shape[1:])} to test"
            )
        return Arrays(names, images, labels, test_images, test_labels)
    split = own_split(source.where, names, tuple(str(i) for i in range(len(labels))), labels)
    train, test = (np.array([int(i) for i in part]) for part in (split.train, split.test))
    return Arrays(names, images[train], labels[train], images[test], labels[test])
