"""What `syno.quantize` says to calibration data and networks that it cannot take."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from syno import UserError
from syno.inference import quantize
from syno.inference.quantization.ranges import Range

pytestmark = pytest.mark.usefixtures("one_torch_thread")

X = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
NAN, INFINITE = X.clone(), X.clone()
NAN[0, 0, 0, 0] = torch.nan
INFINITE[3, 2, 7, 7] = -torch.inf

CALIBRATIONS = {
    "no batches": ([], "no images to calibrate on"),
    "one tensor": (X, r"one tensor \[4, 3, 8, 8\]\n.*batches.*images\.split"),
    "pairs of a loader": ([(X, torch.zeros(4))], r"batch 1.*tuple of 2\n.*\n.*for inputs, targets"),
    "lists of a loader": ([[X, torch.zeros(4)]], "batch 1.*list of 2"),
    "nothing": (None, "no batches\n.*got: None"),
    "a text": ("images", "no batches\n.*got: 'images'"),
    "a dict": ({"x": X}, "no batches\n.*got: a dict"),
    "an array": ([X.numpy()], r"batch 1.*not a tensor\n.*torch\.as_tensor"),
    "NaN": ([NAN], "batch 1.*not finite"),
    "infinity later": ([X, INFINITE], "batch 2.*not finite"),
    "no samples": ([X[:0]], r"batch 1.*empty\n.*got: \[0, 3, 8, 8\]"),
    "one number": ([torch.tensor(1.0)], r"batch 1.*empty"),
    "other sizes": ([X, X[..., 1:]], r"batch 2.*not like the first\n.*\['n', 3, 8, 8\]"),
    "other channels": ([X[:, :1]], "expected input.*to have 3 channels"),
    "doubles": ([X.double()], r"batch 1.*float64\n.*use \.float"),
    "complex numbers": ([X + 1j], "batch 1.*complex numbers"),
    "a sparse tensor": ([X.to_sparse()], r"batch 1.*\n.*use \.to_dense"),
    "no values": ([X.to("meta")], "batch 1.*device meta"),
}


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_calibration_data_that_is_none_is_refused(name: str) -> None:
    given, text = CALIBRATIONS[name]
    with pytest.raises(UserError, match=text):
        quantize(small(), given)


def broken() -> nn.Module:
    net = small()
    with torch.no_grad():
        net[0].weight.fill_(torch.nan)
    return net


NETWORKS = {
    "weights of NaN": (broken, "computes NaN for the calibration data"),
    "half precision": (lambda: small().half(), r"'0\.weight' has the type torch\.float16"),
    "bfloat16": (lambda: small().bfloat16(), r"'0\.weight' has the type torch\.bfloat16"),
    "no values": (lambda: small().to("meta"), r"'0\.weight' is on the device meta"),
    "no sizes yet": (lambda: nn.Sequential(nn.LazyConv2d(4, 3)).eval(), "no values yet"),
    "no layers": (lambda: nn.Sequential(nn.ReLU()).eval(), "has no layer to quantize"),
    "training": (lambda: small().train(), "is in training mode"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_that_cannot_be_quantized_are_refused(name: str) -> None:
    make, text = NETWORKS[name]
    with pytest.raises(UserError, match=text):
        quantize(make(), [X])


@pytest.mark.parametrize(
    "kept", [nn.PReLU(4), nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular")]
)
def test_what_has_no_integers_stays_in_float32(kept: nn.Module) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), kept).eval()
    made = quantize(net, [X])
    (first, *_) = made.rows
    assert (first.name, first.format, first.macs) == ("0", "int8", 4 * 27 * 64)
    with torch.no_grad():
        assert (made(X) - net(X)).abs().max() < 0.06 * net(X).abs().max()


class Spikes(nn.Module):
    """Its result is that of rare large values."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 4, 1, bias=False)
        self.second = nn.Conv2d(4, 4, 1, bias=False)
        with torch.no_grad():
            self.first.weight.copy_(torch.eye(4)[..., None, None])
            self.second.weight.copy_(torch.eye(4)[..., None, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x))).amax((2, 3))


@pytest.mark.parametrize("others", [True, False])
def test_ranges_are_those_that_change_the_results_least(others, monkeypatch) -> None:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(40, 4, 16, 16, generator=random)
    x = torch.where(torch.rand(x.shape, generator=random) < 1e-3, 6 + 6 * x.abs(), x)
    if not others:  # those of least square error alone, which cut off what is rare
        codes = Range.codes
        monkeypatch.setattr(Range, "codes", lambda self, whole: codes(self, whole=False))
    error = quantize(Spikes().eval(), [x]).error
    assert error < 0.01 if others else error > 0.015
