"""The learning rate over the steps of a training, as a factor of its peak."""

from __future__ import annotations

import math

from syno.train.recipe import Recipe

# One cycle begins at a 25th of the peak and ends at a 10,000th of that, as in torch's OneCycleLR.
_FIRST, _LAST = 1 / 25, 1 / 25 / 1e4


def rate(recipe: Recipe, step: int, steps: int) -> float:
    """Factor of the peak learning rate at `step` (from 0) of `steps`.

    constant    after the rise, the peak
    linear      after the rise, a straight line to final_rate
    cosine      after the rise, a half cosine to final_rate (Loshchilov and Hutter 2017)
    one-cycle   a half cosine up from 1/25, a half cosine down to almost nothing (Smith and Topin
                2018; the rate alone, momentum stays)
    cyclic      `cycles` triangles, each up over its share `warmup` and down to final_rate
    """
    if recipe.schedule == "one-cycle":
        return _one_cycle(step, steps, recipe.warmup)
    if recipe.schedule == "cyclic":
        length = steps / recipe.cycles
        step, steps = int(step % length), max(math.ceil(length), 1)
    rise = recipe.warmup * steps
    if step < rise:
        return (step + 1) / (math.floor(rise) + 1)
    if recipe.schedule == "constant":
        return 1.0
    done = (step - rise) / max(steps - rise, 1)
    left = 0.5 * (1 + math.cos(math.pi * done)) if recipe.schedule == "cosine" else 1 - done
    return recipe.final_rate + (1 - recipe.final_rate) * left


def _one_cycle(step: int, steps: int, warmup: float) -> float:
    top = warmup * max(steps - 1, 1)
    if step < top:
        low, done = _FIRST, 1 - step / top
    else:
        low, done = _LAST, (step - top) / max(steps - 1 - top, 1)
    return low + (1 - low) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
