"""ResNet-18 in half precision on a GPU: PyTorch's ways to run it, and the kernels of `kernels.py`.

Usage: python bench/gpu/networks.py --out FILE [--batches 1,128] [--tune]
       TRITON_INTERPRET=1 python bench/gpu/networks.py    compares small images (needs no GPU)

Each runs in a CUDA graph. Normalisations are folded into the convolutions for all. Outputs are
compared with those in float32. --tune: `torch.compile` in the mode max-autotune, too, which takes
minutes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import kernels
import torch
import triton
from cases import DEVICE, INTERPRETED, SHRINK, Case, Shared, Spec, Tile, call
from layers import (
    MOST_SHARED_BYTES,
    graph_of,
    in_turns,
    machine,
    microseconds,
    pixel_tiles,
    processes,
    splits,
)
from resnet import OperatorConvolution, resnet18, with_operators
from torch import nn

Designed = tuple[str, Tile]


class Data:
    """Tensors of a call, to try tiles."""

    def __init__(self, spec: Spec) -> None:
        random = torch.Generator(device=DEVICE).manual_seed(0)

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=random, device=DEVICE).half() * 0.1

        if spec.kind == "stem":
            self.x = draw(spec.batch, 229, 230, 4)
            self.y = draw(spec.batch, spec.size, spec.size, spec.outputs)
        else:
            side = spec.size * spec.stride + 2
            self.x = draw(spec.batch, side, side, spec.channels)
            self.y = draw(spec.batch, spec.size + 2, spec.size + 2, spec.outputs)
        self.spec, self.draw = spec, draw
        self.weights: dict[tuple[str, int], torch.Tensor] = {}
        self.bias = torch.zeros(spec.outputs, device=DEVICE)
        self.shared = Shared()

    def weight_of(self, design: str, terms: int) -> torch.Tensor:
        """Made once for each form: nothing else is to run between the calls that are timed."""
        key = (design, terms)
        if key not in self.weights:
            high, wide, _, _ = self.spec.geometry
            if self.spec.summed:
                shape = (high * wide * self.spec.summed, self.spec.outputs)
            elif design == "first":
                shape = (3 * self.spec.channels, terms // SHRINK)
            else:
                shape = (high * wide * terms, self.spec.outputs)
            self.weights[key] = self.draw(*shape)
        return self.weights[key]


def trial(spec: Spec, data: Data, designed: Designed) -> None:
    design, tile = designed
    weight = data.weight_of(design, tile.terms)
    x, y = (seen(each, design) for each in (data.x, data.y))
    call(spec, design, tile, x, y, y, weight, data.bias, data.shared)


def seen(maps: torch.Tensor, design: str) -> torch.Tensor:
    """What a design takes of maps with a halo."""
    return maps if design == "pointers" else maps[:, 1:-1, 1:-1]


def candidates(spec: Spec) -> list[Designed]:
    """What is worth a try."""
    single, blocked = spec.batch == 1, spec.summed == 0
    whole = [each for each in (64, 128) if each <= spec.summed] or [spec.summed]
    depths = [32, 64] if blocked else whole
    found: list[Designed] = []
    for pixels, terms in itertools.product((32, 64, 128) if single else (128, 256), depths):
        least, most = 32 if single else 64, min(spec.outputs, 128 * 256 // pixels)
        widths = [each for each in (32, 64, 128, 256) if least <= each <= most]
        for outputs in [terms // SHRINK] if blocked else widths:
            warps = 8 if pixels * outputs >= 128 * 128 else 4
            tile = Tile(1, 1, pixels, outputs, terms, 1, warps, 4, single)
            found += [
                ("pointers", replace(tile, split=split)) for split in splits(spec, "pointers", tile)
            ]
            if not single and spec.stride == 1 and spec.kind != "stem":
                found += _described(spec, tile)
    return [
        (design, replace(tile, stages=stages))
        for design, tile in found
        for stages in ((4,) if single else (3, 4))
        if replace(tile, stages=stages).shared_bytes <= MOST_SHARED_BYTES
    ]


def _described(spec: Spec, tile: Tile) -> list[Designed]:
    """The design with tensor descriptors that is fastest of this kind of call."""
    design = {"operator-1/1": "first", "operator-2/1": "descriptors"}.get(spec.kind, "swapped")
    case = Case(spec.kind, "descriptors", spec.channels, spec.size, spec.batch)
    shapes = pixel_tiles(case, tile.pixels, one_row=spec.kind == "operator-2/1")
    return [
        (design, replace(tile, images=images, rows=rows, columns=columns))
        for images, rows, columns in shapes
    ]


@lru_cache(maxsize=1)
def kept(spec: Spec) -> Data:
    return Data(spec)


def compiled(task: tuple[Spec, Designed]) -> str | None:
    try:
        trial(task[0], kept(task[0]), task[1])
        torch.cuda.synchronize()
    except Exception as error:  # such as more shared memory than there is; the tile is left out
        return f"{type(error).__name__}: {error}"
    return None


def chosen_tiles(specs: list[Spec]) -> dict[Spec, Designed]:
    """The fastest tile of each call; with a residual the same as without."""
    tasks = [(spec, each) for spec in specs for each in candidates(spec)]
    with processes() as pool:
        failures = dict(zip(tasks, pool.map(compiled, tasks, chunksize=4), strict=True))
    failed = [each for each in failures.values() if each is not None]
    print(f"{len(tasks)} tiles, of which {len(failed)} fail", flush=True)
    found: dict[Spec, Designed] = {}
    for spec in specs:
        data = Data(spec)
        times = {}
        for of, designed in tasks:
            if of == spec and failures[of, designed] is None:
                graph = graph_of([partial(trial, spec, data, designed)] * 4)
                times[designed] = microseconds(graph, 4, 1.0)
        best = found[spec] = min(times, key=times.__getitem__)
        print(f"  {spec}: {times[best]:.1f} us {best}", flush=True)
    return found


class OurNetwork:
    """A ResNet-18 out of the kernels. images: [n, 3, h, h], channels-last."""

    def __init__(self, net: nn.Module, batch: int, images: torch.Tensor) -> None:
        self.batch, self.images, self.single = batch, images, batch == 1
        self.side = side = images.shape[2]
        self.shared = Shared()
        self.steps: list[
            tuple[Spec, torch.Tensor, torch.Tensor, torch.Tensor, object, torch.Tensor]
        ] = []
        half = {"dtype": torch.float16, "device": DEVICE}
        self.entered = torch.zeros(batch, side + 5, side + 6, 4, **half)
        self.stem = torch.zeros(batch, side // 2, side // 2, 64, **half)
        stem = torch.zeros(7, 8, 4, 64, device=DEVICE)
        stem[:, :7, :3] = net.conv1.weight.permute(2, 3, 1, 0)
        spec = Spec("stem", batch, side // 2, 4, 64, stride=2, epilogue=0)
        self.steps.append(
            (spec, self.entered, self.stem, self.stem, stem.reshape(-1, 64).half(), net.conv1.bias)
        )
        self.stem_bias = net.conv1.bias.float()
        x = self.pooled = self._map(side // 4, 64)
        size, channels = side // 4, 64
        for block in net.blocks:
            stride = 2 if block.downsample is not None else 1
            outputs = channels * stride
            size //= stride
            between, residual, y = self._map(size, outputs), x, self._map(size, outputs)
            self._convolution(
                block.conv1, x, between, between, stride, channels, outputs, size, False, 2
            )
            if block.downsample is not None:
                residual = self._map(size, outputs)
                spec = Spec("dense", batch, size, channels, outputs, 1, stride, False, 1)
                down = block.downsample
                self.steps.append(
                    (
                        spec,
                        x,
                        residual,
                        residual,
                        down.weight.reshape(outputs, -1).t().half().contiguous(),
                        down.bias,
                    )
                )
            self._convolution(block.conv2, between, y, residual, 1, outputs, outputs, size, True, 2)
            x, channels = y, outputs
        self.last = x
        self.fc, self.fc_bias = net.fc.weight.half().contiguous(), net.fc.bias.float()
        self.fc_half = net.fc.bias.half()
        self.y = torch.zeros(batch, 1000, **half)
        self.tiles: dict[Spec, Designed] = {}
        self.weights: list[torch.Tensor] = []

    def _map(self, size: int, channels: int) -> torch.Tensor:
        return torch.zeros(
            self.batch, size + 2, size + 2, channels, dtype=torch.float16, device=DEVICE
        )

    def _convolution(
        self, conv, x, y, residual, stride, inputs, outputs, size, adds, epilogue
    ) -> None:  # type: ignore[no-untyped-def]
        if isinstance(conv, OperatorConvolution):
            kind = conv.kind
            many = (3 if kind == "operator-1" else 1) * outputs // SHRINK
            z = self._map(size, many)
            self.steps.append(
                (
                    Spec(f"{kind}/1", self.batch, size, inputs, many, epilogue=0),
                    x,
                    z,
                    z,
                    conv,
                    conv.bias,
                )
            )
            large = conv.large.reshape(-1, outputs).half().contiguous()
            spec = Spec(
                f"{kind}/2", self.batch, size, many, outputs, residual=adds, epilogue=epilogue
            )
            self.steps.append((spec, z, y, residual, large, conv.bias))
            return
        weight = conv.weight.permute(2, 3, 1, 0).reshape(-1, outputs).half().contiguous()
        spec = Spec("dense", self.batch, size, inputs, outputs, 3, stride, adds, epilogue)
        self.steps.append((spec, x, y, residual, weight, conv.bias))

    def specs(self) -> list[Spec]:
        return list(dict.fromkeys(replace(spec, residual=False) for spec, *_ in self.steps))

    def use(self, tiles: dict[Spec, Designed]) -> None:
        self.tiles = tiles
        self.weights = []
        for spec, *_, weight, _ in self.steps:
            design, tile = tiles[replace(spec, residual=False)]
            self.weights.append(
                weight.packed(design, tile.terms)
                if isinstance(weight, OperatorConvolution)
                else weight
            )
        self.biases = [step[5].float() for step in self.steps]

    def run(self) -> None:
        early = (
            {"EARLY": True, "launch_pdl": True}
            if self.single and not INTERPRETED
            else {"EARLY": False}
        )
        side = self.side
        kernels.enter[(self.batch, triton.cdiv(side * side, 512))](
            self.images, self.entered, side, side, side + 5, side + 6, PAD=3, BLOCK=512, **early
        )
        for number, (spec, x, y, residual, _, _) in enumerate(self.steps):
            design, tile = self.tiles[replace(spec, residual=False)]
            weight, bias = self.weights[number], self.biases[number]
            x, y, residual = (seen(each, design) for each in (x, y, residual))
            call(spec, design, tile, x, y, residual, weight, bias, self.shared)
            if number == 0:
                block, size = 16 if self.single else 64, side // 4
                kernels.pool[(self.batch, triton.cdiv(size * size, block))](
                    self.stem, self.pooled, self.stem_bias, size, size, C=64, BLOCK=block, **early
                )
        if self.single:
            size = side // 32
            kernels.classify[(1, triton.cdiv(1000, 8))](
                self.last, self.fc, self.fc_bias, self.y, size, size, 1000,
                C=512, P=triton.next_power_of_2(size * size), BO=8, BC=128, **early,
            )  # fmt: skip
        else:
            mean = self.last[:, 1:-1, 1:-1].mean((1, 2))
            torch.addmm(self.fc_half, mean, self.fc.t(), out=self.y)


def compare() -> int:
    """Small images in the interpreter, each design."""
    wrong = 0
    for batch, design in ((1, "pointers"), (2, "pointers"), (2, "descriptors")):
        for kind in ("dense", "operator-1", "operator-2"):
            net = resnet18() if kind == "dense" else with_operators(resnet18(), kind)
            x = torch.randn(batch, 3, 64, 64)
            ours = OurNetwork(net, batch, x.half().to(memory_format=torch.channels_last))
            tiles: dict[Spec, Designed] = {}
            for spec in ours.specs():
                blocked = spec.summed == 0
                plain = design == "pointers" or spec.stride > 1 or spec.kind == "stem"
                here = "pointers" if plain else "first" if spec.kind == "operator-1/1" else design
                outputs, terms = (32, 64) if blocked else (64, min(64, spec.summed))
                split = 2 if not blocked and spec.size <= 4 and plain else 1
                pixels = (1, 1, 64) if plain else (2, 1, 8)
                tiles[spec] = (here, Tile(*pixels, outputs, terms, split, 4, 2))
            ours.use(tiles)
            with torch.no_grad():
                right = net(x)
                ours.run()
            error = float((ours.y.float() - right).norm() / right.norm())
            print(f"{kind:10s} batch {batch} {design}: error {error:.1e}", flush=True)
            wrong += not error <= 5e-3
    return wrong


def rival_graphs(
    net: nn.Module, x: torch.Tensor, *, tune: bool
) -> dict[str, tuple[torch.cuda.CUDAGraph, torch.Tensor]]:
    """PyTorch's ways, with the tensor that the graph writes."""
    ways: dict[str, Callable[[], Callable[..., torch.Tensor]]] = {
        "eager": lambda: net,
        "inductor": lambda: torch.compile(net, dynamic=False),
    }
    if tune:
        ways["inductor, tuned"] = lambda: torch.compile(
            net, dynamic=False, mode="max-autotune-no-cudagraphs"
        )
    found = {}
    for name, make in ways.items():
        torch.compiler.reset()
        made, results = make(), []
        graph = graph_of([lambda made=made, results=results: results.append(made(x))])
        found[name] = (graph, results[-1])
    return found


def our_graphs(
    networks: dict[str, nn.Module], x: torch.Tensor
) -> dict[str, tuple[torch.cuda.CUDAGraph, torch.Tensor]]:
    made = {name: OurNetwork(net, len(x), x) for name, net in networks.items()}
    tiles = chosen_tiles(
        list(dict.fromkeys(spec for each in made.values() for spec in each.specs()))
    )
    for each in made.values():
        each.use(tiles)
    return {name: (graph_of([each.run]), each.y) for name, each in made.items()}


@torch.no_grad()
def measure(batch: int, *, tune: bool) -> dict[str, object]:
    """A row of the table: microseconds and errors of all, measured in turns."""
    net = resnet18()
    networks: dict[str, nn.Module] = {"ours": net}
    for kind in ("operator-1", "operator-2"):
        networks[f"ours, {kind}"] = with_operators(resnet18(), kind)
    x = torch.randn(batch, 3, 224, 224, device=DEVICE)
    given = x.half().to(memory_format=torch.channels_last)
    half = resnet18().half().to(memory_format=torch.channels_last)
    graphs = our_graphs(networks, given) | rival_graphs(half, given, tune=tune)
    errors = {}
    for name, (graph, result) in graphs.items():
        result.fill_(7.0)
        graph.replay()
        right = networks.get(name, net)(x)
        errors[name] = float((result.float() - right).norm() / right.norm())
    medians, spread = in_turns({name: (graph, 1) for name, (graph, _) in graphs.items()}, 9)
    for name, us in medians.items():
        print(f"batch {batch}, {name}: {us / 1000:.4f} ms, error {errors[name]:.1e}", flush=True)
    return {"batch": batch, "microseconds": medians, "spread": spread, "errors": errors}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("gpu_networks.json"))
    parser.add_argument("--batches", default="1,128")
    parser.add_argument("--tune", action="store_true")
    chosen = parser.parse_args()
    if INTERPRETED:
        return min(compare(), 1)
    torch.backends.cudnn.benchmark = True
    rows = []
    for batch in [int(each) for each in chosen.batches.split(",")]:
        rows.append(measure(batch, tune=chosen.tune))
        chosen.out.write_text(json.dumps({**machine(), "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    # Else TorchInductor names another folder for Triton's code, in this process alone.
    os.environ.setdefault("TRITON_CACHE_DIR", str(Path.home() / ".triton" / "cache"))
    sys.exit(main())
