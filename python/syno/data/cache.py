"""Decoded data sets as array files in the user's cache folder.

    <cache>/data/<name>-<size>-<key>/          renamed into place when complete
        train_images.npy  train_labels.npy  test_images.npy  test_labels.npy  meta.json
    <cache>/data/<name>-<size>-<key>.lock      held (flock) while one process builds
    <cache>/data/<name>-<size>-<key>.tmp-*     left by a killed process; the next builder removes it

A cache is never the only copy: it may be deleted at any time, and one whose bytes do not match the
checksums in meta.json is built again. That check also covers a power cut, so nothing is synced.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from syno._errors import UserError
from syno.data.dataset import DataSet, Split

FORMAT = 1
_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
_log = logging.getLogger("syno.data")


class Damaged(Exception):
    """The cache cannot be used as it is; the text says why."""


class ArrayWriter:
    """Writes one .npy file block by block, with its checksum.

    Plain writes, not a memory map: on a full disk a write fails with an error, while storing
    through a map kills the process with SIGBUS.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 - closed by close()
        self._count = count
        self._written = 0
        self.crc = 0

    def add(self, block: np.ndarray) -> None:
        """Appends rows; shape and type of the first block hold for all."""
        if not self._written:
            header = {
                "descr": np.lib.format.dtype_to_descr(block.dtype),
                "fortran_order": False,
                "shape": (self._count, *block.shape[1:]),
            }
            np.lib.format.write_array_header_1_0(self._file, header)
        data = np.ascontiguousarray(block).data
        self.crc = zlib.crc32(data, self.crc)
        self._file.write(data)
        self._written += len(block)

    def close(self) -> None:
        """Flushes and closes the file."""
        self._file.close()


def read(folder: Path) -> DataSet:
    """The data set in `folder`, memory-mapped. Raises Damaged with the reason."""
    try:
        text = (folder / "meta.json").read_text()
    except FileNotFoundError as error:
        raise Damaged("no meta.json") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Damaged(f"meta.json is unreadable: {error}") from error
    try:
        meta = json.loads(text)
        seal = meta.pop("seal")
        if seal != _seal(meta):
            raise Damaged("meta.json was altered")
        arrays = {name: _map(folder / f"{name}.npy", meta["arrays"][name]) for name in _ARRAYS}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"meta.json is damaged: {error}") from error
    return DataSet(
        name=meta["name"],
        train=Split(arrays["train_images"], arrays["train_labels"]),
        test=Split(arrays["test_images"], arrays["test_labels"]),
        classes=tuple(meta["classes"]),
        mean=tuple(meta["mean"]),
        std=tuple(meta["std"]),
        fingerprint=meta["fingerprint"],
    )


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    """Seals a finished cache; written last."""
    (folder / "meta.json").write_text(json.dumps({**meta, "seal": _seal(meta)}, indent=1))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the lock of the cache `folder`; the kernel frees it when the process dies."""
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = open(folder.with_name(folder.name + ".lock"), "w")  # noqa: SIM115
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
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else (error.strerror or str(error))
        raise UserError(
            f"cannot write the data cache '{folder.parent}': {what}\n"
            "  set SYNO_CACHE to a folder with room, or pass cache=False to keep images in memory"
        ) from error


def report_damage(folder: Path, reason: Damaged) -> None:
    """Says that a cache is built again; a cache that was never there is no news."""
    if folder.exists():
        _log.warning("data cache '%s' is damaged (%s); decoding the images again", folder, reason)


def _map(path: Path, entry: dict[str, int]) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise Damaged(f"{path.name} is missing or truncated") from error
    if zlib.crc32(array.data) != entry["crc32"]:
        raise Damaged(f"{path.name} does not match its checksum")
    return array


def _seal(meta: dict[str, Any]) -> str:
    text = json.dumps(meta, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
