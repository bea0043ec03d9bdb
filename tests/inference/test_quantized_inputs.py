"""Quantized networks with several inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import syno
from marks import slow_but
from syno import UserError
from syno.codegen.export import export_network
from syno.inference import quantize

pytestmark = pytest.mark.usefixtures("one_torch_thread")


class Both(nn.Module):
    """Maps [N, 8, 6, 6] and tokens [N, 3], and perhaps numbers [N, 16] -> [N, 5] and [N, 16]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, padding=1)
        self.words = nn.Embedding(7, 16)
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 5)

    def forward(
        self, x: torch.Tensor, tokens: torch.Tensor, more: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(self.conv(x)).mean((2, 3)) + self.words(tokens).mean(1)
        y = torch.relu(self.mix(y if more is None else y + more))
        return self.head(y), y


@pytest.fixture(scope="module")
def net() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Both().eval()


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    random = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(4, 8, 6, 6, generator=random),
            torch.randint(7, (4, 3), generator=random),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("formats", slow_but(["int8", "auto"], "int8"))
def test_a_network_of_several_inputs_is_quantized(net, formats, tmp_path):
    made = quantize(net, batches(3), formats=formats)
    assert made.images == 12 and {row.name for row in made.rows} == {"conv", "mix", "head"}
    x = batches(4)[-1]
    with torch.no_grad():
        results, expected = made(*x), net(*x)
    for one, other in zip(results, expected, strict=True):
        assert (one - other).norm() < 0.05 * other.norm()
    code = export_network(made, tmp_path / "net", x, format="cpp-network").code
    for one, other in zip(syno.inference.load(code)(*map(np.asarray, x)), results, strict=True):
        assert np.abs(one - other.numpy()).max() < 0.02 * float(other.abs().max())
    compiled = syno.compile(made, x)
    for one, other in zip(compiled(*x), results, strict=True):
        assert (one - other).abs().max() < 0.02 * other.abs().max()


X, T = batches(1)[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([X], "batch 1 of the calibration data is not like the arguments of the network\n"),
        ([(X, T), (X, T, X)], "batch 2 of the calibration data is not like the arguments"),
        (
            [(X, T[:2])],
            "has inputs of different numbers of samples\n  expected: one      got: 4, 2",
        ),
        ([(X, T), (X[:, :1], T)], "batch 2 of the calibration data is not like the first\n"),
        ([(X * float("nan"), T)], "input 1 of batch 1 of the calibration data has values that are"),
        ([(X, "words")], "input 2 of batch 1 of the calibration data"),
        ([], "there is no data to calibrate on"),
        (X, "the calibration data is no batches\n  expected: tuples of the 2 inputs"),
        ({"x": X}, "the calibration data is no batches\n"),
    ],
)
def test_batches_that_do_not_fit_are_refused(net, given, message):
    with pytest.raises(UserError) as caught:
        quantize(net, given)
    assert message in str(caught.value)


def test_pairs_of_a_loader_are_no_inputs_of_a_network_of_one_input():
    net = nn.Sequential(nn.Conv2d(8, 4, 1), nn.Flatten()).eval()
    with pytest.raises(UserError, match="without targets"):
        quantize(net, [(X, T)])  # type: ignore[list-item]
