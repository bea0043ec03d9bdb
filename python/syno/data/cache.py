"""Decoded data sets as array files in the user's cache folder.

    <cache>/data/<name>-<form>-<key>/          renamed into place when complete
        train_images.npy  train_labels.npy  test_images.npy  test_labels.npy  meta.json
        (a text: train_tokens.npy  held_tokens.npy  test_tokens.npy  meta.json)
    <cache>/data/<name>-<form>-<key>.lock      held (flock) while one process builds
    <cache>/data/<name>-<form>-<key>.tmp-*     left by a killed process; the next builder removes it

A cache is never the only copy: it may be deleted at any time, and one whose bytes do not match the
checksums in meta.json is built again. That check also covers a power cut, so nothing is synced.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import math
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import numpy as np

from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno.runs.cache_folder import cache_folder
from syno.runs.files import why_not_written
from syno.runs.private_files import (
    check_folder,
    check_open_file,
    make_private_folder,
    private_opener,
    read_private,
)

FORMAT = 1
# The header of a .npy file, padded so that the count can be written when it is known.
_HEADER_BYTES = 128
_log = logging.getLogger("syno.data")


class Damaged(Exception):
    """The cache cannot be used as it is; the text says why."""


class ArrayWriter:
    """Writes one .npy file block by block, with its checksum.

    Plain writes, not a memory map: on a full disk a write fails with an error, while storing
    through a map kills the process with SIGBUS.
    """

    def __init__(self, path: Path, like: np.ndarray) -> None:
        """like: an array (maybe of no rows) of the type and row shape of all blocks."""
        self._file = open(path, "wb", opener=private_opener)  # noqa: SIM115 - closed by close()
        self._file.write(b" " * _HEADER_BYTES)
        self.type, self.row = like.dtype, like.shape[1:]
        self.count = 0
        self.crc = 0

    def add(self, block: np.ndarray) -> None:
        """Appends rows."""
        assert block.dtype == self.type and block.shape[1:] == self.row
        data = np.ascontiguousarray(block).data.cast("B") if block.size else b""
        self.crc = zlib.crc32(data, self.crc)
        self._file.write(data)
        self.count += len(block)

    def close(self) -> None:
        """Writes the header, flushes and closes the file."""
        with self._file as file:
            file.seek(0)
            file.write(_header(self.type.str, (self.count, *self.row)))


def folder_of(name: str, form: str, key: str) -> Path:
    """Where the cache of data set `name` in this form (a size, a tokenizer) with this key lies."""
    kept = "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(name).name)
    return cache_folder() / "data" / f"{kept[:40] or 'data'}-{form}-{key[:16]}"


# What a cache says of its arrays, as its builder wrote it: it is read where the seal is right.
Meta: TypeAlias = dict[str, Any]


class ArrayEntry(TypedDict):
    """An array in the description of a cache."""

    crc32: int
    type: str
    shape: list[int]


def cached(
    folder: Path, names: Sequence[str], build: Callable[[Path], None]
) -> tuple[Meta, dict[str, np.ndarray]]:
    """What `read` gives; built first where no whole cache is, by one process while others wait.

    build: fills a folder with the arrays `names` and, last, `write_meta`.
    """
    try:
        return read(folder, names)
    except Damaged:
        pass  # read again under the lock, where the reason is reported
    with locked(folder):
        try:
            return read(folder, names)
        except Damaged as reason:
            _report_damage(folder, reason)
        with building(folder) as made:
            build(made)
        return read(folder, names)


def read(folder: Path, names: Sequence[str]) -> tuple[Meta, dict[str, np.ndarray]]:
    """The description and the memory-mapped arrays in `folder`.

    Raises Damaged with the reason; UserError where somebody else could have written them.
    """
    try:
        check_folder(folder)
        text = read_private(folder / "meta.json").decode("utf-8")
    except FileNotFoundError as error:
        raise Damaged("no meta.json") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Damaged(f"meta.json is unreadable: {error}") from error
    try:
        meta = parsed_json(text)
        seal = meta.pop("seal")
        if seal != _seal(meta):
            raise Damaged("meta.json was altered")
        if meta["format"] != FORMAT:
            raise Damaged(f"format {meta['format']}, not {FORMAT}")
        return meta, {name: _map(folder / f"{name}.npy", meta["arrays"][name]) for name in names}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(f"meta.json is damaged: {error}") from error


def write_meta(folder: Path, meta: Mapping[str, object], writers: dict[str, ArrayWriter]) -> None:
    """Seals a finished cache; written last."""
    arrays = {
        name: {"crc32": writer.crc, "type": writer.type.str, "shape": [writer.count, *writer.row]}
        for name, writer in writers.items()
    }
    meta = {"format": FORMAT, **meta, "arrays": arrays}
    with open(folder / "meta.json", "w", opener=private_opener, encoding="utf-8") as file:
        file.write(json.dumps({**meta, "seal": _seal(meta)}, indent=1))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the lock of the cache `folder`; the kernel frees it when the process dies."""
    with disk_errors(folder):
        make_private_folder(folder.parent)
        beside = folder.with_name(folder.name + ".lock")
        lock = open(beside, "w", opener=private_opener)  # noqa: SIM115
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """A new empty folder that takes the place of `folder` on success and vanishes on failure.

    The caller holds the lock, so whatever lies beside under a temporary name is of the dead.
    """
    with disk_errors(folder):
        for stale in folder.parent.glob(f"{folder.name}.tmp-*"):
            shutil.rmtree(stale, ignore_errors=True)
        made = Path(tempfile.mkdtemp(prefix=f"{folder.name}.tmp-", dir=folder.parent))
    try:
        with disk_errors(folder):
            yield made
            if folder.exists():
                os.rename(folder, folder.with_name(f"{folder.name}.tmp-old-{os.getpid()}"))
            os.rename(made, folder)
    finally:
        for left in folder.parent.glob(f"{folder.name}.tmp-*"):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turns a failure to write into a UserError that names the cache folder."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write the data cache '{folder.parent}': {why_not_written(error)}\n"
            "  set SYNO_CACHE to a folder with room, or pass cache=False to keep the data in memory"
        ) from error


def _report_damage(folder: Path, reason: Damaged) -> None:
    """Says that a cache is built again; a cache that was never there is no news."""
    if folder.exists():
        _log.warning("data cache '%s' is damaged (%s); building it again", folder, reason)


def _map(path: Path, entry: ArrayEntry) -> np.ndarray:
    kind, shape = np.dtype(entry["type"]), tuple(entry["shape"])
    size = kind.itemsize * math.prod(shape)
    try:
        with open(path, "rb") as file:
            # Not numpy's own reading of it, which evaluates what stands there.
            header = file.read(_HEADER_BYTES)
            length = os.fstat(file.fileno()).st_size
            check_open_file(path, file.fileno())
        if header != _header(entry["type"], shape) or length != _HEADER_BYTES + size:
            raise Damaged(f"{path.name} is truncated, or its head was altered")
        array = (
            np.memmap(path, kind, "r", offset=_HEADER_BYTES, shape=shape)
            if size
            else np.empty(shape, kind)
        )
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read: {error.strerror}") from error
    if zlib.crc32(array.data.cast("B") if array.size else b"") != entry["crc32"]:
        raise Damaged(f"{path.name} does not match its checksum")
    return array


def _header(kind: str, shape: tuple[int, ...]) -> bytes:
    """The head of an array file, version 1.0 of the .npy format."""
    text = repr({"descr": kind, "fortran_order": False, "shape": shape})
    text = text.ljust(_HEADER_BYTES - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1")


def _seal(meta: Mapping[str, object]) -> str:
    text = json.dumps(meta, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
