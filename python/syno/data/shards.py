"""WebDataset-style data: images with their labels in files beside them, in .tar shards or not.

    train-000000.tar:  0001.jpg  0001.cls  0002.png  0002.json ...
    classes.txt        the names of the classes, one a line (optional)

A sample is what has one name up to the first dot. Its label is the whole number (or the name of a
class) in `.cls`, or `label`, `cls` or `class` in `.json`. The part is told by a word in the shard's
name or folder: train, val, test.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

import numpy as np

from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno.data.layout import Layout, is_image, own_split, part_of
from syno.data.source import FileSource, FolderSource, tar_is_whole

CLASSES = "classes.txt"
_KEYS = ("label", "cls", "class")


def is_beside(path: str) -> bool:
    """True for a file that is named as a shard, a label or the list of classes."""
    name = PurePosixPath(path).name
    return not name.startswith(".") and (
        name.endswith((".tar", ".cls", ".json")) or name == CLASSES
    )


class ShardSource(FolderSource):
    """The samples in the .tar shards of a folder; each is read from where it lies."""

    def __init__(self, folder: FolderSource) -> None:
        super().__init__(folder.root, is_beside)
        self.where = folder.where
        self._folder = folder
        self._place: dict[str, tuple[str, int, int]] = {}
        self._open: dict[str, int] = {}

    def fingerprint(self) -> str:
        """Of the shards' names, byte counts and times."""
        return self._folder.fingerprint()

    def scan(self, advance: Callable[[int], None]) -> None:
        """Fills `files` with `<shard>/<member>`; raises UserError for a damaged shard."""
        self._folder.scan(lambda _: None)
        for path in self._folder.files:
            if path.endswith(".tar"):
                self._scan_shard(path, advance)
            elif PurePosixPath(path).name == CLASSES:
                self.files.append(path)
        self.files.sort()

    def read(self, path: str) -> bytes:
        """The file's bytes."""
        if path not in self._place:
            return self._folder.read(path)
        shard, start, length = self._place[path]
        data = os.pread(self._open[shard], length, start)
        if len(data) != length:
            raise UserError(f"shard {self._folder.locate(shard)} became shorter while it was read")
        return data

    def locate(self, path: str) -> str:
        """Names the file in a message."""
        if path not in self._place:
            return self._folder.locate(path)
        shard = self._place[path][0]
        return f"'{path[len(shard) + 1 :]}' in shard {self._folder.locate(shard)}"

    def close(self) -> None:
        """Closes the shards."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open = {}

    def _scan_shard(self, shard: str, advance: Callable[[int], None]) -> None:
        place = self._folder.root / shard
        try:
            self._open[shard] = os.open(place, os.O_RDONLY)
            with tarfile.open(place, "r:") as archive:
                for member in archive:
                    path = f"{shard}/{os.path.normpath(member.name)}"
                    if member.isfile() and (is_image(path) or is_beside(path)):
                        self.files.append(path)
                        self._place[path] = (shard, member.offset_data, member.size)
                        advance(1)
            tar_is_whole(place)
        except (tarfile.TarError, EOFError) as error:
            raise UserError(
                f"shard {self._folder.locate(shard)} is truncated or damaged: {error}\n"
                "  fetch or pack it again; 'tar tf' must list it without an error"
            ) from error
        except OSError as error:
            raise UserError(
                f"cannot read shard {self._folder.locate(shard)}: {error.strerror}"
            ) from error


def arrange_labelled(source: FileSource) -> Layout | None:
    """Splits and labels of images with labels beside them; None where there are no labels.

    Raises UserError for images without a label, labels that cannot be read, and classes of the test
    part that the training part lacks.
    """
    images = {_key(path): path for path in source.files if is_image(path)}
    beside = {
        _key(path): path
        for path in source.files
        if path.endswith((".cls", ".json")) and _key(path) in images
    }
    if not beside or not _labelled(source, beside):
        return None
    lacking = sorted(set(images) - set(beside))
    if lacking:
        raise UserError(
            f"{len(lacking):,} of {len(images):,} images of {source.where} have no label\n"
            f"  expected: a file '{PurePosixPath(lacking[0]).name}.cls' or '.json' beside "
            f"{source.locate(images[lacking[0]])}"
        )
    samples: dict[str, list[tuple[str, int | str]]] = {"train": [], "val": [], "test": []}
    for key in sorted(images):
        label = _label(source, beside[key])
        samples[part_of(os.path.dirname(key))].append((images[key], label))
    held = samples["test"] or samples["val"]
    if not samples["train"]:
        raise UserError(
            f"{source.where} holds no training sample\n  expected: 'train' in the name of a shard"
        )
    names, number = _classes(source, {label for _, label in samples["train"] + held})
    paths, labels = _part(samples["train"], number)
    absent = sorted(set(range(len(names))) - set(labels.tolist()))
    if absent:
        shown = ", ".join(f"'{names[label]}'" for label in absent[:5])
        raise UserError(
            f"class {shown} of {source.where} has no training image\n"
            f"  add images of it, or take it out of the test part and of {CLASSES}"
        )
    if not held:
        return own_split(source.where, names, paths, labels)
    return Layout(names, paths, labels, *_part(held, number))


def _part(
    samples: list[tuple[str, int | str]], number: dict[int | str, int]
) -> tuple[tuple[str, ...], np.ndarray]:
    labels = [number[label] for _, label in samples]
    return tuple(path for path, _ in samples), np.array(labels, dtype=np.int64)


def _classes(
    source: FileSource, labels: set[int | str]
) -> tuple[tuple[str, ...], dict[int | str, int]]:
    """The names of the classes, and the number of each label."""
    listed = [path for path in source.files if PurePosixPath(path).name == CLASSES]
    names: list[str] = []
    if listed:
        lines = source.read(listed[0]).decode("utf-8", "replace").splitlines()
        names = [line.strip() for line in lines if line.strip()]
    whole = [label for label in labels if isinstance(label, int)]
    if whole and len(whole) < len(labels):
        odd = min(str(label) for label in labels if not isinstance(label, int))
        raise UserError(
            f"labels of {source.where} are both numbers and names, such as {whole[0]} and '{odd}'"
        )
    known: Sequence[int | str] = sorted(labels, key=_order)
    if listed:
        known = range(len(names)) if whole else names
    if strange := labels - set(known):
        raise UserError(
            f"label {min(strange, key=_order)!r} of {source.where} is none of the {len(names)} "
            f"classes in {source.locate(listed[0])}"
        )
    return tuple(map(str, names or known)), {label: place for place, label in enumerate(known)}


def _order(label: int | str) -> tuple[int, str]:
    return (label, "") if isinstance(label, int) else (0, label)


def _labelled(source: FileSource, beside: dict[str, str]) -> bool:
    """Whether the files beside are labels: a .json may say other things of an image."""
    if any(path.endswith(".cls") for path in beside.values()):
        return True
    text = source.read(min(beside.values()))
    return any(f'"{key}"'.encode() in text for key in _KEYS)


def _key(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, name.split(".", 1)[0])


def _label(source: FileSource, path: str) -> int | str:
    text = source.read(path).decode("utf-8", "replace").strip()
    value: object = text
    if path.endswith(".json"):
        try:
            value = parsed_json(text)
        except ValueError as error:
            raise UserError(f"label {source.locate(path)} is not JSON: {error}") from error
        if isinstance(value, dict):
            value = next((value[key] for key in _KEYS if key in value), None)
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise UserError(
            f"label {source.locate(path)} cannot be read\n  expected: a whole number or the name "
            f"of a class{', under label, cls or class' if path.endswith('.json') else ''}      "
            f"got: {text[:60]!r}"
        )
    return value
