"""The log beside a SQLite file (`-wal`): which of its frames count, and whether some are lost.

SQLite reads a log up to its first frame with a wrong checksum and says nothing about the rest: a
damaged frame takes all later answers with it, in silence. A killed process, too, leaves an
unfinished frame behind, but only at the end. Two things tell the two apart: what stands behind the
wrong frame, and the index beside the log (`-shm`), which names the last frame that was committed.
A power cut is the exception: it may leave the last, never confirmed transaction half written and
the index lost, which looks like damage.

Format: https://www.sqlite.org/fileformat2.html#walformat and walformat.html.
"""

from __future__ import annotations

import functools
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
_MAGIC = 0x377F0682  # the last bit says that checksums are of big-endian words
_NEAR = 1 << 16  # generations of a log that its old frames may come from

Words = NDArray[np.uint32]
Checksum = tuple[int, int]


class _Checksums:
    """SQLite's checksum of `bytes_` bytes at a time.

    Each pair of words (x, y) takes (a, b) to (a + b + x, a + 2b + x + y), all modulo 2^32. That is
    linear, so the checksum of many words is a product with powers of one matrix.
    """

    def __init__(self, bytes_: int) -> None:
        count = bytes_ // 8
        power = np.eye(2, dtype=np.uint32)
        step = np.array([[1, 1], [1, 2]], dtype=np.uint32)
        first = np.array([[1, 0], [1, 1]], dtype=np.uint32)
        factors = np.empty((count, 2, 2), dtype=np.uint32)
        for index in range(count - 1, -1, -1):
            factors[index] = power @ first
            power = power @ step
        self._factors = factors
        self._power = power

    def of(self, words: Words, before: Checksum) -> Checksum:
        """Continues `before` with these words."""
        pairs = words.reshape(-1, 1, 2)
        after = (self._factors * pairs).sum(axis=(0, 2), dtype=np.uint32)
        after = after + (self._power * np.array(before, dtype=np.uint32)).sum(1, dtype=np.uint32)
        return int(after[0]), int(after[1])


@functools.lru_cache(maxsize=4)
def _checksums(bytes_: int) -> _Checksums:
    return _Checksums(bytes_)


@dataclass(frozen=True)
class Frame:
    """A page as one transaction wrote it; commit: pages of the file, 0 inside a transaction."""

    page: int
    commit: int
    content: bytes


@dataclass(frozen=True)
class Log:
    """A log as it was read: the frames up to the last commit, and what is wrong with it.

    slots: the content of every frame, valid or not, with the page that it names.
    """

    frames: tuple[Frame, ...] = ()
    damage: str = ""
    slots: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class _Index:
    """The header of the `-shm` file: the committed frames, those that are in the file already."""

    salts: bytes
    committed: int
    copied: int


def read_log(path: Path, page_size: int) -> Log:
    """The log of the store at `path`, whose pages have so many bytes."""
    # The index first: a process that is writing adds to the log, and then says so in the index.
    index = _index(_content(path.with_name(path.name + "-shm")))
    content = _content(path.with_name(path.name + "-wal"))
    lost = index is not None and index.committed > index.copied
    if not content:
        return Log(damage="the log beside it (-wal) is missing" if lost else "")
    if len(content) < HEADER_BYTES:
        # A process that was killed while it began the log had committed nothing.
        return Log(damage="the log beside it (-wal) is cut" if lost else "")
    size = FRAME_HEADER_BYTES + page_size
    starts = range(HEADER_BYTES, len(content) - size + 1, size)
    slots = tuple(_frame(content, start, page_size) for start in starts)
    words = ">u4" if content[3] & 1 else "<u4"
    found = _valid(content, page_size, words)
    if found is None and index is not None and not lost:
        return Log(slots=slots)  # all of it is in the file
    if found is None:
        return Log(damage="the header of the log beside it (-wal) is damaged", slots=slots)
    commits = [number for number in range(found) if slots[number].commit]
    committed = commits[-1] + 1 if commits else 0
    frames = slots[:committed]
    salts = content[16:24]
    if index is not None and index.salts == salts:
        damage = "" if committed >= index.committed else _lost(committed)
    elif lost:
        damage = "the log beside it (-wal) is not the one that belongs to it"
    else:
        damage = _lost(committed) if _is_broken(content, page_size, found) else ""
    return Log(frames, damage, slots)


def _lost(frame: int) -> str:
    return f"the log beside it (-wal) is damaged behind frame {frame}"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _frame(content: bytes, start: int, page_size: int) -> Frame:
    page, commit = struct.unpack_from(">II", content, start)
    begin = start + FRAME_HEADER_BYTES
    return Frame(page, commit, content[begin : begin + page_size])


def _valid(content: bytes, page_size: int, words: str) -> int | None:
    """How many frames at the beginning are whole; None when the header is not."""
    magic, _, size = struct.unpack_from(">III", content, 0)
    before = _checksums(24).of(np.frombuffer(content, words, 6), (0, 0))
    if (magic & ~1, size) != (_MAGIC, page_size) or before != struct.unpack_from(
        ">II", content, 24
    ):
        return None
    checksums = _checksums(8 + page_size)
    step, salts, number = FRAME_HEADER_BYTES + page_size, content[16:24], 0
    start = HEADER_BYTES
    while start + step <= len(content):
        covered = content[start : start + 8] + content[start + FRAME_HEADER_BYTES : start + step]
        before = checksums.of(np.frombuffer(covered, words), before)
        if content[start + 8 : start + 16] != salts:
            break
        if before != struct.unpack_from(">II", content, start + 16):
            break
        start, number = start + step, number + 1
    return number


def _is_broken(content: bytes, page_size: int, valid: int) -> bool:
    """Whether the frame behind the valid ones is damaged: not cut short by the end of the file,
    nor left from an earlier generation of the log, whose salts are others."""
    step = FRAME_HEADER_BYTES + page_size
    start = HEADER_BYTES + valid * step
    if start + step > len(content):
        return False
    own = struct.unpack_from(">II", content, 16)
    for at in range(start, len(content) - step + 1, step):
        salts = struct.unpack_from(">II", content, at + 8)
        earlier = 0 < (own[0] - salts[0]) % (1 << 32) < _NEAR and salts[1] != own[1]
        if not earlier:
            return True
    return False


def _index(content: bytes) -> _Index | None:
    """What the index says; None where there is none, or where it is not whole."""
    if len(content) < 136 or content[:48] != content[48:96]:
        return None
    order = "<" if sys.byteorder == "little" else ">"
    words = np.frombuffer(content, f"{order}u4", 10)
    if _checksums(40).of(words, (0, 0)) != struct.unpack_from(f"{order}II", content, 40):
        return None
    committed = struct.unpack_from(f"{order}I", content, 16)[0]
    copied = struct.unpack_from(f"{order}I", content, 96)[0]
    return _Index(content[32:40], committed, copied)
