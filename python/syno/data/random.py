"""Counter-based random numbers that stay the same across NumPy versions.

NumPy promises stable raw bits of its bit generators but not stable methods of ``Generator``, so a
split or a batch order drawn with the latter may change with an upgrade. Here every draw is a fixed
function of Philox bits.
"""

from __future__ import annotations

import math

import numpy as np

_MASK = (1 << 64) - 1
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
# Constants of Philox4x32-10.
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


class Stream:
    """Random numbers of one (seed, stream) pair; pairs are independent of each other."""

    def __init__(self, seed: int, stream: int = 0) -> None:
        key = np.array([seed & _MASK, stream & _MASK], dtype=np.uint64)
        self._bits = np.random.Philox(key=key)

    def permutation(self, count: int) -> np.ndarray:
        """A random order of 0 .. count - 1, int64 [count]."""
        return np.argsort(self._bits.random_raw(count), kind="stable")

    def below(self, bound: int, count: int) -> np.ndarray:
        """Uniform integers 0 .. bound - 1, int64 [count]; the bias is below bound / 2^64."""
        return (self._bits.random_raw(count) % np.uint64(bound)).astype(np.int64)


def draws(seed: int, stream: int, index: np.ndarray, count: int) -> np.ndarray:
    """`count` random 32-bit numbers for each of the counters `index`: uint32 [n, count].

    A fixed function of (seed, stream, counter, column) alone, so it is the same in whatever
    batches, order or worker a counter comes up. seed: 64 bits; stream: 32 bits; index: int64 [n],
    not negative. Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
    (SC 2011), on the counter (index low, index high, stream, block of four columns).
    """
    index = np.asarray(index, dtype=np.uint64)
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    low, high, blocks = np.broadcast_arrays(index[:, None] & _LOW, index[:, None] >> _HALF, blocks)
    words = [low, high, np.full_like(low, stream & 0xFFFFFFFF), blocks]
    words = _philox(words, [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF])
    drawn = np.stack(words, axis=2).reshape(len(index), -1)
    return drawn[:, :count].astype(np.uint32)


def _philox(words: list[np.ndarray], keys: list[int]) -> list[np.ndarray]:
    """Ten rounds of Philox4x32: four words of 32 bits (in uint64) under two keys of 32 bits."""
    for _ in range(10):
        left, right = _MULTIPLIERS[0] * words[0], _MULTIPLIERS[1] * words[2]
        words = [
            (right >> _HALF) ^ words[1] ^ np.uint64(keys[0]),
            right & _LOW,
            (left >> _HALF) ^ words[3] ^ np.uint64(keys[1]),
            left & _LOW,
        ]
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _KEY_STEPS, strict=True)]
    return words


def scaled(drawn: np.ndarray, bound: int | np.ndarray) -> np.ndarray:
    """Uniform integers 0 .. bound - 1 from 32-bit draws: int64 of the same shape; the bias is below
    bound / 2^32."""
    return (drawn.astype(np.uint64) * np.asarray(bound, dtype=np.uint64) >> _HALF).astype(np.int64)


def box_of(
    drawn: np.ndarray,
    area: tuple[float, float],
    ratio: tuple[float, float],
    height: int | np.ndarray,
    width: int | np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A random part of images of height x width pixels: (top, left, height, width), int64 [n] each.

    drawn: uint32 [n, 4], for area, ratio and place. A part that would stick out is cut.
    """
    part = drawn[:, :2] / 2.0**32
    share = (area[0] + part[:, 0] * (area[1] - area[0])) * height * width
    low, high = math.log(ratio[0]), math.log(ratio[1])
    slant = np.exp(low + part[:, 1] * (high - low))
    wide = np.clip(np.round(np.sqrt(share * slant)).astype(np.int64), 1, width)
    tall = np.clip(np.round(np.sqrt(share / slant)).astype(np.int64), 1, height)
    return scaled(drawn[:, 2], height - tall + 1), scaled(drawn[:, 3], width - wide + 1), tall, wide
