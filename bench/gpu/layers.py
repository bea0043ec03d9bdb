"""Layers of ResNet-18 on a GPU in half precision: the kernels of `kernels.py`, beside cuDNN.

Usage: python bench/gpu/layers.py --out FILE            measures (needs a GPU)
       TRITON_INTERPRET=1 python bench/gpu/layers.py    compares small cases (needs none)

Each tile of each kernel is compared with PyTorch in float32 before it is timed. Times are those of
CUDA graphs that go through several sets of tensors; of batch 128 they are larger than the
second-level cache, of batch 1 they lie in it, as they do inside a network. The fastest tiles are
measured again, in turns with cuDNN.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path

import torch
import torch.nn.functional as F
import triton
from cases import (
    DESIGNS,
    DEVICE,
    INTERPRETED,
    KINDS,
    LARGEST_ERROR,
    LAYERS,
    SHRINK,
    Case,
    Spec,
    Tensors,
    Tile,
    launch,
)

# Of shared memory that the tiles of a program may take.
MOST_SHARED_BYTES = 200_000


def designs(kind: str, batch: int) -> tuple[str, ...]:
    """What there is of a kind, and worth a try."""
    if kind == "depthwise" or kind.endswith("fused"):
        # Both steps in one kernel have too much work in each tile to be worth a try at batch 1.
        return () if kind != "depthwise" and batch == 1 else DESIGNS[:1]
    return DESIGNS[::2] if kind.endswith("/1") or batch == 1 else DESIGNS


def powers(first: int, last: int) -> Iterator[int]:
    while first <= last:
        yield first
        first *= 2


def pixel_tiles(case: Case, pixels: int, *, one_row: bool) -> list[tuple[int, int, int]]:
    """The tiles of so many pixels that waste least; of these, those whose window reads least."""
    found = []
    for images in powers(1, min(pixels, case.batch)):
        for rows in powers(1, 1 if one_row else min(pixels // images, 8)):
            columns = pixels // images // rows
            if columns > 64 or images > 256:
                continue
            covered = math.prod(
                triton.cdiv(a, b) * b
                for a, b in zip(
                    (case.batch, case.size, case.size), (images, rows, columns), strict=True
                )
            )
            waste = covered / (case.batch * case.size**2)
            read = (rows + 2) * (columns + 2) / rows / columns
            found.append((round(waste, 2), read, (images, rows, columns)))
    if not found:
        return []
    found.sort()
    least = found[0][0]
    good = [each for each in found if each[0] <= 1.16 * least]
    by_reading = sorted(good, key=lambda each: (each[1], each[0]))
    return list(dict.fromkeys([good[0][2], by_reading[0][2]]))


def tiles(case: Case) -> list[Tile]:
    """What is worth a try."""
    if case.kind == "depthwise":
        return _depthwise_tiles(case)
    single, spec = case.batch == 1, case.spec
    first, fused = case.kind.endswith("/1"), case.kind.endswith("fused")
    summed = spec.summed or spec.channels
    least = min(32 if single else 64, spec.group)
    many = ((32,) if case.design == "pointers" else ()) + (64, 128) if single else (128, 256)
    depths = (32, 64) if fused or first else (64, 128) if summed >= 64 else (summed,)
    found = []
    for pixels, terms in itertools.product(many, depths):
        widths = [each for each in (16, 32, 64, 128, 256) if least <= each <= spec.group]
        if case.design == "swapped":
            widths = [each for each in widths if each >= 64]  # rows of a matrix instruction
        if terms > summed:
            continue
        for outputs in [terms // SHRINK] if first else widths:
            if pixels * outputs > 128 * 256:
                continue
            for shape in _shapes(case, pixels):
                tile = Tile(*shape, outputs, terms, 1, 4, 4)
                for split in [1] if fused else splits(spec, case.design, tile):
                    found += _ways(case, replace(tile, split=split))
    return found


def _depthwise_tiles(case: Case) -> list[Tile]:
    rows = (7, 14) if case.batch == 1 else (14, 28, 56)
    return [
        Tile(1, each, columns, outputs, 1, 1, 4, 1)
        for each in [each for each in rows if each <= case.size] or [case.size]
        for columns in (4, 8, 16)
        for outputs in (64, 128)
        if outputs <= case.channels and columns < 2 * case.size
    ]


def _shapes(case: Case, pixels: int) -> list[tuple[int, int, int]]:
    if case.design == "pointers":
        return [(1, 1, pixels)]
    one_row = case.kind == "operator-2/fused" or (case.kind == "operator-2/1" and case.batch > 1)
    found = pixel_tiles(case, pixels, one_row=one_row)
    return found[:1] if case.kind == "operator-1/1" else found


def splits(spec: Spec, design: str, tile: Tile) -> list[int]:
    """In how many parts a sum is worth to be split: so that all multiprocessors have work."""
    high, wide, _, _ = spec.geometry
    programs = spec.places(design, tile) * (spec.outputs // tile.outputs)
    most = min(high * wide * spec.summed // tile.terms // 2, 280 // programs)
    return [1, *[each for each in (2, 4, 8, 16) if each <= most][-2:]]


def _ways(case: Case, tile: Tile) -> Iterator[Tile]:
    """The tile with numbers of warps and stages."""
    single, size = case.batch == 1, tile.pixels * tile.outputs
    # A rotation of several rows reads the data twice.
    twice = tile.pixels if case.kind == "operator-2/1" and tile.rows > 1 else 0
    for warps in (4,) if size <= 64 * 64 else (8,) if size >= 128 * 256 else (4, 8):
        for stages in (4,) if single or case.kind.endswith("/1") else (3, 4):
            made = replace(tile, warps=warps, stages=stages)
            if made.shared_bytes + stages * twice * tile.terms * 2 > MOST_SHARED_BYTES:
                continue
            yield made
            if case.design == "pointers" and single:
                yield replace(made, early=True)


def error_of(tensors: Tensors, tile: Tile) -> float:
    """The error of a call, relative to the result."""
    tensors.y[0].fill_(7.0)
    launch(tensors, tile)
    expected = tensors.expected()
    found = tensors.y[0].float()
    return float((found - expected).norm() / expected.norm())


@lru_cache(maxsize=2)
def kept(case: Case) -> Tensors:
    return Tensors(case, 1)


def tried(task: tuple[Case, Tile]) -> tuple[Case, Tile, float | str]:
    """Compiles a tile and compares it, in a process of its own."""
    case, tile = task
    try:
        error = error_of(kept(case), tile)
        torch.cuda.synchronize()
        return case, tile, error
    except Exception as error:  # a tile that cannot be compiled is one row of the table
        return (
            case,
            tile,
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        )


def graph_of(calls: list[Callable[[], None]]) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def microseconds(graph: torch.cuda.CUDAGraph, calls: int, at_least: float) -> float:
    """Of one call, of a run of at least so many milliseconds."""
    graph.replay()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    times = max(2, int(at_least / max(begin.elapsed_time(end), 1e-3)))
    begin.record()
    for _ in range(times):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / times / calls


def sets_of(case: Case) -> int:
    """So many that their data is larger than a second-level cache of 60 MB; a few at batch 1."""
    size = case.batch * case.size**2 * case.channels * 4
    return 8 if case.batch == 1 else max(2, math.ceil(180e6 / size))


def rivals(tensors: Tensors) -> dict[str, Callable[[int], None]]:
    """cuDNN's convolution of the layer, and with the groups of the case."""
    case = tensors.case
    x = [each.permute(0, 3, 1, 2) for each in tensors.x]  # channels-last
    found = {}
    for name, groups in (
        ("cudnn-dense", 1),
        ("cudnn-grouped-4", 4),
        ("cudnn-depthwise", case.channels),
    ):
        weight = torch.randn(case.channels, case.channels // groups, 3, 3, device=DEVICE)
        weight = (weight * 0.02).to(tensors.dtype).contiguous(memory_format=torch.channels_last)
        found[name] = lambda number, weight=weight, groups=groups: F.conv2d(
            x[number], weight, padding=1, groups=groups
        )
    return found


def processes() -> ProcessPoolExecutor:
    """Processes that compile; Triton keeps what they made on disk."""
    return ProcessPoolExecutor(max(1, (os.cpu_count() or 4) - 2), get_context("spawn"))


def compiled(cases: list[Case]) -> tuple[dict[Case, list[Tile]], list[str]]:
    """The tiles that are right, and what became of the others."""
    tasks = [(case, tile) for case in cases for tile in tiles(case)]
    good: dict[Case, list[Tile]] = {case: [] for case in cases}
    failed: list[str] = []
    # Neighbours are compiled by one process, which keeps the tensors of the case.
    with processes() as pool:
        for case, tile, found in pool.map(tried, tasks, chunksize=4):
            if isinstance(found, float) and found <= LARGEST_ERROR:
                good[case].append(tile)
            else:
                failed.append(f"{case} {tile}: {found}")
    print(f"{len(tasks)} tiles, of which {len(failed)} are wrong or fail", flush=True)
    for each in failed[:6]:
        print(" ", each[:300])
    return good, failed


def tile_graph(tensors: Tensors, tile: Tile) -> torch.cuda.CUDAGraph:
    return graph_of([partial(launch, tensors, tile, number) for number in range(tensors.sets)])


def times_of(tensors: Tensors, candidates: list[Tile]) -> dict[Tile, float]:
    """Microseconds of each tile, the fastest first."""
    times = {
        tile: microseconds(tile_graph(tensors, tile), tensors.sets, 2.0) for tile in candidates
    }
    return dict(sorted(times.items(), key=lambda each: each[1]))


def in_turns(
    graphs: dict[str, tuple[torch.cuda.CUDAGraph, int]], rounds: int = 7
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The median of microseconds of each graph, and the least and most."""
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, (graph, calls) in graphs.items():
            times[name].append(microseconds(graph, calls, 3.0))
    medians = {name: statistics.median(each) for name, each in times.items()}
    return medians, {name: [min(each), max(each)] for name, each in times.items()}


def measure_layer(cases: list[Case], good: dict[Case, list[Tile]]) -> list[dict[str, object]]:
    """Rows of one layer and batch size."""
    graphs: dict[str, tuple[torch.cuda.CUDAGraph, int]] = {}
    fastest: dict[str, Tile] = {}
    alive = []  # what the graphs use
    for case in cases:
        if not good[case]:
            continue
        tensors = Tensors(case, sets_of(case))
        alive.append(tensors)
        fastest[case.name] = next(iter(times_of(tensors, good[case])))
        graphs[case.name] = (tile_graph(tensors, fastest[case.name]), tensors.sets)
    dense = Tensors(replace(cases[0], kind="dense", design="descriptors"), sets_of(cases[0]))
    for name, call in rivals(dense).items():
        calls = [partial(call, number) for number in range(dense.sets)]
        graphs[name] = (graph_of(calls), dense.sets)
    medians, spread = in_turns(graphs)
    layer, batch = f"{cases[0].channels}x{cases[0].size}", cases[0].batch
    print_row(layer, batch, medians)
    return [
        {
            "layer": layer,
            "batch": batch,
            "name": name,
            "microseconds": round(us, 2),
            "least": round(spread[name][0], 2),
            "most": round(spread[name][1], 2),
            **({"tile": vars(fastest[name])} if name in fastest else {}),
        }
        for name, us in medians.items()
    ]


def measure(
    out: Path, layers: list[str], batches: list[int], kinds: list[str], limit: float, dtype: str
) -> None:
    began = time.monotonic()
    groups = [
        [
            Case(kind, design, *LAYERS[layer], batch, dtype)
            for kind in kinds
            for design in designs(kind, batch)
        ]
        for batch in batches
        for layer in layers
    ]
    good, failed = compiled([case for group in groups for case in group])
    print(f"compiled and compared after {time.monotonic() - began:.0f} s", flush=True)
    full = [each for each in failed if "OutOfResources" in each]
    torch.backends.cudnn.benchmark = True
    rows: list[dict[str, object]] = []
    for group in groups:
        if time.monotonic() - began > limit:
            print(f"no time is left for {group[0].channels}x{group[0].size}", flush=True)
            break
        rows += measure_layer(group, good)
        record = {
            **machine(),
            "dtype": dtype,
            "tiles": sum(map(len, good.values())) + len(failed),
            "wrong": len(failed) - len(full),
            "out_of_shared_memory": len(full),
            "failed": failed,
            "rows": rows,
        }
        out.write_text(json.dumps(record, indent=1))
        torch.cuda.empty_cache()


def machine() -> dict[str, object]:
    """What a result of this folder depends on, besides the sources."""
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cudnn": torch.backends.cudnn.version(),
    }


def print_row(layer: str, batch: int, medians: dict[str, float]) -> None:
    dense = medians["cudnn-dense"]
    each = (f"{name} {us:.1f} us ({dense / us:.2f}x)" for name, us in medians.items())
    print(f"{layer} batch {batch}: " + ", ".join(each), flush=True)


def compare() -> int:
    """Small cases in the interpreter."""
    wrong = 0
    for kind in KINDS:
        rows = 1 if kind == "operator-2/fused" else 2
        outputs = 16 if kind.endswith("/1") else 32
        shapes = [Tile(1, rows, 8, outputs, 32, 1, 4, 2), Tile(2, rows, 4, outputs, 32, 1, 4, 2)]
        if kind == "operator-2/1":
            shapes.append(Tile(2, 1, 8, outputs, 32, 1, 4, 2))
        elif kind == "depthwise":
            shapes = [Tile(1, 7, 4, 32, 1, 1, 4, 1), Tile(1, 3, 8, 64, 1, 1, 4, 1)]
        elif kind == "grouped-4":
            shapes = [Tile(1, rows, 8, 16, 16, 1, 4, 2), Tile(1, rows, 8, 16, 16, 3, 4, 2)]
        elif kind == "dense":
            shapes.append(Tile(2, rows, 4, outputs, 32, 4, 4, 2))
        for design in designs(kind, 3):
            for tile in shapes:
                error = error_of(Tensors(Case(kind, design, 64, 7, 3), 1), tile)
                print(f"{kind:17s} {design:11s} {tuple(vars(tile).values())}: error {error:.1e}")
                wrong += not error <= LARGEST_ERROR
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("gpu_layers.json"))
    parser.add_argument("--layers", default=",".join(LAYERS))
    parser.add_argument("--batches", default="1,128")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--dtype", default="float16")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="no new case is begun after so many"
    )
    chosen = parser.parse_args()
    if INTERPRETED:
        return min(compare(), 1)
    batches = [int(each) for each in chosen.batches.split(",")]
    measure(
        chosen.out,
        chosen.layers.split(","),
        batches,
        chosen.kinds.split(","),
        chosen.seconds,
        chosen.dtype,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
