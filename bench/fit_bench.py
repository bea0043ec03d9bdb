"""Seconds to fit an operator to a layer: the sums over the data, and the weights.

    python bench/fit_bench.py --out bench/results/fit.json

A 3x3 convolution with random weights on smoothed random maps is the layer, and operators of the zoo
are fitted to it. Operators that gather the same data share the sums over it. `first_s` is the time
of a fit that has to compute them, and `next_s` of one that finds them, as in an adaptation, where
many operators are fitted to one slot. Each is the best of some rounds. torch computes with one
thread.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

from syno import Operator
from syno.adaptation.activations import Activations
from syno.adaptation.fit import SharedSums
from syno.adaptation.slots import fit_layer
from syno.operators import zoo
from syno.store.environment import capture_environment

OPERATORS = {
    "conv2d": {},
    "conv1x1": {},
    "grouped": {"g": 4},
    "depthwise-separable": {},
    "low-rank-conv": {"s": 4},
    "operator-1": {"g": 4, "s": 4},
    "operator-2": {"g": 4, "s": 4},
    "stacked-conv": {"g": 4, "s": 4},
}


def activations(channels: int, size: int, images: int) -> Activations:
    """What a convolution receives and returns: neighbors of a map are alike, as in a network."""
    torch.manual_seed(0)
    layer = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
    with torch.no_grad():
        x = nn.functional.avg_pool2d(torch.randn(images, channels, size + 2, size + 2), 3, 1).relu()
        return Activations(x, layer(x))


def binding(operator: Operator, channels: int, size: int, more: dict[str, int]) -> dict[str, int]:
    """The sizes of an operator in the layer."""
    known = {"N": 1, "C_in": channels, "C_out": channels, "C": channels, "H": size, "W": size}
    known |= {"k": 3, **more}
    return {name: known[name] for name in operator.variables}


def measured(
    name: str, given: Activations, channels: int, size: int, rounds: int
) -> dict[str, float]:
    """Seconds of fits, the best of some rounds."""
    operator = zoo.load(name)
    sizes = binding(operator, channels, size, OPERATORS[name])
    first, following, error = [], [], 0.0
    for _ in range(rounds):
        shared = SharedSums()
        for times in (first, following):
            began = time.perf_counter()
            error = fit_layer(operator, sizes, given, restarts=1, sweeps=10, shared=shared).error
            times.append(time.perf_counter() - began)
    return {"first_s": min(first), "next_s": min(following), "error": error}


def main(arguments: list[str]) -> int:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    data = activations(given.channels, given.size, given.images)
    fits = {
        name: measured(name, data, given.channels, given.size, given.rounds) for name in OPERATORS
    }
    for name, found in fits.items():
        print(
            f"{name:22} first {found['first_s']:.3f} s   next {found['next_s']:.3f} s   "
            f"error {found['error']:.4f}"
        )
    median = statistics.median(found["next_s"] for found in fits.values())
    print(f"median of the operators after the first: {median:.3f} s")
    if given.out is not None:
        document = {
            "channels": given.channels,
            "size": given.size,
            "images": given.images,
            "fits": fits,
            "median_next_s": median,
            "environment": dataclasses.asdict(capture_environment(threads=1, rules="")),
        }
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
