"""Operators as matrices on gathered data: the interpreter's values, and true adjoints."""

import numpy as np
import pytest
import torch

import syno
from syno import _core, zoo
from syno.adaptation.factors import Factors


def operators(seeds):
    """Random operators with a batch and at least one weight, and their bindings."""
    for seed in seeds:
        core, binding = _core.random_operator(seed, batch=True, min_weights=1, causal_windows=0.2)
        yield seed, syno.Operator(core), binding


def random_arrays(shapes, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shapes.input), [rng.standard_normal(s) for s in shapes.weights]


@pytest.mark.parametrize("part", range(4))
def test_the_product_is_the_operator(part):
    for seed, operator, binding in operators(range(part * 60, part * 60 + 60)):
        x, weights = random_arrays(operator.shapes(binding), seed)
        expected = torch.from_numpy(operator.interpret(binding, x, weights))
        factors = Factors.of(operator, binding)
        matrix = factors.matrix([torch.from_numpy(w) for w in weights])
        data = factors.data(torch.from_numpy(x))
        found = matrix @ data[factors.distinct[1]]
        # An output that the operator repeats has rows of its own in y, which the product has once.
        torch.testing.assert_close(
            found.expand_as(factors.result(expected)),
            factors.result(expected),
            msg=lambda text, seed=seed: f"seed {seed}: {text}",
        )


def test_the_gradient_is_the_adjoint_of_the_matrix():
    for seed, operator, binding in operators(range(40)):
        factors = Factors.of(operator, binding)
        _, weights = random_arrays(operator.shapes(binding), seed)
        held = [torch.from_numpy(w).requires_grad_() for w in weights]
        matrix = factors.matrix(held)
        z = torch.randn_like(matrix)
        expected = torch.autograd.grad((matrix * z).sum(), held)
        grids = [g.spread(w) for g, w in zip(factors.weights, held, strict=True)]
        for number, gradient in enumerate(expected):
            torch.testing.assert_close(factors.gradient(number, grids, z), gradient)


def test_operators_that_cannot_be_fitted_say_why():
    with pytest.raises(syno.UserError, match="no weights, so there is nothing to fit"):
        Factors.of(zoo.load("pixel-shuffle"), zoo.binding("pixel-shuffle"))
    alone = syno.Operator.parse("y[h] = sum(a:k) x[h+a-k/2] * w0[a]", input="[H]", output="[H]")
    with pytest.raises(syno.UserError, match="no batch dimension"):
        Factors.of(alone, {"H": 8, "k": 3})
    large = zoo.binding("linear") | {"C_in": 1 << 13, "C_out": 1 << 14}
    with pytest.raises(syno.UserError, match="too large to fit"):
        Factors.of(zoo.load("linear"), large)


def test_operators_that_gather_the_same_share_their_sums():
    binding = {"N": 1, "C_in": 8, "C_out": 8, "H": 6, "W": 6, "k": 3, "s": 2}
    marks = set()
    for name in ("conv2d", "low-rank-conv", "depthwise-separable"):
        operator = zoo.load(name)
        sizes = {key: value for key, value in binding.items() if key in operator.variables}
        marks.add(Factors.of(operator, sizes).mark)
    assert len(marks) == 1
