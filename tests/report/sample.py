"""A report with every kind of content, for tests of the renderer."""

from __future__ import annotations

import hashlib
import random

from syno.report.model import Baseline, LayerGroup, OperatorRow, OperatorSource, Report, Status

FORMULA = """y[N,C_out,H,W] = sum(r0<C_in, r1<k, r2<k)
    x[N, r0, H + r1 - k/2, W + r2 - k/2] * w0[C_out, r0, r1, r2]"""

DOT = """digraph operator {
  rankdir=BT;
  node [fontname="Helvetica", fontsize=11, style=filled, fillcolor="#ffffff", color="#4a5568"];
  edge [fontname="Helvetica", fontsize=9, color="#4a5568", arrowsize=0.6];
  out1 [label="y[1]", shape=box, fillcolor="#d6e4f0"];
  out2 [label="y[2]", shape=box, fillcolor="#d6e4f0"];
  s0 [label="Reduce C_in", shape=box, fillcolor="#e7e0f3"];
  s1 [label="Reduce k", shape=box, fillcolor="#e7e0f3"];
  s3 [label="Unfold", shape=ellipse, fillcolor="#e3f1e5"];
  out2 -> s3 [label=" o2: H"];
  s1 -> s3 [label=" r1: k"];
  s5 [label="weight 0", shape=ellipse, fillcolor="#fbe8c8"];
  out1 -> s5 [label=" o1: C_out (drop)", style=dashed];
  s0 -> s5 [label=" r0: C_in"];
  in1 [label="x[1]", shape=box, fillcolor="#d6e4f0"];
  s5 -> in1 [label=" r0: C_in"];
  in2 [label="x[2]", shape=box, fillcolor="#d6e4f0"];
  s3 -> in2 [label=" c0: H"];
}"""

CODE = '''"""Generated module."""
import torch
from torch import nn


class SynoOperator(nn.Module):
    """y = conv(x) & more, 1 < 2"""

    def __init__(self) -> None:
        super().__init__()
        self.w0 = nn.Parameter(torch.empty(16, 16, 3, 3))  # [C_out, C_in, k, k]

    def forward(self, x):
        return torch.nn.functional.conv2d(x, self.w0, padding=1)
'''


def row(number: int, rng: random.Random) -> OperatorRow:
    macs = int(2e6 * 4 ** rng.uniform(-1.2, 0.4))
    accuracy = min(0.97, 0.78 + 0.04 * (macs / 1e6) + rng.gauss(0, 0.03))
    latency = 0.6 + macs / 4e6 + rng.uniform(0, 0.4)
    return OperatorRow(
        number=number,
        key=hashlib.md5(str(number).encode()).hexdigest(),
        status=Status.OK,
        accuracy=accuracy,
        accuracy_spread=0.004,
        latency_ms=latency,
        latency_spread_ms=0.03,
        latency_ratio=latency / 1.4,
        macs=macs,
        params=macs // 64,
        primitives={"contract": 1 + number % 2, "reduce": 3, "unfold": number % 3},
        formula=FORMULA,
        text="syno operator 1\nout C_out H W\n",
        dot=DOT,
        tree="input x\n└─ x[0] size C_in = r0  reduce, size C_in",
        layers=(
            LayerGroup({"N": 1, "C_in": 16, "C_out": 16, "H": 8}, 3, macs // 5, macs // 4),
            LayerGroup({"N": 1, "C_in": 16, "C_out": 32, "H": 4}, 1, macs // 5, macs // 4),
        ),
        sources=(
            OperatorSource("C_in=16 C_out=16 H=8", CODE),
            OperatorSource("C_in=16 C_out=32 H=4", CODE),
        ),
        seconds=rng.uniform(2, 6),
        finished=5.0 * (number + 1) + rng.uniform(0, 3),
    )


def report(count: int = 32, seed: int = 0) -> Report:
    rng = random.Random(seed)
    operators = [row(number, rng) for number in range(count)]
    operators.append(
        OperatorRow(
            number=count,
            key="f" * 32,
            status=Status.ERROR,
            reason="loss became <not a number> & stopped in epoch 2",
            formula=FORMULA,
            macs=1000,
            params=10,
        )
    )
    return Report(
        title="resnet-small on digits",
        settings={
            "Specification": (
                ("input", "[N, C_in: unordered, H, W]"),
                ("output", "[N, C_out: unordered, H, W]"),
                ("bindings", "C_in=16 C_out=16 H=8 W=8 (3 layers)\nC_in=16 C_out=32 H=4 W=4"),
            ),
            "Training": (("data", "digits"), ("fidelity", "1437 images, 8 px, 5 epochs")),
            "Environment": (("device", "cpu"), ("torch", "2.13.0"), ("commit", "")),
        },
        baseline=Baseline(accuracy=0.951, latency_ms=1.4, macs=2_400_000, params=40_000),
        operators=tuple(operators),
        rejections={"split-of-merge": 18234, "cannot-finish": 402118, "too-many-weights": 911},
        stop_reason="32 evaluations done",
    )
