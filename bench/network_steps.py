"""The steps of networks: in the network, and alone with their weights and maps in the caches.

    python bench/network_steps.py                                    # all networks, the sums
    python bench/network_steps.py --networks deit_tiny_patch16_224   # and every step of one

A step is a layer with what is folded into it, or another operation. In each round the library of a
network is called twice, then with its steps timed, then with each step several times in a row, of
which the least counts; the best of all rounds is printed. How much longer the network takes
than its steps alone is the price of weights and maps that come from memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from syno.inference.library.built import built
from syno.inference.library.load import NetworkLibrary, StepSeconds
from syno.inference.prepare import prepare_sample
from syno.store.environment import capture_environment
from syno_lab.experiments.networks import zoo

_TIMES = 5  # of a step in a row


def library_of(name: str) -> tuple[NetworkLibrary, NDArray[np.float32]]:
    """The library of a network, and an input."""
    x = zoo.images(1)
    return built(prepare_sample(zoo.network(name).eval(), x).graph, "float32"), x.numpy()


def measured(
    library: NetworkLibrary, x: NDArray[np.float32], threads: int, rounds: int
) -> tuple[float, list[StepSeconds], list[StepSeconds]]:
    """The best seconds of a call, of each step in calls, and of each step alone."""
    calls: list[float] = []
    inside: list[list[StepSeconds]] = []
    alone: list[list[StepSeconds]] = []
    for _ in range(rounds):
        library(x, threads=threads)  # the caches hold what one before leaves
        began = time.perf_counter()
        library(x, threads=threads)
        calls.append(time.perf_counter() - began)
        inside.append(library.step_seconds(x, threads=threads))
        alone.append(library.step_seconds(x, threads=threads, times=_TIMES))
    return min(calls), _best(inside), _best(alone)


def _best(calls: list[list[StepSeconds]]) -> list[StepSeconds]:
    return [
        each[0]._replace(seconds=min(step.seconds for step in each))
        for each in zip(*calls, strict=True)
    ]


def _sums(steps: list[StepSeconds]) -> dict[str, float]:
    """Milliseconds of layers, and of all other steps."""
    return {
        kind: round(1e3 * sum(step.seconds for step in steps if step.layer is layer), 4)
        for kind, layer in (("layers", True), ("others", False))
    }


def _print(inside: list[StepSeconds], alone: list[StepSeconds]) -> None:
    """Every step, the slowest first."""
    pairs = sorted(zip(inside, alone, strict=True), key=lambda pair: -pair[0].seconds)
    for step, itself in pairs:
        print(
            f"{step.seconds * 1e3:11.3f}{itself.seconds * 1e3:10.3f}"
            f"{step.seconds / itself.seconds - 1:8.0%}  {'layer' if step.layer else '':6} "
            f"{step.name}"
        )


def main() -> None:
    """Measures what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--networks", help=f"of: {', '.join(zoo.names())}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path, help="where the sums go as JSON")
    given = parser.parse_args()
    names = given.networks.split(",") if given.networks else zoo.names()
    torch.set_num_threads(given.threads)
    rows: list[dict[str, Any]] = []
    print(f"{'network':24}{'ms':>8}{'steps':>9}{'alone':>9}{'more':>7}")
    for name in names:
        call, inside, alone = measured(*library_of(name), given.threads, given.rounds)
        rows.append(
            {
                "network": name,
                "ms": round(1e3 * call, 4),
                "in_network_ms": _sums(inside),
                "alone_ms": _sums(alone),
            }
        )
        steps, warm = (sum(rows[-1][kind].values()) for kind in ("in_network_ms", "alone_ms"))
        print(f"{name:24}{1e3 * call:8.3f}{steps:9.3f}{warm:9.3f}{1e3 * call / warm - 1:7.1%}")
        if given.networks:
            _print(inside, alone)
    if given.out:
        content = {
            "command": shlex.join(["python", *sys.argv]),
            "threads": given.threads,
            "rounds": given.rounds,
            "times": _TIMES,
            "networks": rows,
            "environment": dataclasses.asdict(capture_environment(threads=given.threads, rules="")),
        }
        given.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
