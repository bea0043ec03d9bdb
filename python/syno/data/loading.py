"""`load`: a data set by name, from the cache when it holds it, else decoded and cached."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from syno._errors import UserError
from syno.data import cache as store
from syno.data.dataset import DataSet, Split, statistics
from syno.data.decode import ColourFound, decode_all, is_grey
from syno.data.digits import load_digits
from syno.data.layout import Layout, arrange
from syno.data.progress import bar
from syno.data.source import Source, find_source

# Names that need no explanation; every other name is a folder or archive of images.
KNOWN = ("digits", "cifar10", "cifar100")
_LARGEST = 4096
_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclass(frozen=True)
class _Request:
    """What is to be decoded, and how."""

    name: str
    source: Source
    size: int | None
    channels: int | None
    progress: bool

    def key(self) -> str:
        """32 hex: names the content and how it is decoded."""
        parts = (store.FORMAT, self.source.fingerprint(), self.size, self.channels)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def load(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    size: int | None = None,
    channels: int | None = None,
    cache: bool = True,
    progress: bool = True,
) -> DataSet:
    """Loads a data set as uint8 arrays [N, C, H, W].

    name: `digits` (embedded), `cifar10`, `cifar100`, the name of an image folder or archive in
        `data_dir`, or a path to one. See layout.py for the accepted folders.
    data_dir: the folder that holds it (default: the environment's SYNO_DATA).
    size: height and width in pixels to scale to; None keeps the images as they are.
    channels: 1 (grey) or 3 (RGB); None takes 1 when every image is grey, else 3.
    cache: keep the decoded images in the user's cache folder, memory-mapped; False: in memory.
    progress: draw a progress bar while decoding, if standard error is a terminal.

    Raises UserError for a missing folder, another layout, an empty class, an image that does not
    decode (named), images of different sizes without `size`, and a cache that cannot be written.
    """
    if size is not None and not (isinstance(size, int) and 1 <= size <= _LARGEST):
        raise UserError(
            f"cannot scale images of '{name}' to size {size}\n"
            f"  expected: a whole number of pixels from 1 to {_LARGEST}"
        )
    if channels not in (None, 1, 3):
        raise UserError(
            f"cannot load images of '{name}' with {channels} channels\n"
            "  expected: 1 (grey) or 3 (RGB)"
        )
    if name == "digits":
        return load_digits(size, channels)
    with closing(find_source(name, data_dir)) as source:
        request = _Request(name, source, size, channels, progress)
        return _cached(request) if cache else _in_memory(request)


def _cached(request: _Request) -> DataSet:
    key = request.key()

    def build(made: Path) -> None:
        layout = _prepare(request)
        try:
            _fill(made, request, layout, key)
        except ColourFound:
            _fill(made, replace(request, channels=3), layout, key)

    folder = store.folder_of(request.name, str(request.size or "full"), key)
    meta, arrays = store.cached(folder, _ARRAYS, build)
    return DataSet(
        name=meta["name"],
        train=Split(arrays["train_images"], arrays["train_labels"]),
        test=Split(arrays["test_images"], arrays["test_labels"]),
        classes=tuple(meta["classes"]),
        mean=tuple(meta["mean"]),
        std=tuple(meta["std"]),
        fingerprint=meta["fingerprint"],
    )


def _in_memory(request: _Request) -> DataSet:
    layout = _prepare(request)
    key = request.key()
    try:
        images = _collect(request, layout)
    except ColourFound:
        images = _collect(replace(request, channels=3), layout)
    mean, std = statistics(images["train_images"])
    return DataSet(
        name=request.name,
        train=Split(images["train_images"], layout.train_labels),
        test=Split(images["test_images"], layout.test_labels),
        classes=layout.classes,
        mean=mean,
        std=std,
        fingerprint=key,
    )


def _prepare(request: _Request) -> Layout:
    source = request.source
    with bar(f"reading {request.name}", None, request.progress) as advance:
        source.scan(advance)
    return arrange(source.where, source.files, source.folders)


def _decode(request: _Request, layout: Layout, sink: Callable[[str, np.ndarray], None]) -> None:
    """Feeds blocks uint8 [n, C, H, W] to sink("train_images" | "test_images", block), in order."""
    source, channels = request.source, request.channels
    paths = layout.train + layout.test
    # A set is grey when all its images are; the first one is a guess that the decoder checks.
    guess = 1 if is_grey(source.read(paths[0]), source.locate(paths[0])) else 3
    split, done = len(layout.train), 0
    with bar(f"decoding {request.name}", len(paths), request.progress) as advance:
        strict = channels is None
        for block in decode_all(source, paths, request.size, channels or guess, strict, advance):
            cut = min(max(split - done, 0), len(block))
            if cut:
                sink("train_images", block[:cut])
            if cut < len(block):
                sink("test_images", block[cut:])
            done += len(block)


def _collect(request: _Request, layout: Layout) -> dict[str, np.ndarray]:
    blocks: dict[str, list[np.ndarray]] = {"train_images": [], "test_images": []}
    _decode(request, layout, lambda split, block: blocks[split].append(block))
    return {split: np.concatenate(parts) for split, parts in blocks.items()}


def _fill(folder: Path, request: _Request, layout: Layout, key: str) -> None:
    """Writes the array files and, last, meta.json."""
    writers: dict[str, store.ArrayWriter] = {}
    with ExitStack() as stack:

        def add(name: str, block: np.ndarray) -> None:
            if name not in writers:
                writer = store.ArrayWriter(folder / f"{name}.npy", block)
                writers[name] = stack.enter_context(closing(writer))
            writers[name].add(block)

        _decode(request, layout, add)
        add("train_labels", layout.train_labels)
        add("test_labels", layout.test_labels)
    mean, std = statistics(np.load(folder / "train_images.npy", mmap_mode="r"))
    meta = {
        "name": request.name,
        "classes": list(layout.classes),
        "mean": list(mean),
        "std": list(std),
        "fingerprint": key,
    }
    store.write_meta(folder, meta, writers)
