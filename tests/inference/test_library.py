"""A network as one C++ library: values, memory, files, errors."""

import math
import os
import shlex
import subprocess
import sys
import threading
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_leaves

from marks import slow_but
from syno import UserError, models
from syno.codegen.export import export_network, formats
from syno.codegen.export.write import network_subject, operator_subject
from syno.codegen.native import find_compiler
from syno.inference import load
from syno.inference.library import program as memory
from syno.inference.library.lower import lower
from syno.inference.library.source import checksum
from syno.inference.prepare import prepare
from syno.operators import zoo

pytestmark = pytest.mark.usefixtures("one_torch_thread")

# Functions of a map [N, 6, 9, 8], all in one network, so that it is compiled once.
SHAPE = (6, 9, 8)


def attention(x, **options):
    q, k, v = x.reshape(-1, 6, 9, 8).transpose(2, 3), x.transpose(2, 3), x.transpose(2, 3) * 2
    return F.scaled_dot_product_attention(q, k, v, **options)


def volume(x):
    return x.reshape(-1, 6, 3, 3, 8)


PLAIN = {
    "max pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max pool, ceil": lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
    "max pool, 3x2": lambda x: F.max_pool2d(x, (3, 2), (1, 2)),
    "average pool": lambda x: F.avg_pool2d(x, 2),
    "average pool, ceil": lambda x: F.avg_pool2d(x, 2, ceil_mode=True),
    "average pool, padded": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "average pool, not counted": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "average pool, divisor": lambda x: F.avg_pool2d(x, 3, divisor_override=4),
    "max pool of a part": lambda x: F.max_pool2d(x[:, 1:, 1:, 2:7], 3, 2, 1),
    "max pool of a transposed map": lambda x: F.max_pool2d(x.transpose(2, 3), 2),
    "max pool of columns apart": lambda x: F.max_pool2d(x[..., ::2], 2),
    "average pool of a part": lambda x: F.avg_pool2d(x[:, ::2, :6, :5], 3, 1, 1),
    "average pool of maps in another order": lambda x: F.avg_pool2d(
        x.unflatten(1, (2, 3)).transpose(1, 2).flatten(1, 2)[..., 1:], 2
    ),
    "average pool of one map": lambda x: F.avg_pool2d(x[:, 2:3, 1:, 1:], 2),
    "adaptive of a part": lambda x: F.adaptive_avg_pool2d(x[:, :, 1:8, 1:7], (3, 2)),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive, 4x3": lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
    "max pool of signals": lambda x: F.max_pool1d(x.flatten(2), 5, 3, 2),
    "average pool of signals": lambda x: F.avg_pool1d(x.flatten(2), 4, 3, 1, ceil_mode=True),
    "average pool of signals, not counted": lambda x: F.avg_pool1d(
        x.flatten(2), 5, padding=2, count_include_pad=False
    ),
    "adaptive of signals": lambda x: F.adaptive_avg_pool1d(x.flatten(2), 7),
    "max pool of volumes": lambda x: F.max_pool3d(volume(x), (2, 3, 3), (1, 2, 2), (0, 1, 1)),
    "average pool of volumes": lambda x: F.avg_pool3d(volume(x), 3, 2, 1),
    "average pool of volumes, not counted": lambda x: F.avg_pool3d(
        volume(x), 3, (1, 2, 2), 1, ceil_mode=True, count_include_pad=False
    ),
    "average pool of volumes, divisor": lambda x: F.avg_pool3d(volume(x), 2, divisor_override=5),
    "adaptive of volumes": lambda x: F.adaptive_avg_pool3d(volume(x), (2, 3, 5)),
    "mean of maps": lambda x: x.mean((2, 3)),
    "mean of channels": lambda x: x.mean(1, keepdim=True),
    "relu": torch.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "hardswish": F.hardswish,
    "tanh": torch.tanh,
    "sum": lambda x: x + 1.5,
    "of channels": lambda x: x * torch.sigmoid(x.mean((2, 3), keepdim=True)),
    "difference": lambda x: 1 - x.mean(1, keepdim=True) - x,
    "quotient": lambda x: x / (x * x + 2),
    "alpha": lambda x: torch.sub(x, x * x, alpha=0.5),
    "power": lambda x: x**3,
    "transposed": lambda x: x.permute(0, 2, 3, 1) * 2,
    "transposed and flat": lambda x: x.permute(0, 2, 3, 1).flatten(1, 2),
    "part": lambda x: x[:, 2:5, 1:, ::2],
    "one": lambda x: x.select(2, 3) * 3,
    "halves": lambda x: x.chunk(2, 1)[1] * x.chunk(2, 1)[0],
    "joined": lambda x: torch.cat([x, x * 2, x[:, :1]], 1),
    "joined in rows": lambda x: torch.cat([x[..., :3], x], 3),
    "softmax": lambda x: F.softmax(x * 5, -1),
    "layer norm": lambda x: F.layer_norm(x, (8,), torch.arange(8.0), torch.ones(8)),
    "layer norm of maps": lambda x: F.layer_norm(x, (9, 8)),
    "padded": lambda x: F.pad(x, (1, 2, 0, 1)),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest, 7x11": lambda x: F.interpolate(x, (7, 11)),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear, 5x13, corners": lambda x: F.interpolate(
        x, (5, 13), mode="bilinear", align_corners=True
    ),
    "pixel shuffle": lambda x: F.pixel_shuffle(x[:, :4], 2),
    "pixel unshuffle": lambda x: F.pixel_unshuffle(x[:, :, 1:], 2),
    "group norm": lambda x: F.group_norm(x, 3, torch.arange(6.0), torch.ones(6)),
    "group norm, plain": lambda x: F.group_norm(x * 3, 2, eps=0.1),
    "leaky": lambda x: F.leaky_relu(x, 0.2),
    "product": lambda x: x @ x.transpose(2, 3),
    "product, wide": lambda x: x.transpose(2, 3) @ torch.cat([x] * 9, 3),
    "attention": attention,
    "attention, heads joined": lambda x: attention(x).transpose(1, 2).reshape(-1, 8, 54),
    "attention, causal mask": lambda x: attention(x, attn_mask=torch.ones(8, 8).tril().bool()),
    "attention, causal": lambda x: attention(x, is_causal=True),
    "attention, masked": lambda x: attention(
        x, attn_mask=torch.ones(8, 8).tril().bool(), scale=2.0
    ),
}


class Plain(nn.Module):
    """All functions side by side."""

    def forward(self, x):
        """Their results in one row."""
        return torch.cat([function(x).flatten(1) for function in PLAIN.values()], 1)


class Block(nn.Module):
    """Layers with epilogues, a norm of its own, and a joined map."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.head = nn.Linear(16, 5)
        self.norm.running_mean.normal_(generator=torch.Generator().manual_seed(1))

    def forward(self, x):
        """Scores."""
        x = self.first(x)
        y = F.relu(self.second(F.relu(self.norm(x))) + x)
        return self.head(torch.cat([x, y], 1).mean((2, 3)))


def written(net, folder, shape, name="net"):
    return export_network(net.eval(), folder / name, torch.zeros(1, *shape), format="cpp-network")


@pytest.fixture(scope="module")
def block(tmp_path_factory):
    torch.manual_seed(0)
    net = Block().eval()
    return net, written(net, tmp_path_factory.mktemp("block"), (3, 8, 8))


@pytest.mark.slow
@torch.no_grad()
def test_plain_functions_compute_what_torch_does(tmp_path):
    net = Plain().eval()
    network = load(written(net, tmp_path, SHAPE).code)
    x = torch.randn(3, *SHAPE, generator=torch.Generator().manual_seed(5))
    for threads in (1, 2, 5):
        y, begin = torch.from_numpy(network(x.numpy(), threads=threads)), 0
        for name, function in PLAIN.items():
            expected = function(x).flatten(1)
            found = y[:, begin : begin + expected.shape[1]]
            begin += expected.shape[1]
            close = torch.allclose(found, expected, atol=1e-5, rtol=1e-5)
            assert close, f"{name}: {(found - expected).abs().max()}"
        assert begin == y.shape[1]


@torch.no_grad()
def test_layers_and_threads(block):
    net, files = block
    network = load(files.code)
    assert network.input_shapes == ((3, 8, 8),)
    assert network.output_shapes == ((5,),)
    for batch in (0, 1, 2, 3, 7):
        x = torch.randn(batch, 3, 8, 8)
        for threads in (1, 2, 3):
            y = network(x.numpy(), threads=threads)
            np.testing.assert_allclose(y, net(x).numpy(), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_steps_have_names_and_times(block):
    net, files = block
    network = load(files.code)
    x = np.zeros((2, 3, 8, 8), np.float32)
    steps = network.step_seconds(x, threads=2)
    named = {name for step in steps if step.layer for name in step.name.split(", ")}
    kinds = (torch.nn.Conv2d, torch.nn.Linear)
    layers = {name for name, module in net.named_modules() if isinstance(module, kinds)}
    assert layers and layers <= named
    assert all(step.seconds > 0 for step in steps if step.layer)
    assert 0 < network.layer_seconds(x) < 10
    assert all(step.seconds == 0 for step in network.step_seconds(x[:0]))


@torch.no_grad()
def test_several_threads_of_python_use_one_network(block):
    net, files = block
    network = load(files.code)
    inputs = [torch.randn(2, 3, 8, 8) for _ in range(4)]
    expected = [net(x).numpy() for x in inputs]
    right = []

    def call(x, y):
        right.extend(np.allclose(network(x.numpy(), threads=2), y, atol=1e-5) for _ in range(50))

    team = [threading.Thread(target=call, args=pair) for pair in zip(inputs, expected, strict=True)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert right == [True] * 200


def test_files_are_checked(block, tmp_path):
    _, files = block
    weights = tmp_path / "other.bin"
    good = files.weights.read_bytes()

    def refused(content, message):
        weights.write_bytes(content)
        with pytest.raises(UserError, match=message):
            load(files.code, weights)

    refused(good[:-4], "has another length than its head says")
    refused(good + b"1234", "has another length than its head says")
    refused(good[:30], "is no file of weights of a network")
    refused(b"x" + good[1:], "is no file of weights of a network")
    refused(good[:8] + b"12345678" + good[16:], "has the weights of another network")
    damaged = bytearray(good)
    damaged[len(good) // 2] ^= 4
    refused(bytes(damaged), "is damaged: its checksum differs")
    with pytest.raises(UserError, match="cannot open the file of weights"):
        load(files.code, tmp_path / "none.bin")
    with pytest.raises(UserError, match="cannot read"):
        load(tmp_path / "none.cpp")
    other = tmp_path / "other.cpp"
    other.write_text("int x;\n")
    with pytest.raises(UserError, match="is not the code of a network"):
        load(other)


def test_the_checksum_sees_exchanged_and_changed_words():
    content = np.arange(1000, dtype=np.float32)
    swapped = content.copy()
    swapped[[3, 700]] = swapped[[700, 3]]
    changed = content.copy()
    changed[17] += 1
    sums = {checksum(each.tobytes()) for each in (content, swapped, changed)}
    assert len(sums) == 3


def test_input_is_checked(block):
    network = load(block[1].code)
    with pytest.raises(UserError, match=r"expected: \['n', 3, 8, 8\] {6}got: \[1, 3, 8, 9\]"):
        network(np.zeros((1, 3, 8, 9)))
    with pytest.raises(UserError, match="x does not contain numbers"):
        network(np.zeros((1, 3, 8, 8), complex))
    with pytest.raises(UserError, match="'threads'"):
        network(np.zeros((1, 3, 8, 8)), threads=0)


def test_a_missing_compiler_is_named(block, monkeypatch):
    find_compiler.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    try:
        with pytest.raises(UserError, match="there is no C\\+\\+ compiler 'no-such-compiler'"):
            load(block[1].code)
    finally:
        find_compiler.cache_clear()


LOAD = """
import sys
import numpy as np
from syno.inference import load

network = load(sys.argv[1])
print(float(np.abs(network(np.ones((1, 3, 8, 8)))).sum()))
"""


@pytest.mark.slow
def test_two_processes_that_compile_one_network_at_once_both_get_it(block, tmp_path):
    environment = os.environ | {"SYNO_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", LOAD, str(block[1].code)]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    expected = np.abs(load(block[1].code)(np.ones((1, 3, 8, 8)))).sum()
    assert [float(text) for text in said] == pytest.approx([expected, expected])


def test_a_program_links_the_library(block, tmp_path):
    net, files = block
    example = Path(__file__).parents[2] / "examples/cpp/run_network.cpp"
    program = tmp_path / "run_network"
    compiler = find_compiler()
    flags = ["-std=c++17", "-O1", "-march=native", *(["-fopenmp"] if compiler.threads else [])]
    sources = [str(files.code), str(example), f"-I{files.code.parent}"]
    subprocess.run([compiler.path, *flags, *sources, "-o", str(program)], check=True)
    done = subprocess.run([program, files.weights], capture_output=True, text=True, check=True)
    with torch.no_grad():
        expected = net(torch.full((1, 3, 8, 8), 0.5))[0]
    found = torch.tensor([float(line) for line in done.stdout.split()])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    wrong = subprocess.run([program, example], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert "is no file of weights of a network" in wrong.stderr


class Sorted(nn.Module):
    """A function without code."""

    def forward(self, x):
        """Sorted channels."""
        return x.sort(1).values


def test_what_is_not_covered_is_named(tmp_path):
    with pytest.raises(
        UserError, match=r"(?s)has no code for 'aten.sort.default'\n  in the module 0"
    ):
        written(nn.Sequential(Sorted()), tmp_path, (3, 8, 8))


class Heads(nn.Module):
    """Several outputs, nested: two of one layer, one of them a view, and an input."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        """A dictionary with a list."""
        y = torch.relu(self.body(x))
        return {"maps": [y, y.transpose(1, 3)], "classes": self.head(y.mean((2, 3))), "x": x}


def test_several_outputs(tmp_path):
    net = Heads().eval()
    files = written(net, tmp_path, (3, 5, 6))
    network = load(files.code)
    assert network.output_shapes == ((8, 5, 6), (6, 5, 8), (4,), (3, 5, 6))
    for batch, threads in ((1, 1), (3, 2), (4, 3)):
        x = torch.randn(batch, 3, 5, 6)
        with torch.no_grad():
            expected = tree_leaves(net(x))
        for y, each in zip(network(x.numpy(), threads=threads), expected, strict=True):
            assert np.allclose(y, each.numpy(), atol=1e-5)
    with pytest.raises(UserError, match="4 results"):
        export_network(net, tmp_path / "torch", torch.zeros(1, 3, 5, 6), format="torch-network")


@pytest.mark.parametrize("name", slow_but(["cpp-network", "torch-export", "onnx"], "cpp-network"))
def test_files_of_several_outputs_check_themselves(name, tmp_path):
    format_ = formats.get(name, networks=True)
    if (missing := format_.available()) is not None:
        pytest.skip(missing)
    subject = network_subject(Heads().eval(), torch.zeros(1, 3, 5, 6))
    run = format_.check(format_.write(subject, tmp_path / name), subject)
    assert run.passed, run.output


def test_several_inputs():
    class Two(nn.Module):
        def forward(self, x, y):
            return x + y[:, :1], y

    prepared = prepare(Two().eval(), (torch.zeros(1, 3), torch.zeros(1, 4)), batch=False)
    program = lower(prepared.graph)
    assert [value.shape for value in program.inputs] == [[1, 3], [1, 4]]
    assert [value.shape for value in program.outputs] == [[1, 3], [1, 4]]


def test_tensors_that_are_needed_at_the_same_time_do_not_overlap():
    torch.manual_seed(0)
    net = models.build("resnet-small", classes=10, channels=3, size=16).eval()
    found = lower(prepare(net, (torch.zeros(1, 3, 16, 16),), batch=False).graph)
    needed = {}
    for number, step in enumerate(found.steps):
        for value in (step.writes, *step.reads):
            if value.buffer.kind == memory.ARENA:
                first, _ = needed.setdefault(value.buffer, (number, number))
                needed[value.buffer] = (first, number)
    assert len(needed) > 10
    for (a, (a0, a1)), (b, (b0, b1)) in combinations(needed.items(), 2):
        if a0 <= b1 and b0 <= a1:
            assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert max(b.offset + b.size for b in needed) <= found.arena
    assert found.arena < 0.6 * sum(b.size for b in needed)
    assert all(b.offset % memory.LINE == 0 for b in needed)


class Dense(nn.Module):
    """Every layer reads all former ones; one is joined twice, and one after the others."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(4 * n, 4, 3, padding=1) for n in (1, 1, 2, 3))

    def forward(self, x):
        """All maps."""
        found = [self.layers[0](x)]
        for layer in list(self.layers)[1:]:
            found.append(F.relu(layer(torch.cat(found, 1))))
        return torch.cat([torch.cat(found, 1), found[1], found[0] + found[2]], 1)


@torch.no_grad()
def test_joined_tensors_are_computed_in_place(tmp_path):
    net = Dense().eval()
    steps = lower(prepare(net, (torch.zeros(1, 4, 5, 6),), batch=False).graph).steps
    # Four layers, a sum, and a copy of the map that stands in the result twice.
    assert len(steps) == 6
    network = load(written(net, tmp_path, (4, 5, 6)).code)
    x = torch.randn(3, 4, 5, 6)
    for threads in (1, 2):
        y = network(x.numpy(), threads=threads)
        np.testing.assert_allclose(y, net(x).numpy(), atol=1e-5, rtol=1e-5)


class Chained(nn.Module):
    """Functions of each element that are computed together, of transposed maps, too."""

    def forward(self, x):
        """A map."""
        scaled = x.permute(0, 2, 3, 1) * torch.arange(1.0, 21.0) / 9
        once = scaled * torch.sigmoid(x.permute(0, 2, 3, 1) - 1)
        twice = once.exp().clamp(max=2.0)
        return twice.mean(1, keepdim=True) / (twice + once) - twice.permute(0, 2, 1, 3)


@torch.no_grad()
def test_functions_of_each_element_in_a_row_are_one_step(tmp_path):
    net = Chained().eval()
    steps = lower(prepare(net, (torch.zeros(1, 20, 11, 11),), batch=False).graph).steps
    # The scaled map comes before what it is multiplied by; others are read twice.
    assert len(steps) == 6, [step.about for step in steps]
    network = load(written(net, tmp_path, (20, 11, 11)).code)
    x = torch.randn(2, 20, 11, 11)
    np.testing.assert_allclose(network(x.numpy()), net(x).numpy(), atol=1e-5, rtol=1e-5)


def test_the_format_checks_what_it_wrote(block):
    net, files = block
    chosen = formats.get("cpp-network", networks=True)
    subject = network_subject(net, torch.zeros(1, 3, 8, 8))
    run = chosen.check(files, subject)
    assert run.passed, run.output
    assert run.output.startswith("right: 60 outputs at batch sizes 1, 3, 8")
    with torch.no_grad():
        subject.reference.head.bias.add_(1)
    run = chosen.check(files, subject)
    assert not run.passed
    assert "of the largest output" in run.output


@pytest.mark.parametrize("name", ["operator-1", "pixel-shuffle"])
def test_an_operator_can_be_written(name, tmp_path):
    chosen = formats.get("cpp-network")
    subject = operator_subject(zoo.load(name), zoo.binding(name), 0)
    run = chosen.check(chosen.write(subject, tmp_path / "op"), subject)
    assert run.passed, run.output


def test_infinite_numbers_are_written():
    from syno.inference.library.program import number

    assert number(math.inf) == "__builtin_inff()"
    assert number(-0.5) == "-0.5f"


MODELS = {
    "resnet18": 64,
    "resnet50": 64,
    "resnext29_2x64d": 64,
    "densenet121": 64,
    "efficientnet_v2_s": 64,
    "mobilenet_v2": 64,
    "convnext_tiny": 64,
    "vit_b_16": 32,
    "resnet-small": 32,
    "resnet34-small": 32,
    "cnn-small": 32,
    "mobilenetv2-cifar": 32,
    "mobilenetv3-cifar": 32,
    "efficientnet-cifar": 32,
    "repvit-cifar": 32,
    "convnext-cifar": 32,
    "deit-cifar": 32,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_models_compute_the_same(name, tmp_path):
    size = MODELS[name]
    torch.manual_seed(0)
    net = models.build(name, classes=10, channels=3, size=size)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
        elif isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.05)  # some begin as zeros
    network = load(written(net, tmp_path, (3, size, size)).code)
    for batch in (1, 3):
        x = torch.randn(batch, 3, size, size)
        expected = net(x)
        for threads in (1, 2):
            y = torch.from_numpy(network(x.numpy(), threads=threads))
            assert (y - expected).abs().max() <= 1e-4 * expected.abs().max()


def test_the_command_in_the_code_names_its_file(tmp_path):
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    files = written(nn.Sequential(nn.Conv2d(3, 4, 1)), folder, (3, 4, 4), "my net-2")
    (line,) = [li for li in files.code.read_text().split("\n") if li.startswith("//     g++")]
    command = shlex.split(line.removeprefix("//"))
    assert (folder / command[-3]).is_file()
    assert command[-1] == "my net-2.so"
