"""A number format for each layer: networks that mix them, and which mixture is chosen."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from tests.inference.test_quantized import CASES, Block, case, conv, library, samples
from torch import nn

import syno
from marks import slow_but
from syno import UserError
from syno.codegen.native import QUICK_FLAGS
from syno.inference import quantize
from syno.inference.library import load as loading
from syno.inference.precision import BFLOAT16, FLOAT32, INT8
from syno.inference.quantization import formats as choice
from syno.inference.quantization.costs import LayerCosts
from syno.inference.quantization.network import QuantizedNetwork, QuantizedRow, quantized

pytestmark = pytest.mark.usefixtures("one_torch_thread")
FORMATS = (FLOAT32, BFLOAT16, INT8)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(loading, "FLAGS", QUICK_FLAGS)


def mixed(net, x, seed):
    """The network with formats that are drawn, at least two of them where it has two layers."""
    rng = random.Random(seed)
    names = [row.name for row in quantized(net, [x])[0].rows]
    drawn = [rng.choice(FORMATS) for _ in names]
    if len(names) > 1 and len(set(drawn)) == 1:
        drawn[0] = rng.choice([form for form in FORMATS if form != drawn[0]])
    made, _ = quantized(net, [x], formats={n: (f, "") for n, f in zip(names, drawn, strict=True)})
    found = {row.name: row.format for row in made.rows}
    assert found == dict(zip(names, drawn, strict=True))
    return made


def off(found, expected):
    return float(((found - expected).square().mean() / expected.square().mean()).sqrt())


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", slow_but(CASES, "stem", "residual", "joined", "read twice", "operator-2")
)
def test_mixed_formats_are_computed(name, seed, quick, tmp_path):
    net, shape = case(name)
    made = mixed(net, samples(6, *shape), f"{name} {seed}")
    run, _ = library(made, tmp_path)
    x = samples(5, *shape)
    with torch.no_grad():
        wanted, plain = made(x), net(x)
    for threads in (1, 2):
        # A value in the middle between two codes may become either of them.
        assert off(torch.from_numpy(run(x.numpy(), threads=threads)), wanted) < 0.01
    assert off(wanted, plain) < 0.1


def test_formats_are_those_of_the_kernels(quick, tmp_path):
    """A layer in bfloat16 differs from float32 in the code, too, and by what is simulated."""
    torch.manual_seed(0)
    net = nn.Sequential(conv(16, 16), nn.ReLU(), conv(16, 16)).eval()
    x = samples(4, 16, 8, 8)
    formats = {"0": (BFLOAT16, "it is faster"), "2": (FLOAT32, "")}
    made, _ = quantized(net, [x], formats=formats)
    assert [row.reason for row in made.rows] == ["it is faster", ""]
    run, _ = library(made, tmp_path)
    with torch.no_grad():
        found = torch.from_numpy(run(x.numpy()))
        assert off(found, made(x)) < 1e-5 < 1e-3 < off(found, net(x)) < 1e-2


def test_the_file_of_weights_has_the_elements_of_each_format(quick, tmp_path):
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Conv2d(5, 5, 3, padding=1) for _ in range(3))).eval()
    drawn = dict(zip("012", FORMATS, strict=True))
    formats = {name: (form, "") for name, form in drawn.items()}
    made, _ = quantized(net, [samples(2, 5, 8, 8)], formats=formats)
    run, _ = library(made, tmp_path)
    found = (tmp_path / "net.bin").stat().st_size - 64
    weights = net[0].weight.numel()
    halves, words = -(-weights // 2), -(-weights // 4)
    constants = found - 4 * (weights + halves + words)
    assert 0 < constants <= 4 * 3 * 16 * 2  # bias, and what integers need beside it
    x = samples(3, 5, 8, 8)
    with torch.no_grad():
        assert off(torch.from_numpy(run(x.numpy())), made(x)) < 0.01


def drawn_costs(rng, count):
    names = [str(number) for number in range(count)]
    seconds = {n: {f: rng.uniform(1, 10) for f in FORMATS} for n in names}
    errors = {n: {FLOAT32: 0.0} | {f: rng.uniform(0, 1) for f in FORMATS[1:]} for n in names}
    pairs = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.5]
    return LayerCosts(seconds, errors, {pair: rng.uniform(0, 5) for pair in pairs})


@pytest.mark.parametrize("seed", range(8))
def test_the_choice_is_that_of_least_time(seed):
    rng = random.Random(seed)
    costs, kept = drawn_costs(rng, 4), {"2"}
    bound = rng.uniform(0.3, 1.5)

    def error(formats):
        return sum(costs.errors[name][form] for name, form in formats.items()) ** 0.5

    def seconds(formats):
        apart = sum(
            spent
            for (a, b), spent in costs.conversions.items()
            if (formats[a] == INT8) != (formats[b] == INT8)
        )
        return sum(costs.seconds[name][form] for name, form in formats.items()) + apart

    made = []

    def network(formats):
        made.append(formats)
        return QuantizedNetwork(torch.fx.GraphModule({}, torch.fx.Graph()), (), 0, error(formats))

    assert choice.chosen(costs, kept, bound, network) is not None
    every = (
        dict(zip("0123", forms, strict=True)) for forms in itertools.product(FORMATS, repeat=4)
    )
    allowed = [each for each in every if each["2"] == FLOAT32 and error(each) <= bound]
    assert seconds(made[-1]) == pytest.approx(min(map(seconds, allowed)))


def test_a_choice_whose_errors_add_up_is_made_again():
    costs = LayerCosts(
        {name: {FLOAT32: 2.0, INT8: 1.0} for name in "ab"},
        {"a": {FLOAT32: 0.0, INT8: 1e-4}, "b": {FLOAT32: 0.0, INT8: 2e-4}},
        {},
    )
    made = []

    def network(formats):
        made.append(list(formats.values()))
        error = 0.04 * sum(form == INT8 for form in formats.values())
        return QuantizedNetwork(torch.fx.GraphModule({}, torch.fx.Graph()), (), 0, error)

    assert choice.chosen(costs, set(), 0.05, network).error == 0.04
    assert made == [[INT8, INT8], [INT8, FLOAT32]]
    assert choice.chosen(costs, set(), 0.001, network).error == 0.0


@pytest.mark.parametrize("bound", slow_but([0.0, 1e-3, 3e-3, 0.5], 3e-3))
def test_formats_are_chosen_within_the_bound(bound, quick):
    torch.manual_seed(0)
    net = nn.Sequential(conv(3, 16), nn.ReLU(), Block(conv(16, 16)), conv(16, 8)).eval()
    x = samples(6, 3, 8, 8)
    made = quantize(net, x.split(2), formats="auto", most_error=bound, keep=["3"])
    with torch.no_grad():
        assert off(made(x), net(x)) <= 1.5 * bound + 1e-6
    assert made.error <= bound + 1e-6
    found = {row.name: row for row in made.rows}
    assert found["3"].format == FLOAT32
    assert set(found["0"].seconds) == set(found["0"].errors) == set(FORMATS)
    assert all(spent > 0 for spent in found["0"].seconds.values())
    assert found["0"].errors[FLOAT32] == 0.0 < found["0"].errors[BFLOAT16]
    assert "us, " in str(made.report())
    compiled = syno.compile(made, x)
    with torch.no_grad():
        assert off(compiled(x), made(x)) < 0.01


def test_a_network_without_layers_has_nothing_to_choose(quick):
    x = samples(2, 3, 4)
    made = quantize(nn.Sequential(nn.ReLU()).eval(), [x], formats="auto")
    assert made.rows == ()
    torch.testing.assert_close(made(x), x.relu())


def test_wrong_arguments_are_refused():
    net, x = nn.Sequential(conv(3, 8)).eval(), samples(2, 3, 8, 8)
    with pytest.raises(UserError, match="unknown value of 'formats': 'int4'\n  expected: int8 or"):
        quantize(net, [x], formats="int4")
    with pytest.raises(UserError, match=r"most_error is no share\n  expected: 0 or more      got"):
        quantize(net, [x], formats="auto", most_error=-0.1)
    with pytest.raises(UserError, match="most_error is no share"):
        quantize(net, [x], formats="auto", most_error=float("nan"))


def test_a_row_without_costs_shows_none():
    row = QuantizedRow("a", "convolution", INT8, "", 0.01)
    made = QuantizedNetwork(torch.fx.GraphModule({}, torch.fx.Graph()), [row], 1, 0.0)
    assert "in int8" not in str(made.report())
