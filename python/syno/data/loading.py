"""`load`: a data set by name, from the cache when it holds it, else decoded and cached."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from syno._util import checks
from syno._util.arguments import path
from syno._util.errors import UserError
from syno.data import cache as store
from syno.data.arrays import Arrays, converted, is_array, read_arrays
from syno.data.dataset import DataSet, Split, statistics
from syno.data.decode import ColourFound, Unreadable, decode_all, is_grey
from syno.data.digits import load_digits
from syno.data.documents import is_text
from syno.data.layout import Layout, arrange, is_image
from syno.data.progress import bar
from syno.data.records import RecordSource, is_records
from syno.data.shards import ShardSource, arrange_labelled, is_beside
from syno.data.source import ARCHIVES, FileSource, FolderSource, find_path, source_at

# Names that need no explanation; every other name is a folder or archive of images.
KNOWN = ("digits", "cifar10", "cifar100")
_LARGEST = 4096
_ROWS = 4096
_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclass(frozen=True)
class _Request:
    """What is to be decoded, and how."""

    name: str
    source: FileSource
    size: int | None
    channels: int | None
    skip_damaged: bool
    progress: bool

    def key(self) -> str:
        """32 hex: names the content and how it is decoded."""
        parts: tuple[object, ...] = (
            store.FORMAT,
            self.source.fingerprint(),
            self.size,
            self.channels,
        )
        parts += ("skip",) if self.skip_damaged else ()
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def load(
    name: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    *,
    size: int | None = None,
    channels: int | None = None,
    skip_damaged: bool = False,
    cache: bool = True,
    progress: bool = True,
) -> DataSet:
    """Loads a data set as uint8 arrays [N, C, H, W].

    name: `digits` (embedded), `cifar10`, `cifar100`, the name of a folder or archive in `data_dir`,
        or a path to one. It holds images in class folders (layout.py), images with their labels
        beside them, also in .tar shards (shards.py), IDX files or CIFAR's own files (arrays.py).
    data_dir: the folder that holds it (default: the environment's SYNO_DATA).
    size: height and width in pixels to scale to; None keeps the images as they are.
    channels: 1 (grey) or 3 (RGB); None takes 1 when every image is grey, else 3.
    skip_damaged: leave files out that are no images, and count them in `skipped`.
    cache: keep the decoded images in the user's cache folder, memory-mapped; False: in memory.
    progress: draw progress bars while reading and decoding, on a terminal or in a notebook.

    Raises UserError for a missing folder, another layout, an empty class, files that are no images
    (named and counted), images of different sizes without `size`, and a cache that cannot be
    written.
    """
    if size is not None and not checks.is_whole(size, 1, _LARGEST):
        raise UserError(
            f"cannot scale images of '{name}' to size {size}\n"
            f"  expected: a whole number of pixels from 1 to {_LARGEST}"
        )
    name = name if isinstance(name, str) else str(path("'name'", name))
    if channels is not None and not (checks.is_whole(channels) and channels in (1, 3)):
        raise UserError(
            f"cannot load images of '{name}' with {channels} channels\n"
            "  expected: 1 (grey) or 3 (RGB)"
        )
    if name == "digits":
        return load_digits(size, channels)
    with closing(source_of(name, data_dir)) as source:
        request = _Request(name, source, size, channels, skip_damaged, progress)
        return _cached(request) if cache else _in_memory(request)


def source_of(name: str, data_dir: str | os.PathLike[str] | None) -> FileSource:
    """The files of a data set that is not embedded, from its shards or records where it is made of
    these."""
    path = find_path(name, data_dir, ARCHIVES, KNOWN)
    if path.is_file() and is_text(path.name):
        raise UserError(
            f"data set '{name}': '{path}' is text, not images\n"
            "  syno.data.load_text reads it; `syno data show` says what is in it"
        )
    if is_records(path):
        return RecordSource(path)
    source = source_at(path, name, _belongs)
    if isinstance(source, FolderSource):
        source.scan(lambda _: None)
        endings = {file.endswith(".tar") for file in source.files if not is_array(file)}
        images = any(is_image(file) for file in source.files)
        if True in endings and not images:
            return ShardSource(source)
    return source


def _belongs(path: str) -> bool:
    return is_image(path) or is_beside(path) or is_array(path)


def _cached(request: _Request) -> DataSet:
    with bar(f"looking for {request.name} in the cache", None, request.progress):
        key = request.key()  # reads the whole archive, if it is one

    def build(made: Path) -> None:
        content = content_of(request.source, request.name, request.progress)
        try:
            _fill(made, request, content, key)
        except ColourFound:
            _fill(made, replace(request, channels=3), content, key)

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
        skipped=meta["skipped"],
    )


def _in_memory(request: _Request) -> DataSet:
    content = content_of(request.source, request.name, request.progress)
    key = request.key()
    try:
        arrays, skipped = _collect(request, content)
    except ColourFound:
        arrays, skipped = _collect(replace(request, channels=3), content)
    mean, std = statistics(arrays["train_images"])
    return DataSet(
        name=request.name,
        train=Split(arrays["train_images"], arrays["train_labels"]),
        test=Split(arrays["test_images"], arrays["test_labels"]),
        classes=content.classes,
        mean=mean,
        std=std,
        fingerprint=key,
        skipped=skipped,
    )


def content_of(source: FileSource, name: str, progress: bool) -> Layout | Arrays:
    """What a source holds: images with classes and splits, or arrays. Raises as `load`."""
    with bar(f"reading {name}", None, progress) as advance:
        source.scan(advance)
    if isinstance(source, RecordSource):
        return source.layout()
    if not any(map(is_image, source.files)) and (arrays := read_arrays(source)):
        return arrays
    return arrange_labelled(source) or arrange(source.where, source.files, source.folders)


def _decode(
    request: _Request, content: Layout | Arrays, sink: Callable[[str, np.ndarray], None]
) -> int:
    """Feeds blocks to sink("train_images" | "test_images", uint8 [n, C, H, W]) in order, and the
    labels that go with them. Returns how many files were left out."""
    if isinstance(content, Arrays):
        _convert(request, content, sink)
        return 0
    source, channels = request.source, request.channels
    paths = content.train + content.test
    labels = np.concatenate([content.train_labels, content.test_labels])
    # A set is grey when all its images are; the first one is a guess that the decoder checks.
    guess = channels or (1 if _begins_grey(source, paths) else 3)
    split = len(content.train)
    damaged: list[Unreadable] = []
    kept = []
    with bar(f"decoding {request.name}", len(paths), request.progress) as advance:
        for numbers, block in decode_all(
            source, paths, request.size, guess, channels is None, damaged, advance
        ):
            cut = int(np.searchsorted(numbers, split))
            if cut:
                sink("train_images", block[:cut])
            if cut < len(block):
                sink("test_images", block[cut:])
            kept.append(numbers)
    if damaged and not request.skip_damaged:
        raise _damaged_files(request, damaged, len(paths))
    whole = np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)
    for part, chosen in (("train", whole[whole < split]), ("test", whole[whole >= split])):
        counts = np.bincount(labels[chosen], minlength=len(content.classes))
        if not len(chosen) or (part == "train" and counts.min() == 0):
            lost = f" of class '{content.classes[int(counts.argmin())]}'" if len(chosen) else ""
            raise UserError(
                f"no {part} image{lost} in {source.where} can be decoded\n"
                f"  {len(damaged):,} of {len(paths):,} files are damaged or are not images"
            )
        sink(f"{part}_labels", labels[chosen])
    return len(damaged)


def _begins_grey(source: FileSource, paths: tuple[str, ...]) -> bool:
    """Whether the first image that can be read has one channel."""
    for each in paths:
        try:
            return is_grey(source.read(each), source.locate(each))
        except Unreadable:
            continue
    return False


def _damaged_files(request: _Request, damaged: list[Unreadable], total: int) -> UserError:
    """Names the first file with its reason, and counts the others."""
    others = [str(error).partition("image ")[2].partition(": ")[0] for error in damaged[1:5]]
    more = f"{len(damaged):,} of {total:,} files are damaged or are not images"
    if others:
        more += f": also {', '.join(others)}{' ...' if len(damaged) > 5 else ''}"
    return UserError(
        f"{damaged[0]}\n  {more}\n  what to do: replace or remove them, or leave them out with "
        "skip_damaged=True (`syno data prepare --skip-damaged` makes a copy without them)"
    )


def _convert(request: _Request, content: Arrays, sink: Callable[[str, np.ndarray], None]) -> None:
    where = f"of {request.source.where}"
    for part, images, labels in (
        ("train", content.train_images, content.train_labels),
        ("test", content.test_images, content.test_labels),
    ):
        with bar(f"converting {request.name}", len(images), request.progress) as advance:
            for first in range(0, len(images), _ROWS):
                block = images[first : first + _ROWS]
                sink(f"{part}_images", converted(block, request.size, request.channels, where))
                advance(len(block))
        sink(f"{part}_labels", labels)


def _collect(request: _Request, content: Layout | Arrays) -> tuple[dict[str, np.ndarray], int]:
    blocks: dict[str, list[np.ndarray]] = {name: [] for name in _ARRAYS}
    skipped = _decode(request, content, lambda name, block: blocks[name].append(block))
    return {name: np.concatenate(parts) for name, parts in blocks.items()}, skipped


def _fill(folder: Path, request: _Request, content: Layout | Arrays, key: str) -> None:
    """Writes the array files and, last, meta.json."""
    writers: dict[str, store.ArrayWriter] = {}
    with ExitStack() as stack:

        def add(name: str, block: np.ndarray) -> None:
            if name not in writers:
                writer = store.ArrayWriter(folder / f"{name}.npy", block)
                writers[name] = stack.enter_context(closing(writer))
            writers[name].add(block)

        skipped = _decode(request, content, add)
    mean, std = statistics(np.load(folder / "train_images.npy", mmap_mode="r"))
    meta = {
        "name": request.name,
        "classes": list(content.classes),
        "mean": list(mean),
        "std": list(std),
        "fingerprint": key,
        "skipped": skipped,
    }
    store.write_meta(folder, meta, writers)
