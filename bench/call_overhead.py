"""What a call of a compiled kernel inside PyTorch costs, beside PyTorch's own operators.

    python bench/call_overhead.py --out bench/results/call_overhead.json

The kernel multiplies one number by a weight, so that a call is overhead alone: the dispatch, the
checks of the arguments, and the allocation of the result. Times are microseconds a call, the best
of all rounds. In compiled graphs and packages of AOTInductor, a call is the difference between
graphs of one call and of 21 calls, divided by 20; the first call also has the graph's own cost. One
thread.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import nn

from syno.codegen.torch_op import Kernel
from syno.operators.operator import Operator
from syno.store.environment import capture_environment

_SCALE = Operator.parse(
    "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * w0[o,i]",
    input="[N, C_in, H, W]",
    output="[N, C_out, H, W]",
)
_MORE = 20
_CALLS = 2000  # of a round


class Chain(nn.Module):
    """The kernel so many times, one after the other."""

    def __init__(self, kernel: Kernel, packed: torch.Tensor, count: int) -> None:
        super().__init__()
        self.kernel, self.count = kernel, count
        self.register_buffer("packed", packed)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.count):
            x = self.kernel(x, self.packed)
        return x


def microseconds(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The best round's time of one call each, with that of an empty loop taken off.

    Each round times all of them in turn, so that what disturbs the machine disturbs all.
    """
    both = {**calls, "": lambda: None}
    best = dict.fromkeys(both, float("inf"))
    for _ in range(rounds):
        for name, call in both.items():
            started = time.perf_counter()
            for _ in range(_CALLS):
                call()
            best[name] = min(best[name], (time.perf_counter() - started) / _CALLS * 1e6)
    return {name: round(best[name] - best[""], 2) for name in calls}


def packaged(chain: Chain, x: torch.Tensor, folder: Path) -> Callable[[torch.Tensor], object]:
    """The chain as a package of AOTInductor."""
    path = str(folder / f"{chain.count}.pt2")
    program = torch.export.export(chain, (x,))
    loaded: Callable[[torch.Tensor], object] = torch._inductor.aoti_load_package(
        torch._inductor.aoti_compile_and_package(program, package_path=path)
    )
    return loaded


def measure(rounds: int, folder: Path) -> dict[str, float]:
    """Microseconds a call, by way of calling."""
    kernel = Kernel.of(_SCALE, "N=1, C_in=1, C_out=1, H=1, W=1")
    packed, x = kernel.pack([torch.ones(1, 1)]), torch.ones(1, 1, 1, 1)
    out, apply = torch.empty(1, 1, 1, 1), torch.ops.syno.apply
    arguments = (x, packed, None, None, kernel.key, kernel.epilogue)

    with torch.inference_mode():
        found = microseconds(
            {
                "kernel(x, packed)": lambda: kernel(x, packed),
                "torch.ops.syno.apply.default": lambda: apply.default(*arguments),
                "torch.ops.syno.apply.out": lambda: apply.out(*arguments, out=out),
                "torch.relu": lambda: torch.relu(x),
                "x * 2": lambda: x * 2,
                "F.conv2d": lambda: nn.functional.conv2d(x, x),
            },
            rounds,
        )
    ways: dict[str, Callable[[Chain], Callable[[torch.Tensor], object]]] = {
        "torch.compile": torch.compile,
        "torch.compile, cpp_wrapper": lambda chain: torch.compile(
            chain, options={"cpp_wrapper": True}
        ),
        "AOTInductor": lambda chain: packaged(chain, x, folder),
    }
    with torch.no_grad():
        found |= microseconds({"kernel(x, packed), no_grad": lambda: kernel(x, packed)}, rounds)
        graphs = {}
        for name, made in ways.items():
            for count in (1, 1 + _MORE):
                graph = made(Chain(kernel, packed, count))
                graph(x)
                graphs[f"{name}, {count}"] = functools.partial(graph, x)
        times = microseconds(graphs, rounds)
    for name in ways:
        one, many = times[f"{name}, 1"], times[f"{name}, {1 + _MORE}"]
        found[f"{name}, a graph of one call"] = one
        found[f"{name}, each more"] = round((many - one) / _MORE, 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, help="where the figures go as JSON")
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "command": shlex.join(["python", *sys.argv]),
            "microseconds": measure(given.rounds, Path(folder)),
            "rounds": given.rounds,
            "environment": dataclasses.asdict(capture_environment(threads=1, rules="")),
        }
    text = json.dumps(found, indent=2) + "\n"
    if given.out:
        given.out.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
