"""The roofline of the processor, measured by a micro-benchmark: a lower bound of all times."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from syno._util.errors import UserError
from syno._util.threads import check_threads
from syno.codegen.native import find_compiler

# Working sets of a thread, in bytes: first-level cache to main memory.
_SETS = (16 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20)
_ROUNDS = 40_000  # some 0.3 ms of MACs
_BYTES = 32 << 20  # read in one repeat, at least
# Everything is measured in passes: what disturbs the machine for a moment meets one of them.
_PASSES = 5
_REPEATS = 3  # of a bandwidth in a pass
_PEAK_REPEATS = 12
# So many passes must agree on the peak, up to this share of it; so many more are made for that.
_AGREEING = 3
_AGREEMENT = 0.10
_MORE_PASSES = 100
# A small working set is read at least at this share of the bandwidth of a larger one.
_LEAST_SHARE = 0.5
# The clock of a processor moves, and a repeat may catch a slow moment: so much faster than what
# was measured is still taken for true.
SLACK = 1.08
# So often the peak is measured again before a time counts as impossible.
_TRIES = 5


@dataclass(frozen=True)
class Level:
    """The read bandwidth for a working set of a given size per thread."""

    bytes: int
    bytes_per_s: float


@dataclass(frozen=True)
class Roofline:
    """Peak float32 FLOP per second (a MAC is two) and bandwidths of a number of threads."""

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

    def most_bandwidth(self, working_set: int) -> float:
        """Bytes a second that so many bytes are read with at most, whatever part a cache holds.

        It is that of the largest measured working set that is not larger.
        """
        share = working_set / self.threads
        found = self.levels[0].bytes_per_s
        for level in self.levels:
            if level.bytes <= share:
                found = level.bytes_per_s
        return found

    def faster_of(self, other: Roofline) -> Roofline:
        """The best of two measurements of one machine."""
        levels = tuple(
            Level(a.bytes, max(a.bytes_per_s, b.bytes_per_s))
            for a, b in zip(self.levels, other.levels, strict=True)
        )
        return Roofline(self.threads, max(self.flops, other.flops), levels)

    def floor(self, macs: int, moved: int) -> float:
        """Return the minimum time in seconds for some MACs on some bytes that are moved once.

        The roofline model: Williams, Waterman and Patterson, "Roofline: an insightful visual
        performance model for multicore architectures", 2009.
        """
        return max(2 * macs / self.flops, moved / self.bandwidth(moved))

    def least_time(self, macs: int, moved: int) -> float:
        """Return the time in seconds below which a time of Syno's code is wrong.

        The code computes neighbouring rows of a convolution in pairs, with four products for six
        MACs (Winograd's F(2, 3): Lavin and Gray, "Fast algorithms for convolutional neural
        networks", 2015).
        """
        return max(2 * (macs * 2 // 3) / self.flops, moved / self.most_bandwidth(moved))


class UnstableRooflineError(UserError):
    """Passes that disagree on what the processor can do: something else uses it."""


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
    """The roofline, measured again where `seconds` is below its `least_time`, some times at most.

    Something else may have used the machine while it was measured.
    """
    for _ in range(_TRIES):
        if seconds * SLACK >= roofline.least_time(macs, moved):
            break
        roofline = roofline.faster_of(measure_roofline.__wrapped__(roofline.threads))
    return roofline


def touched_memory(count: int) -> np.ndarray:
    """So many floats in memory that the system has really given.

    Pages that nothing was written to are all one page of zeros, which lies in the cache.
    """
    return np.ones(count, np.float32)


def stable(
    what: str, found: Sequence[float], measure: Callable[[], float], least: float, agreeing: int
) -> float:
    """The best of the passes, with more of them until they agree. UnstableRooflineError.

    what: in words and with its unit, a billion of it a second; found: what the passes so far gave;
    least: what another measurement shows to be possible; agreeing: so many passes come near the
    best one.
    """
    passes = list(found)
    while True:
        best = sorted(passes, reverse=True)
        enough = best[agreeing - 1 :] and best[agreeing - 1] >= (1 - _AGREEMENT) * best[0]
        if enough and best[0] >= least:
            return best[0]
        if len(passes) >= len(found) + _MORE_PASSES:
            shown = ", ".join(f"{each / 1e9:.0f}" for each in best[:4])
            raise UnstableRooflineError(
                f"{what} of this processor cannot be measured: the best of {len(passes)} passes "
                f"gave {shown}\n"
                f"  expected: {agreeing} of them within {_AGREEMENT:.0%} of the best one, and "
                f"that at least {least / 1e9:.0f}, as another measurement shows\n"
                "  what to do: end what else uses the processor, or ask for fewer threads"
            )
        passes.append(measure())


def _memory_of_machine() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@functools.cache
def measure_roofline(threads: int = 1) -> Roofline:
    """Measure the peak and the bandwidths, in one or two seconds.

    Raises:
        UserError: there is no compiler.
        UnstableRooflineError: the machine is too busy.
    """
    check_threads(threads)
    most = _memory_of_machine() // 2 // _SETS[-1]
    if threads > most:
        raise UserError(
            f"{threads} threads are too many to measure the bandwidth of this machine\n"
            f"  expected: at most {most}, which read {_SETS[-1] >> 20} MiB each      got: {threads}"
        )
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
    memory = touched_memory(_SETS[-1] // 4 * threads)
    pointer = memory.ctypes.data_as(ctypes.POINTER(ctypes.c_float))

    def flops() -> float:
        return float(peak(threads, _ROUNDS, _PEAK_REPEATS))

    def bandwidth(size: int) -> float:
        return float(read(pointer, size // 4, threads, max(1, _BYTES // size), _REPEATS))

    passes = [(flops(), [bandwidth(size) for size in _SETS]) for _ in range(_PASSES)]
    levels: list[Level] = []
    for place in reversed(range(len(_SETS))):
        size, least = _SETS[place], _LEAST_SHARE * (levels[0].bytes_per_s if levels else 0)
        found = [bytes_per_s[place] for _, bytes_per_s in passes]
        what = f"the bandwidth (GB/s) of {size >> 10} KiB with {threads} threads"
        again = functools.partial(bandwidth, size)
        levels.insert(0, Level(size, stable(what, found, again, least, 1)))
    # Reading adds every float that it loads: so many FLOP a second were really done.
    least = max(level.bytes_per_s for level in levels) / 4
    found = [flop_per_s for flop_per_s, _ in passes]
    best = stable(f"the peak (GFLOP/s) with {threads} threads", found, flops, least, _AGREEING)
    return Roofline(threads, best, tuple(levels))
