"""What this processor can do at most, by a built-in micro-benchmark: the floor of all times."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from syno._errors import UserError
from syno.native import find_compiler
from syno.threads import check_threads

# Working sets of a thread, in bytes: first-level cache to main memory.
_SETS = (16 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20)
_ROUNDS = 40_000  # some 0.3 ms of multiply-adds
_BYTES = 32 << 20  # read in one repeat, at least
_REPEATS = 15
# The clock of a processor moves, and a repeat may catch a slow moment: so much faster than what
# was measured is still taken for true.
SLACK = 1.08
# So often the peak is measured again before a time counts as impossible.
_TRIES = 5


@dataclass(frozen=True)
class Level:
    """Bytes read a second while a thread works on so many bytes."""

    bytes: int
    bytes_per_s: float


@dataclass(frozen=True)
class Roofline:
    """Float32 FLOP a second (a multiply-add is two) and bandwidths of so many threads together."""

    threads: int
    flops: float
    levels: tuple[Level, ...]

    def bandwidth(self, working_set: int) -> float:
        """Bytes a second from the smallest measured working set that holds so many bytes."""
        share = working_set / self.threads
        for level in self.levels:
            if share <= level.bytes:
                return level.bytes_per_s
        return self.levels[-1].bytes_per_s

    def faster_of(self, other: Roofline) -> Roofline:
        """The best of two measurements of one machine."""
        levels = tuple(
            Level(a.bytes, max(a.bytes_per_s, b.bytes_per_s))
            for a, b in zip(self.levels, other.levels, strict=True)
        )
        return Roofline(self.threads, max(self.flops, other.flops), levels)

    def floor(self, macs: int, moved: int) -> float:
        """Seconds that so many multiply-adds take at least, on so many bytes that move once.

        The roofline model: Williams, Waterman and Patterson, "Roofline: an insightful visual
        performance model for multicore architectures", 2009.
        """
        return max(2 * macs / self.flops, moved / self.bandwidth(moved))


class ImpossibleTimeError(UserError):
    """A time that the processor cannot reach: the kernel, or the clock, is wrong."""


def checked_time(name: str, seconds: float, floor: float) -> float:
    """`seconds`, unless that is below the floor. ImpossibleTimeError then."""
    if seconds * SLACK < floor:
        raise ImpossibleTimeError(
            f"{name}: {seconds * 1e3:.4f} ms is less than this machine can do\n"
            f"  expected: at least {floor * 1e3:.4f} ms, by its measured peak and bandwidth\n"
            "  hint: `syno doctor --roofline` measures again; the figure is not kept"
        )
    return seconds


def reachable(roofline: Roofline, seconds: float, macs: int, moved: int) -> Roofline:
    """The roofline, measured again where `seconds` is below its floor, some times at most.

    Something else may have used the machine while it was measured.
    """
    for _ in range(_TRIES):
        if seconds * SLACK >= roofline.floor(macs, moved):
            break
        roofline = roofline.faster_of(measure_roofline.__wrapped__(roofline.threads))
    return roofline


@functools.cache
def measure_roofline(threads: int = 1) -> Roofline:
    """Measures peak and bandwidths, in a second or two. UserError without a compiler."""
    check_threads(threads)
    compiler = find_compiler()
    if not compiler.threads:
        raise UserError(f"{compiler.path} builds no OpenMP programs\n  hint: set CXX to a g++")
    library = compiler.library((files(__package__) / "roofline.cpp").read_text(encoding="utf-8"))
    peak, read = library.syno_peak_flops, library.syno_read_bytes
    peak.argtypes, peak.restype = [ctypes.c_int, ctypes.c_long, ctypes.c_int], ctypes.c_double
    read.argtypes = [
        ctypes.POINTER(ctypes.c_float),
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_long,
        ctypes.c_int,
    ]
    read.restype = ctypes.c_double
    memory = np.zeros(_SETS[-1] // 4 * threads, np.float32)
    pointer = memory.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    levels = []
    for size in _SETS:
        passes = max(1, _BYTES // size)
        levels.append(Level(size, read(pointer, size // 4, threads, passes, _REPEATS)))
    return Roofline(threads, peak(threads, _ROUNDS, 4 * _REPEATS), tuple(levels))
