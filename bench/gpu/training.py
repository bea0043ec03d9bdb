"""Steps of a training of ResNet-20 on a GPU: eager, in a CUDA graph, and compiled.

Usage: python bench/gpu/training.py --out FILE [--batch 128] [--size 32]

A step is forward, backward, the optimizer and a moving average of the weights, on random images
that lie on the device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm_one = nn.BatchNorm2d(outputs)
        self.two = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm_two = nn.BatchNorm2d(outputs)
        self.skip = (
            nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride > 1 else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm_one(self.one(x)))
        return F.relu(self.norm_two(self.two(y)) + self.skip(x))


def resnet20() -> nn.Module:
    widths = (
        [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2
    )
    first = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(
        *first,
        *(Block(*each) for each in widths),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 100),
    )


def milliseconds(step: Callable[[], object], steps: int = 40) -> tuple[float, float, float]:
    """Median, least and most of five runs."""
    for _ in range(5):
        step()
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / steps * 1000)
    return statistics.median(times), min(times), max(times)


def stepper(
    batch: int, size: int, *, half: bool, fused: bool, compiled: bool, graph: bool
) -> Callable[[], object]:
    torch.manual_seed(0)
    net = resnet20().cuda().to(memory_format=torch.channels_last)
    average = [p.detach().clone() for p in net.parameters()]
    parameters = list(net.parameters())
    optimizer = torch.optim.SGD(
        parameters,
        lr=torch.tensor(0.1, device="cuda") if fused else 0.1,
        momentum=0.9,
        weight_decay=5e-4,
        fused=fused,
        foreach=None if fused else False,
    )
    x = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 100, (batch,), device="cuda")
    called = torch.compile(net) if compiled else net

    def step() -> None:
        optimizer.zero_grad(set_to_none=not graph)
        with torch.autocast("cuda", torch.bfloat16, enabled=half, cache_enabled=not graph):
            loss = F.cross_entropy(called(x), y)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            if fused:
                torch._foreach_lerp_(average, parameters, 0.01)
            else:
                for a, p in zip(average, parameters, strict=True):
                    a.lerp_(p, 0.01)

    if not graph:
        return step
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    whole = torch.cuda.CUDAGraph()
    with torch.cuda.graph(whole):
        step()
    return whole.replay


WAYS = {
    "eager": {},
    "fused optimizer": {"fused": True},
    "fused, graph": {"fused": True, "graph": True},
    "compiled, fused": {"compiled": True, "fused": True},
    "compiled, fused, graph": {"compiled": True, "fused": True, "graph": True},
}
# Of a number format those ways that say something new.
MEASURED = [
    ("float32", "eager"),
    ("float32", "fused optimizer"),
    ("float32", "fused, graph"),
    ("tf32", "eager"),
    ("tf32", "fused optimizer"),
    ("tf32", "fused, graph"),
    ("bfloat16", "eager"),
    ("bfloat16", "fused, graph"),
    ("bfloat16", "compiled, fused"),
    ("bfloat16", "compiled, fused, graph"),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("gpu_training.json"))
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--size", type=int, default=32)
    chosen = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rows = []
    for number, way in MEASURED:
        tf32 = number != "float32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        options = {**dict.fromkeys(("fused", "compiled", "graph"), False), **WAYS[way]}
        step = stepper(chosen.batch, chosen.size, half=number == "bfloat16", **options)
        median, least, most = milliseconds(step)
        rows.append(
            {
                "way": f"{number}, {way}",
                "median_ms": round(median, 3),
                "least_ms": round(least, 3),
                "most_ms": round(most, 3),
            }
        )
        print(f"{number}, {way}: {median:.3f} ms a step ({least:.3f} to {most:.3f})", flush=True)
    record = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "batch": chosen.batch,
        "size": chosen.size,
        "rows": rows,
    }
    chosen.out.write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
