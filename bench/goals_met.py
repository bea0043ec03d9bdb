"""How near the latencies of adapted networks are to goals in milliseconds.

    python bench/goals_met.py                                 # 20 goals for three networks
    python bench/goals_met.py --networks repvit-cifar --engine syno-cpp-int8

Each network of examples/teachers is adapted to goals that lie evenly between 0.9 and 0.4 of its own
latency, as a user would ask for them: `syno adapt --latency 0.123ms`. The fine-tuning is a few
steps, because it changes no latency. What counts is the latency of the delivered network, measured
in turns with the original at the end. SYNO_DATA is the folder of CIFAR-10.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import syno
from syno.engines import engine
from syno.measure.timing import interleaved
from syno.network import models
from syno.store.environment import capture_environment

_TEACHERS = Path(__file__).parents[1] / "examples/teachers"
# Each network with its options and the number of goals.
_NETWORKS: dict[str, tuple[dict[str, int], int]] = {
    "resnet18-small": ({"width": 24}, 7),
    "repvit-cifar": ({}, 7),
    "mobilenetv2-cifar": ({}, 6),
}
_MOST, _LEAST = 0.9, 0.4
# What a network may take longer than its goal.
_NEAR = 0.05
_FEW = {"epochs": 1, "images": 512}


def weights_of(name: str, options: dict[str, int]) -> Path:
    """The trained weights of a model."""
    parts = [name.removesuffix("-cifar"), *map(str, options.values()), "cifar10"]
    return _TEACHERS / f"{'-'.join(parts)}.safetensors"


def original_ms(name: str, model_options: dict[str, Any], options: syno.AdaptOptions) -> float:
    """The latency of the original, which the goals are shares of."""
    net = models.build(name, size=32, classes=10, **model_options).eval()
    assert options.engine is not None
    call = engine.get(options.engine).prepare(net, torch.zeros(1, 3, 32, 32), options.threads)
    (times,) = interleaved([call], options.rounds)
    return 1e3 * statistics.median(times)


def measured(name: str, options: syno.AdaptOptions, seed: int) -> list[dict[str, Any]]:
    """A row for each goal of a network."""
    sizes, count = _NETWORKS[name]
    model_options: dict[str, Any] = {**sizes, "weights": str(weights_of(name, sizes))}
    whole = original_ms(name, model_options, options)
    goals = [f"{share * whole:.4f}ms" for share in np.linspace(_MOST, _LEAST, count)]
    found = syno.adapt(
        name,
        "cifar10",
        latency=goals,
        model_options=model_options,
        fidelity=_FEW,
        options=options,
        seed=seed,
        store="sqlite://",
    )
    rows = []
    for network in found.networks:
        (goal,) = network.row.goals
        rows.append(
            {
                "network": name,
                "goal": network.name,
                "ms": network.row.latency_ms,
                "of_goal": goal.reached / goal.wanted,
                "of_original": goal.reached,
                "about": network.row.about,
            }
        )
    rows += [
        {"network": name, "goal": goal, "nearest": why} for goal, why in found.unreached.items()
    ]
    return rows


def main() -> None:
    """Measures what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--networks", default=",".join(_NETWORKS))
    parser.add_argument("--engine", default="syno-cpp")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where the rows go as JSON")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    options = syno.AdaptOptions(engine=given.engine, threads=given.threads, samples=0, mutations=0)
    rows: list[dict[str, Any]] = []
    for name in given.networks.split(","):
        rows += measured(name, options, given.seed)
    met = [row.get("of_goal", float("inf")) <= 1 + _NEAR for row in rows]
    print(f"{'network':20}{'goal':>12}{'ms':>9}{'of goal':>9}  what it is")
    for row in rows:
        if "nearest" in row:
            print(f"{row['network']:20}{row['goal']:>12}  {row['nearest']}")
        else:
            print(
                f"{row['network']:20}{row['goal']:>12}{row['ms']:9.4f}{row['of_goal']:9.3f}  "
                f"{row['about']}"
            )
    print(f"{sum(met)} of {len(met)} goals are met within {_NEAR:.0%}")
    if given.out:
        content = {
            "command": shlex.join(["python", *sys.argv]),
            "engine": given.engine,
            "near": _NEAR,
            "rows": rows,
            "environment": dataclasses.asdict(capture_environment(threads=given.threads, rules="")),
        }
        given.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
