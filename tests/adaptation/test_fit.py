"""Fits against independent solutions: lstsq, the singular value decomposition, known weights."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import syno
from syno import zoo
from syno.adaptation.activations import Activations
from syno.adaptation.columns import Columns
from syno.adaptation.factors import Factors
from syno.adaptation.fit import Moments, SharedSums, fit
from syno.adaptation.slots import fit_layer

BENCH = Path(__file__).resolve().parents[2] / "bench"


def made_by(operator, binding, images=64, seed=0):
    """Data, and the results of the operator with random weights."""
    torch.manual_seed(seed)
    x = torch.randn(images, *operator.shapes(binding).input[1:], dtype=torch.float64)
    pack = operator.kernel_pack(binding).double()
    with torch.no_grad():
        return Activations(x, pack(x)), pack


ONE_WEIGHT = [
    "block-diagonal conv1d-swapped conv1x1 conv2d depthwise dilated grouped grouped-shared linear "
    "operator-07720 pooled-conv shift-conv tiled-projection window-by-rotation"
][0].split()


@pytest.mark.parametrize("name", ONE_WEIGHT)
def test_one_weight_is_recovered(name):
    operator = zoo.load(name)
    binding = zoo.binding(name)
    activations, pack = made_by(operator, binding)
    found = fit_layer(operator, binding, activations)
    assert found.error < 1e-9
    with torch.no_grad():
        for parameter, weight in zip(pack.kernel.parameters(), found.weights, strict=True):
            parameter.copy_(weight)
        torch.testing.assert_close(pack(activations.x), activations.y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["grouped-shared", "operator-07720", "conv2d", "grouped"])
def test_the_error_is_that_of_lstsq(name):
    """Another layer's results: the columns of the system are the results of unit weights."""
    operator = zoo.load(name)
    binding = zoo.binding(name) | {"C_in": 4, "C_out": 4}
    activations, pack = made_by(operator, binding, images=40)
    y = activations.y.roll(1, 1).square() - activations.y.roll(1, 2)
    found = fit_layer(operator, binding, Activations(activations.x, y))
    (parameter,) = pack.kernel.parameters()
    columns = []
    with torch.no_grad():
        for element in range(parameter.numel()):
            parameter.zero_()
            parameter.view(-1)[element] = 1.0
            columns.append(pack(activations.x).flatten())
    system = torch.stack(columns, 1)
    best = torch.linalg.lstsq(system, y.flatten()).solution
    expected = (system @ best - y.flatten()).square().sum() / y.square().sum()
    assert found.error == pytest.approx(float(expected), rel=1e-6)
    torch.testing.assert_close(found.weights[0].flatten(), best, rtol=1e-3, atol=1e-4)


def test_low_rank_reaches_the_singular_values():
    """The best B of rank R misses the squares of the singular values of A X after the first R."""
    operator = zoo.load("low-rank")
    binding = zoo.binding("low-rank") | {"T": 1, "C_in": 24, "C_out": 16, "R": 4}
    torch.manual_seed(3)
    mixing = torch.randn(24, 24, dtype=torch.float64)
    x = torch.randn(500, 1, 24, dtype=torch.float64) @ mixing
    y = x @ torch.randn(24, 16, dtype=torch.float64)
    values = torch.linalg.svdvals(y.flatten(0, 1))
    best = float(values[4:].square().sum() / values.square().sum())
    found = fit_layer(operator, binding, Activations(x, y))
    assert best - 1e-9 <= found.error <= best * 1.01


@pytest.mark.parametrize(
    "name", ["operator-1", "operator-2", "depthwise-separable", "stacked-conv"]
)
def test_several_weights_come_near_what_made_the_data(name):
    operator = zoo.load(name)
    binding = zoo.binding(name)
    activations, _ = made_by(operator, binding, images=128)
    found = fit_layer(operator, binding, activations, restarts=3)
    assert found.error < 0.02
    assert found.sweeps > 1


def test_the_error_is_what_the_operator_really_misses():
    operator = zoo.load("operator-1")
    binding = zoo.binding("operator-1")
    activations, _ = made_by(
        zoo.load("conv2d"), zoo.binding("conv2d") | binding | {"W": binding["H"]}
    )
    found = fit_layer(operator, binding, activations)
    pack = operator.kernel_pack(binding).double()
    with torch.no_grad():
        for parameter, weight in zip(pack.kernel.parameters(), found.weights, strict=True):
            parameter.copy_(weight)
        missed = (pack(activations.x) - activations.y).square().sum() / activations.y.square().sum()
    assert found.error == pytest.approx(float(missed), rel=1e-6)
    assert 0.0 < found.error < 1.0


def test_taps_that_are_always_zero_get_finite_weights():
    operator = zoo.load("conv2d")
    binding = zoo.binding("conv2d")
    activations, _ = made_by(operator, binding)
    x = activations.x.clone()
    x[:, 3] = 0.0
    found = fit_layer(operator, binding, Activations(x, activations.y))
    assert bool(found.weights[0].isfinite().all())


def test_a_layer_of_zeros_is_fitted_by_zeros():
    operator = zoo.load("conv2d")
    binding = zoo.binding("conv2d")
    activations, _ = made_by(operator, binding)
    found = fit_layer(
        operator, binding, Activations(activations.x, torch.zeros_like(activations.y))
    )
    assert found.error == 0.0


def test_moments_do_not_depend_on_how_the_data_is_split():
    operator = zoo.load("operator-2")
    binding = zoo.binding("operator-2")
    activations, _ = made_by(operator, binding)
    factors = Factors.of(operator, binding)
    whole = Moments.of(factors, [(activations.x, activations.y)])
    parts = Moments.of(factors, zip(activations.x.split(7), activations.y.split(7), strict=True))
    torch.testing.assert_close(whole.gram, parts.gram)
    torch.testing.assert_close(whole.cross, parts.cross)
    assert parts.images == 64


@pytest.mark.parametrize("first", ["conv2d", "low-rank-conv"])
def test_sums_that_are_shared_change_no_fit(first):
    binding = {"N": 1, "C_in": 8, "C_out": 8, "H": 6, "W": 6, "k": 3, "s": 2}
    torch.manual_seed(0)
    activations = Activations(torch.randn(64, 8, 6, 6), torch.randn(64, 8, 6, 6))
    names = [first, "conv1x1", "depthwise-separable", "low-rank-conv", "conv2d", "grouped"]
    shared = SharedSums()
    for name in names:
        operator = zoo.load(name)
        known = {**binding, "g": 2}
        sizes = {key: value for key, value in known.items() if key in operator.variables}
        alone = fit_layer(operator, sizes, activations, restarts=1)
        together = fit_layer(operator, sizes, activations, restarts=1, shared=shared)
        assert together.error == pytest.approx(alone.error, rel=1e-6)
        for one, other in zip(together.weights, alone.weights, strict=True):
            torch.testing.assert_close(one, other)
    assert len(shared.grams) == 3  # with a window, without one, and in groups


def test_bad_data_is_refused():
    operator = zoo.load("conv2d")
    binding = zoo.binding("conv2d")
    factors = Factors.of(operator, binding)
    activations, _ = made_by(operator, binding, images=4)
    with pytest.raises(syno.UserError, match="no activations to fit to"):
        Moments.of(factors, [])
    with pytest.raises(syno.UserError, match="not finite numbers"):
        fit_layer(operator, binding, Activations(activations.x * math.nan, activations.y))
    with pytest.raises(syno.UserError, match="not finite numbers"):
        fit_layer(operator, binding, Activations(activations.x, activations.y * math.inf))
    with pytest.raises(syno.UserError, match="'restarts' is at least 1, got 0"):
        fit_layer(operator, binding, activations, restarts=0)
    two = zoo.load("operator-1")
    binding = zoo.binding("operator-1")
    factors = Factors.of(two, binding)
    activations, _ = made_by(two, binding)
    with pytest.raises(syno.UserError, match="fitted from initial weights"):
        fit(factors, Moments.of(factors, [(activations.x, activations.y)]), [])


@pytest.mark.parametrize("name", ["operator-1", "operator-2", "depthwise-separable", "low-rank"])
def test_a_direct_step_leaves_no_gradient(name):
    """Where a weight's turn ends exactly, the error has no slope along that weight."""
    operator = zoo.load(name)
    binding = zoo.binding(name)
    activations, pack = made_by(operator, binding)
    factors = Factors.of(operator, binding)
    moments = Moments.of(factors, [(activations.x, activations.y.flip(0))])
    weights = [torch.randn_like(w) for w in pack.kernel.parameters()]
    direct = 0
    for number in range(len(weights)):
        columns = Columns(factors, number)
        if math.isinf(columns.count):
            continue
        direct += 1
        held = list(weights)
        held[number] = columns.solved(moments.gram, moments.cross, weights)
        held = [w.detach().requires_grad_() for w in held]
        matrix = factors.matrix(held)
        loss = (matrix * (matrix @ moments.gram - 2 * moments.cross)).sum()
        slope = torch.autograd.grad(loss, held[number])[0]
        assert float(slope.abs().max()) < 1e-5 * float(moments.cross.abs().max())
    assert direct > 0


@pytest.mark.slow
def test_the_benchmark_of_fits_runs(tmp_path):
    out = tmp_path / "fit.json"
    sizes = ("--channels", "16", "--size", "4", "--images", "64", "--rounds", "1")
    command = [sys.executable, str(BENCH / "fit_bench.py"), *sizes, "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    fits = json.loads(out.read_text())["fits"]
    assert fits["conv2d"]["error"] < 1e-9
    for found in fits.values():
        assert found["next_s"] > 0.0 and found["first_s"] > 0.0
        assert 0.0 <= found["error"] < 1.0
