"""The zoo against PyTorch's own layers."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from syno import UserError, zoo

RANDOM = np.random.default_rng(3)


def check(name, reference, *shapes_of_weights, order):
    """interpret == reference(x, *weights); order[t] brings weight t into the operator's order."""
    operator, binding = zoo.load(name), zoo.binding(name)
    x = RANDOM.integers(-4, 5, operator.shapes(binding).input)
    weights = [RANDOM.integers(-4, 5, shape) for shape in shapes_of_weights]
    own = [np.ascontiguousarray(w.transpose(o)) for w, o in zip(weights, order, strict=True)]
    expected = reference(*(torch.from_numpy(a).double() for a in (x, *weights))).numpy()
    assert (operator.interpret(binding, x, own) == expected).all()


def test_the_zoo_is_what_it_says():
    check("conv1x1", _conv1x1, (6, 4), order=[(0, 1)])
    check("linear", lambda x, w: x @ w, (4, 6), order=[(1, 0)])
    check(
        "conv2d",
        lambda x, w: functional.conv2d(x, w, padding=1),
        (6, 4, 3, 3),
        order=[(0, 1, 2, 3)],
    )
    check(
        "depthwise",
        lambda x, w: functional.conv2d(x, w[:, None], padding=1, groups=4),
        (4, 3, 3),
        order=[(0, 1, 2)],
    )
    check("pixel-shuffle", lambda x: functional.pixel_shuffle(x, 2), order=[])


def _conv1x1(x, w):
    return functional.conv2d(x, w[:, :, None, None])


def test_grouped_is_a_convolution_with_groups():
    # W[G, c, r, a, b] with g=2 groups of 4 outputs and 5 inputs; the operator's order is r a b G c.
    check(
        "grouped",
        lambda x, w: functional.conv2d(x, w.reshape(8, 5, 3, 3), padding=1, groups=2),
        (2, 4, 5, 3, 3),
        order=[(2, 3, 4, 0, 1)],
    )


def test_pooled_conv_is_sum_pooling_convolution_repetition():
    def reference(x, w):
        pooled = functional.avg_pool2d(x, 2) * 4
        y = functional.conv2d(pooled, w, padding=1)
        return y.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)

    check("pooled-conv", reference, (6, 4, 3, 3), order=[(0, 1, 3, 2)])


def test_names_and_errors():
    assert "operator-1" in zoo.names()
    for name in zoo.names():
        assert zoo.load(name).shapes(zoo.binding(name)).output
        assert zoo.doc(name)
    with pytest.raises(UserError, match=r"unknown operator 'conv3d'(.|\n)*conv2d"):
        zoo.load("conv3d")
