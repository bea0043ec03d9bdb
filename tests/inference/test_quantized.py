"""Networks on codes of 8 bits: what code computes, against the network with rounded values."""

from __future__ import annotations

import math
import pickle
import re
import subprocess

import numpy as np
import pytest
import torch
from tests.inference import bundles
from tests.inference.grammar import inputs, network
from torch import nn
from torch.nn import functional

import syno
from marks import slow_but
from syno import UserError
from syno.codegen.export import cross, export_network
from syno.codegen.export.write import network_subject
from syno.codegen.native import QUICK_FLAGS
from syno.inference import quantize
from syno.inference.codes import Codes
from syno.inference.library import load as loading
from syno.inference.library.lower import lower
from syno.inference.library.source import emit
from syno.inference.quantization import layers as quantized_layers
from syno.operators import zoo
from syno.operators.layer import Layer
from syno.runs.helper_process import find_program

pytestmark = pytest.mark.usefixtures("one_torch_thread")
SIZE = 8
_PLAIN = tuple(flag for flag in QUICK_FLAGS if flag != "-march=native")
FLAGS = {"no AVX-512": (*QUICK_FLAGS, "-mno-avx512f"), "any processor": _PLAIN}


def power_of_two(value: float) -> float:
    return 2.0 ** math.ceil(math.log2(value))


@pytest.fixture
def exact(monkeypatch):
    """Scales are powers of two: sums of float32 are exact then, and there is one right result."""
    between = Codes.between.__func__

    def rounded(cls, least, most):
        found = between(cls, least, most)
        scale = power_of_two(found.scale)
        return Codes(scale, min(255, max(0, round(-min(least, 0.0) / scale))))

    monkeypatch.setattr(Codes, "between", classmethod(rounded))
    plain = quantized_layers.scale_of
    monkeypatch.setattr(
        quantized_layers, "scale_of", lambda most: 2.0 ** torch.ceil(torch.log2(plain(most)))
    )
    monkeypatch.setattr(loading, "FLAGS", QUICK_FLAGS)


class Block(nn.Module):
    """A layer with a residual."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return functional.relu(self.layers(x) + x)


class Joined(nn.Module):
    """Branches side by side."""

    def __init__(self, *branches, dim=1):
        super().__init__()
        self.branches = nn.ModuleList(branches)
        self.dim = dim

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], self.dim)


class Shuffled(nn.Module):
    """Half of the channels go through a layer; then the channels of both halves take turns."""

    def __init__(self, channels):
        super().__init__()
        self.layer = nn.Conv2d(channels // 2, channels // 2, 1)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        y = torch.cat([a, self.layer(b).relu()], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class Scaled(nn.Module):
    """Channels times what the means of the channels say."""

    def __init__(self, channels):
        super().__init__()
        self.layer = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return x * functional.relu(self.layer(x.mean((2, 3), keepdim=True)))


class Both(nn.Module):
    """A value that a layer reads, and another function, too."""

    def __init__(self, channels):
        super().__init__()
        self.layer = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return self.layer(x) + torch.maximum(x, x.flip(3))


def conv(i, o, k=3, **more):
    return nn.Conv2d(i, o, k, padding=more.pop("padding", k // 2), **more)


class Slot(nn.Module):
    """An operator of the zoo."""

    def __init__(self, name, **sizes):
        super().__init__()
        self.kernel = Layer(zoo.load(name), {**zoo.binding(name), "N": 1, **sizes})

    def forward(self, x):
        return self.kernel(x)


class Dead(nn.Conv2d):
    """A convolution with a channel of zeros."""

    def __init__(self, i, o):
        super().__init__(i, o, 3, padding=1)
        with torch.no_grad():
            self.weight[1] = 0
            self.bias[:2] = 0


CASES = {
    "convolution": lambda: [conv(3, 8)],
    "stem": lambda: [conv(3, 16, 7, stride=2, padding=3), nn.ReLU(), conv(16, 8)],
    "one channel": lambda: [conv(1, 8), nn.ReLU(), conv(8, 8)],
    "two": lambda: [conv(3, 8), nn.ReLU(), conv(8, 12)],
    "odd": lambda: [conv(3, 5), nn.ReLU(), conv(5, 7, 5), nn.ReLU(), conv(7, 3, 1)],
    "negative": lambda: [conv(3, 8), conv(8, 8), conv(8, 8)],
    "residual": lambda: [conv(3, 16), Block(conv(16, 16), nn.ReLU(), conv(16, 16)), conv(16, 16)],
    "residuals": lambda: [conv(3, 20), *[Block(conv(20, 20)) for _ in range(3)]],
    "depthwise": lambda: [
        conv(3, 24),
        nn.ReLU6(),
        conv(24, 24, groups=24),
        nn.ReLU6(),
        conv(24, 8, 1),
    ],
    "grouped": lambda: [conv(3, 16), nn.ReLU(), conv(16, 32, groups=4), nn.ReLU(), conv(32, 8, 1)],
    "strided": lambda: [conv(3, 8, stride=2), nn.ReLU(), conv(8, 8, stride=2), conv(8, 8, 1)],
    "dilated": lambda: [
        conv(3, 8),
        nn.ReLU(),
        conv(8, 8, dilation=2, padding=2),
        nn.ReLU(),
        conv(8, 8),
    ],
    "asymmetric": lambda: [
        conv(3, 8, padding=0),
        nn.ZeroPad2d((1, 2, 0, 1)),
        conv(8, 8, padding=0),
    ],
    "transposed": lambda: [
        conv(3, 8),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 8, 2, stride=2),
        conv(8, 4),
    ],
    "maximum": lambda: [
        conv(3, 16),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        conv(16, 8),
        nn.MaxPool2d(2),
    ],
    "average": lambda: [conv(3, 16), nn.ReLU(), nn.AvgPool2d(2), conv(16, 8)],
    "averages": lambda: [
        conv(3, 21),
        nn.AvgPool2d(2, 2, ceil_mode=True),
        conv(21, 16),
        nn.AvgPool2d(4, 2, 1, count_include_pad=False),
        conv(16, 33),
        nn.AvgPool2d(2, 1, 1, divisor_override=8),
        conv(33, 8),
    ],
    "classifier": lambda: [
        conv(3, 24),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 10),
    ],
    "flattened": lambda: [conv(3, 8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * SIZE * SIZE, 10)],
    "joined": lambda: [
        conv(3, 8),
        nn.ReLU(),
        Joined(conv(8, 8), nn.Identity(), conv(8, 4, 1)),
        conv(20, 8),
    ],
    "joined pools": lambda: [conv(3, 8), Joined(nn.MaxPool2d(3, 1, 1), conv(8, 8, 1)), conv(16, 8)],
    "shuffled": lambda: [conv(3, 16), nn.ReLU(), Shuffled(16), Shuffled(16), conv(16, 8)],
    "scaled": lambda: [conv(3, 16), nn.ReLU(), Scaled(16), conv(16, 8)],
    "read twice": lambda: [conv(3, 8), Both(8), Both(8)],
    "upsampled": lambda: [conv(3, 8), nn.ReLU(), nn.Upsample(scale_factor=2), conv(8, 8)],
    "pixels": lambda: [
        conv(3, 16),
        nn.ReLU(),
        nn.PixelShuffle(2),
        conv(4, 8),
        nn.PixelUnshuffle(2),
        conv(32, 8, 1),
    ],
    "by hand": lambda: [conv(3, 8), nn.LeakyReLU(0.25), conv(8, 8), nn.Hardtanh(-1, 1), conv(8, 8)],
    "dead": lambda: [Dead(3, 8), nn.ReLU(), conv(8, 8)],
    "operator-1": lambda: [conv(3, 24), nn.ReLU(), Slot("operator-1", C_in=24, C_out=48, H=SIZE)],
    "operator-2": lambda: [
        conv(3, 24),
        nn.ReLU(),
        Slot("operator-2", C_in=24, C_out=48, H=SIZE),
        nn.ReLU(),
        conv(48, 8),
    ],
}


def library(quantized, folder, change=lambda code: code):
    source = emit(lower(quantized.graph), "net", file="net.cpp")
    (folder / "net.cpp").write_text(change(source.code))
    (folder / "net.bin").write_bytes(source.weights)
    return syno.inference.load(folder / "net.cpp"), source.code


def samples(count, *shape):
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(count))


def check_exact(net, folder, shape, change=lambda code: code):
    x = samples(6, *shape)
    quantized = quantize(net, x.split(3))
    assert {row.format for row in quantized.rows} == {"int8"}, str(quantized.report())
    run, code = library(quantized, folder, change)
    for batch in (x[:1], samples(5, *shape)):
        with torch.no_grad():
            wanted = quantized(batch).numpy()
        for threads in (1, 2):
            np.testing.assert_array_equal(run(batch.numpy(), threads=threads), wanted)
    return code


def case(name):
    torch.manual_seed(0)
    net = nn.Sequential(*CASES[name]()).eval()
    return net, (1 if name == "one channel" else 3, SIZE, SIZE)


QUICK = (
    "stem",
    "residual",
    "depthwise",
    "dilated",
    "joined pools",
    "shuffled",
    "scaled",
    "operator-1",
)


@pytest.mark.parametrize("name", slow_but(CASES, *QUICK))
def test_code_is_exact(name, exact, tmp_path):
    net, shape = case(name)
    check_exact(net, tmp_path, shape)


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["no AVX-512", "any processor"])
@pytest.mark.parametrize("name", CASES)
def test_code_for_other_processors_is_exact(name, flags, exact, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "FLAGS", FLAGS[flags])
    net, shape = case(name)
    check_exact(net, tmp_path, shape)


TRIPLE = "aarch64-linux-gnu"
# Instructions of products of codes, by the options that have them.
ARM = {"-march=armv8-a": "", "-mcpu=cortex-a76": "sdot", "-march=armv8.6-a": "usdot"}


@pytest.mark.skipif(
    find_program(f"{TRIPLE}-g++") is None or find_program("qemu-aarch64") is None,
    reason=f"no cross compiler or emulator for {TRIPLE}",
)
@pytest.mark.parametrize("processor", slow_but(ARM, "-mcpu=cortex-a76"))
@pytest.mark.parametrize("name", slow_but(CASES, "operator-1"))
def test_code_for_arm_is_exact(name, processor, exact, tmp_path):
    net, shape = case(name)
    quantized = quantize(net, samples(6, *shape).split(3))
    written = export_network(
        quantized, tmp_path / "net", torch.zeros(1, *shape), format="cpp-network"
    )
    subject = network_subject(quantized, torch.zeros(1, *shape))
    found = cross.check(written, subject, f"{TRIPLE} {processor}", tolerance=0)
    assert found.passed, found.output
    compiler = cross.cross_compiler(f"{TRIPLE} {processor}")
    command = [*compiler, "-std=c++17", "-O3", "-S", str(written.code), "-o", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = set(re.findall(r"^\s+(u?sdot)\s", text, re.MULTILINE))
    # Words of four codes need as many channels.
    assert used == ({ARM[processor]} - {""} if name != "odd" else set())


class Tokens(nn.Module):
    """Linear layers of tokens, with channels last, and a mean."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 12))
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        y = x + self.layers(x)
        return self.head((y + self.layers(y)).mean(1))


class Heads(nn.Module):
    """What attention does with the channels of tokens: parts of them stand before the tokens."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(12, 12), nn.Linear(12, 5)

    def forward(self, x):
        y = self.first(x).unflatten(2, (3, 4)).permute(0, 2, 1, 3)
        return self.last(torch.maximum(y, 0.5 * y).transpose(1, 2).flatten(2))


def test_tokens_and_signals_are_exact(exact, tmp_path):
    torch.manual_seed(0)
    check_exact(Tokens().eval(), tmp_path, (4, 12))
    # Codes lie as the layer behind them reads them.
    assert "// copy in order" not in check_exact(Heads().eval(), tmp_path, (8, 12))
    signal = nn.Sequential(nn.Conv1d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv1d(8, 4, 3)).eval()
    check_exact(signal, tmp_path, (3, 16))


# A text of the code, and what stands there with the bug.
BUGS = {
    "maxima of other columns": (
        "const long h = i / kOw * kSh - kPh,",
        "const long h = i / kOw * kSh,",
    ),
    "channels in turns": ("store_words(y + 4 * i, v[0], v[1]", "store_words(y + 4 * i, v[1], v[0]"),
    "means of other pixels": (
        "widened(load_bytes(x.at + p * distance))",
        "widened(load_bytes(x.at))",
    ),
    "zeros of a map": ("(v - splat(codes.zero)) * splat(codes.scale)", "v * splat(codes.scale)"),
}
SHOWN_BY = ("maximum", "stem", "scaled", "read twice")


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(bug, exact, tmp_path):
    old, new = BUGS[bug]

    def changed(code):
        assert old in code
        return code.replace(old, new)

    with pytest.raises(AssertionError, match="not equal"):
        for name in SHOWN_BY:
            net, shape = case(name)
            check_exact(net, tmp_path, shape, changed)


def test_maps_between_layers_are_codes(exact, tmp_path):
    net, shape = case("residual")
    code = check_exact(net, tmp_path, shape)
    steps = code.split("struct Image :")[1]
    assert steps.count("layer(") == 5 + 1  # the calls, and its definition
    assert steps.count("bytes_at") >= 7
    # The only other steps are the input as codes, and the result in order.
    assert steps.count("void step_") == 4 + 2


def test_layers_may_be_kept(exact, tmp_path):
    net, shape = case("residual")
    quantized = quantize(net, [samples(4, *shape)], keep=["1"])
    assert [row.format for row in quantized.rows] == ["int8", "float32", "float32", "int8"]
    assert quantized.rows[1].reason == "it is kept"
    assert "it is kept" in str(quantized.report())
    run, _ = library(quantized, tmp_path)
    x = samples(3, *shape)
    with torch.no_grad():
        np.testing.assert_allclose(run(x.numpy()), quantized(x).numpy(), rtol=0, atol=1e-5)


def test_quantization_changes_little(tmp_path):
    net, shape = case("residuals")
    x = samples(16, *shape)
    quantized = quantize(net, x.split(4))
    assert quantized.images == 16
    assert all(0 < row.error < 0.05 for row in quantized.rows)
    with torch.no_grad():
        off = (quantized(x) - net(x)).norm() / net(x).norm()
    assert 1e-4 < off < 0.05
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            net.state_dict().values(), case("residuals")[0].state_dict().values(), strict=True
        )
    )


def test_it_is_written_as_cpp_network(tmp_path):
    net, shape = case("classifier")
    x = samples(4, *shape)
    quantized = quantize(net, [x])
    written = export_network(quantized, tmp_path / "net", x, format="cpp-network")
    found = syno.inference.load(written.code)(x.numpy())
    np.testing.assert_allclose(found, quantized(x).numpy(), atol=0.05)
    with pytest.raises(UserError, match="the format 'aoti' does not have the precision 'int8'"):
        export_network(quantized, tmp_path / "net", x, format="aoti")
    with pytest.raises(UserError, match="the network has no ranges for int8"):
        export_network(net, tmp_path / "net", x, format="cpp-network", precision="int8")
    with pytest.raises(UserError, match="the network is quantized already"):
        quantize(quantized, [x])


def test_weights_of_another_precision_are_refused(tmp_path):
    net, shape = case("classifier")
    x = samples(4, *shape)
    quantized = export_network(quantize(net, [x]), tmp_path / "codes", x, format="cpp-network")
    plain = export_network(net, tmp_path / "plain", x, format="cpp-network")
    other = export_network(quantize(net, [2 * x]), tmp_path / "other", x, format="cpp-network")
    for weights in (plain.weights, other.weights):  # of other ranges, too
        with pytest.raises(UserError, match="has the weights of another network"):
            syno.inference.load(quantized.code, weights)


def test_it_is_compiled_for_pytorch(exact):
    net, shape = case("residual")
    x = samples(6, *shape)
    quantized = quantize(net, [x])
    made = pickle.loads(pickle.dumps(syno.compile(quantized, x)))
    with torch.no_grad():
        for batch in (x, x[:1], x[:, :, :, :].transpose(2, 3)):
            assert torch.equal(made(batch), quantized(batch))
    assert str(made.report()) == str(quantized.report())
    with pytest.raises(UserError, match="was compiled for another shape of its input"):
        made(samples(2, 3, SIZE, SIZE + 1))
    with pytest.raises(UserError, match="is of another kind"):
        made(x.double())
    with pytest.raises(UserError, match="cannot be traced"):
        torch.jit.trace(made, x, check_trace=False)


IMAGE = (3, SIZE, SIZE)
REFUSED = {
    "NaN": ([torch.full((2, *IMAGE), math.nan)], "has values that are not finite"),
    "nothing": ([], "there are no images to calibrate on"),
    "no samples": ([torch.zeros(0, *IMAGE)], "is empty"),
    "other shapes": ([torch.zeros(2, *IMAGE), torch.zeros(2, 3, 9, 9)], "is not like the first"),
    "other channels": ([torch.zeros(2, 5, SIZE, SIZE)], "fails on"),
    "one tensor": (torch.zeros(2, *IMAGE), "are one tensor"),
    "far numbers": ([torch.full((2, *IMAGE), 3.3e38)], "numbers that are not finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_samples_are_refused(name):
    given, words = REFUSED[name]
    net, _ = case("residuals")
    with pytest.raises(UserError, match=words):
        quantize(net, given)


def test_samples_that_are_all_zero_give_codes():
    net, shape = case("classifier")
    quantized = quantize(net, [torch.zeros(2, *shape)])
    with torch.no_grad():
        assert quantized(samples(2, *shape)).isfinite().all()


class Decides(nn.Module):
    """Control flow that depends on values."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.layer(x) if x.sum() > 0 else x


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (nn.Sequential(nn.ReLU(), nn.Flatten()), "has no layer to quantize"),
        (Decides(), "cannot be traced|cannot trace"),
        (nn.Sequential(nn.Conv2d(3, 8, 3)).train(), "is in training mode"),
    ],
)
def test_networks_that_are_refused(net, words):
    net = net if net.training and "training" in words else net.eval()
    with pytest.raises(UserError, match=words):
        quantize(net, [samples(2, *IMAGE)])


def test_an_unknown_layer_to_keep_is_refused():
    net, shape = case("classifier")
    with pytest.raises(
        UserError, match=r"no layer to keep in float32 is called 'stem'\n.*expected: .*0"
    ):
        quantize(net, [samples(2, *shape)], keep=["stem"])
    with pytest.raises(UserError, match="keep"):
        quantize(net, [samples(2, *shape)], keep="0")


@pytest.mark.parametrize(
    "seeds",
    slow_but([range(2), range(2, 4), *(range(k, k + 20) for k in range(100, 500, 20))], range(2)),
)
def test_random_networks(seeds, tmp_path):
    """What code computes is what rounded values give, but for those between two codes."""
    computed = 0
    for seed in seeds:
        net = network(seed, one_result=True).eval()
        given = inputs(net, 6)
        if not bundles.has_code(net, []):
            continue
        try:
            quantized = quantize(net, [given[0]])
        except UserError as error:
            assert "has no layer to quantize" in str(error)
            continue
        written = export_network(quantized, tmp_path / str(seed), given[0], format="cpp-network")
        x = inputs(net, 5)[0]
        found, wanted = bundles.library(written.code)(x), quantized(x)
        assert (found - wanted).norm() <= 0.05 * wanted.norm() + 1e-6, bundles.said(net, str(seed))
        computed += 1
    assert computed >= len(seeds) / 4
