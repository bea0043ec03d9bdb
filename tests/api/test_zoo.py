"""Every operator of the zoo against an independent definition: PyTorch's layers, or loops."""

import itertools
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from syno import UserError
from syno.operators import zoo


def conv(x, w, groups=1):
    return functional.conv2d(x, w, padding=w.shape[-1] // 2, groups=groups)


def grouped(x, w):
    g, c, r, k, _ = w.shape
    return conv(x, w.reshape(g * c, r, k, k), groups=g)


def grouped_shared(x, w):
    return conv(x, torch.cat([w, w]), groups=2)


def separable(x, depthwise, pointwise):
    return conv(conv(x, depthwise[:, None], groups=4), pointwise[:, :, None, None])


def dilated(x, w):
    return functional.conv2d(functional.pad(x, (4, 2, 4, 2)), w, dilation=3)


def pooled_conv(x, w):
    y = conv(functional.avg_pool2d(x, 2) * 4, w)
    return y.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)


def shift_conv(x, w):
    return conv(torch.roll(x, (-1, -1), (2, 3)), w[:, :, None, None])


def conv1d_swapped(x, w):
    """y[n,o,h,w] = sum(i,a) x[n,i,w,h+a-k/2] * W[o,i,a]."""
    y = torch.zeros(x.shape[0], w.shape[0], x.shape[3], x.shape[2], dtype=x.dtype)
    for h, a in itertools.product(range(x.shape[3]), range(w.shape[2])):
        if 0 <= h + a - 1 < x.shape[3]:
            y[:, :, h, :] += torch.einsum("niw,oi->now", x[:, :, :, h + a - 1], w[:, :, a])
    return y


def low_rank(x, a, b):
    return (x @ a) @ b


def low_rank_conv(x, b, a):
    return conv(conv(x, a.transpose(2, 3)), b[:, :, None, None])


def block_diagonal(x, w):
    return x @ torch.block_diag(*(block.T for block in w))


def monarch(x, a, b):
    """Two block-diagonal matrices with a transposition between, as in Dao et al. 2022."""
    z = torch.stack([x[..., 5 * g : 5 * g + 5] @ a[g].T for g in range(2)], dim=-1)  # [n,t,j,G]
    y = torch.stack([z[..., j, :] @ b[j].T for j in range(3)], dim=-1)  # [n,t,c,j]
    return y.flatten(2)


def patch_fold(x):
    return functional.fold(x, (10, 14), kernel_size=2, stride=2)


def tiled_projection(x, w):
    return (x @ w).repeat(1, 1, 3)


def gpt2_projection(x, w):
    """y[n,q,6j+3m+c] = sum(i<6) x[n,q,6m+i] * W[j,i,c]."""
    y = torch.zeros(*x.shape[:2], 36, dtype=x.dtype)
    for j, m, c in itertools.product(range(6), range(2), range(3)):
        y[..., 6 * j + 3 * m + c] = x[..., 6 * m : 6 * m + 6] @ w[j, :, c]
    return y


def rows_by_rotation(x, size):
    """For each row h and q: the row that is read, and the p beside it."""
    for h, q in itertools.product(range(size), range(2)):
        turned = (h * 2 + q + 1) % (2 * size)
        yield h, x[:, :, turned // 2], turned % 2


def window_by_rotation(x, w):
    """A 1-dimensional convolution of each row that is read; w[p, o, i, a]."""
    y = torch.zeros(2, 6, 5, 5, dtype=x.dtype)
    for h, row, p in rows_by_rotation(x, 5):
        y[:, :, h] += functional.conv1d(row, w[p], padding=1)
    return y


def operator_07720(x, w):
    # Windows stand around the rotated position: the result is rotated, not the input.
    return torch.roll(window_by_rotation(x, w), -1, 3)


def windows_of_rows(x, size):
    """[n, i, u, a, w]: rows u + a - 1, zero outside."""
    padded = functional.pad(x, (0, 0, 1, 1))
    return torch.stack([padded[:, :, a : a + size] for a in range(3)], dim=3)


def operator_07821(x, w):
    windows = windows_of_rows(torch.roll(x, -1, 3), 5)
    y = torch.zeros(2, 6, 5, 5, dtype=x.dtype)
    for h, window, p in rows_by_rotation(windows, 5):
        y[:, :, h] += torch.einsum("niaw,oia->now", window, w[p])
    return y


def operator_07795(x, a_op, b_iao):
    windows = windows_of_rows(torch.roll(x.transpose(2, 3), -1, 3), 5)
    y = torch.zeros(2, 6, 5, 5, dtype=x.dtype)
    for h, window, p in rows_by_rotation(windows, 5):
        y[:, :, h] += torch.einsum("niaw,iao->now", window, b_iao) * a_op[:, p][:, None]
    return y


def first_stage(x, w2):
    """[n, G, c, q, h, w]: group by group, rows shifted by each q; w2[i, q, c]."""
    padded = functional.pad(x, (1, 1))
    shifted = torch.stack([padded[..., q : q + 5] for q in range(3)], dim=2)  # [n,i,q,h,w]
    parts = [
        torch.einsum("niqhw,iqc->ncqhw", shifted[:, 4 * g : 4 * g + 4], w2[4 * g : 4 * g + 4])
        for g in range(2)
    ]
    return torch.stack(parts, dim=1)


def operator_1(x, w2, w1):
    z = functional.pad(first_stage(x, w2), (0, 0, 1, 1))
    return sum(torch.einsum("ngcqhw,gqoc->nohw", z[..., a : a + 5, :], w1[:, a]) for a in range(3))


def operator_2(x, w2, w1):
    z = first_stage(x, w2).sum(3)  # [n,G,c,h,w]
    # The row is bounded first, then rotated.
    z = functional.pad(torch.roll(z, -1, 3), (0, 0, 1, 1))
    return sum(torch.einsum("ngchw,ogc->nohw", z[..., a : a + 5, :], w1[:, :, a]) for a in range(3))


def stacked_conv(x, w2, w1):
    z = first_stage(x, w2).sum(3).flatten(1, 2)  # channels (G, c)
    return conv(z, w1.permute(3, 0, 4, 1, 2).flatten(1, 2))


def transposed_conv(x, w):
    return functional.conv_transpose2d(x, w.transpose(0, 1), stride=2)


def sub_pixel_conv(x, w):
    channels = w.permute(0, 2, 3, 1, 4, 5).flatten(0, 2)  # (o, p, q)
    return functional.pixel_shuffle(conv(x, channels), 2)


# Of each operator: its definition, and the shapes of the weights that the definition takes.
DEFINITIONS = {
    "average-pooling": (lambda x: functional.avg_pool2d(x, 2) * 4, []),
    "block-diagonal": (block_diagonal, [(2, 3, 5)]),
    "conv1d-swapped": (conv1d_swapped, [(6, 4, 3)]),
    "conv1x1": (lambda x, w: conv(x, w[:, :, None, None]), [(6, 4)]),
    "conv2d": (conv, [(6, 4, 3, 3)]),
    "depthwise": (lambda x, w: conv(x, w[:, None], groups=4), [(4, 3, 3)]),
    "depthwise-separable": (separable, [(4, 3, 3), (6, 4)]),
    "dilated": (dilated, [(6, 4, 3, 3)]),
    "gpt2-projection": (gpt2_projection, [(6, 6, 3)]),
    "grouped": (grouped, [(2, 4, 5, 3, 3)]),
    "grouped-shared": (grouped_shared, [(4, 5, 3, 3)]),
    "linear": (lambda x, w: x @ w, [(4, 6)]),
    "low-rank": (low_rank, [(4, 3), (3, 6)]),
    "low-rank-conv": (low_rank_conv, [(6, 3), (3, 4, 3, 3)]),
    "monarch": (monarch, [(2, 3, 5), (3, 3, 2)]),
    "operator-07720": (operator_07720, [(2, 6, 4, 3)]),
    "operator-07795": (operator_07795, [(6, 2), (4, 3, 6)]),
    "operator-07821": (operator_07821, [(2, 6, 4, 3)]),
    "operator-1": (operator_1, [(8, 3, 3), (2, 3, 3, 12, 3)]),
    "operator-2": (operator_2, [(8, 3, 3), (12, 2, 3, 3)]),
    "patch-fold": (patch_fold, []),
    "pixel-shuffle": (lambda x: functional.pixel_shuffle(x, 2), []),
    "pixel-unshuffle": (lambda x: functional.pixel_unshuffle(x, 2), []),
    "pooled-conv": (pooled_conv, [(6, 4, 3, 3)]),
    "shift-conv": (shift_conv, [(6, 4)]),
    "stacked-conv": (stacked_conv, [(8, 3, 3), (2, 3, 3, 12, 3)]),
    "sub-pixel-conv": (sub_pixel_conv, [(6, 4, 2, 2, 3, 3)]),
    "tiled-projection": (tiled_projection, [(4, 6)]),
    "transposed-conv": (transposed_conv, [(6, 4, 2, 2)]),
    "window-by-rotation": (window_by_rotation, [(2, 6, 4, 3)]),
}


def test_every_operator_has_a_definition():
    assert sorted(DEFINITIONS) == zoo.names()


@pytest.mark.parametrize("name", zoo.names())
def test_the_operator_is_its_definition(name):
    check_definition(name, *DEFINITIONS[name])


def check_definition(name, definition, shapes):
    """The operator computes its definition under one order of the weights and their dimensions."""
    random = np.random.default_rng(3)
    operator, binding = zoo.load(name), zoo.binding(name)
    x = random.integers(-9, 10, operator.shapes(binding).input)
    weights = [random.integers(-9, 10, shape) for shape in shapes]
    expected = definition(*(torch.from_numpy(a).double() for a in (x, *weights))).numpy()
    assert expected.any()

    # The order of weights and of their dimensions has no meaning: one order is the definition's.
    def orders(own):
        for order in itertools.permutations(range(len(own))):
            dims = [
                [
                    p
                    for p in itertools.permutations(range(weights[t].ndim))
                    if _fits(weights[t], p, shape)
                ]
                for t, shape in zip(order, own, strict=True)
            ]
            for chosen in itertools.product(*dims):
                yield [weights[t].transpose(p) for t, p in zip(order, chosen, strict=True)]

    own = operator.weight_shapes(binding)
    assert len(own) == len(weights)
    equal = [
        given
        for given in orders(own)
        if (
            operator.interpret(binding, x, [np.ascontiguousarray(w) for w in given]) == expected
        ).all()
    ]
    assert len(equal) == 1, f"{len(equal)} orders of the weights give the definition's value"


def _fits(weight, dims, shape):
    return tuple(weight.shape[d] for d in dims) == shape


def test_names_and_errors():
    for name in zoo.names():
        assert zoo.load(name).shapes(zoo.binding(name)).output
        assert zoo.doc(name)
    with pytest.raises(UserError, match=r"unknown operator 'conv3d'(.|\n)*conv2d"):
        zoo.load("conv3d")
    with pytest.raises(UserError, match=r"unknown module 'conv2d'(.|\n)*nas-pte-1"):
        zoo.module("conv2d", 8, 8)


# The baselines.


@pytest.mark.parametrize("name", zoo.module_names())
@pytest.mark.parametrize(("c_in", "c_out", "size"), [(24, 32, (7, 9)), (20, 24, (5, 4))])
def test_a_baseline_is_made_of_the_convolutions_it_says(name, c_in, c_out, size):
    torch.manual_seed(0)
    module = zoo.module(name, c_in, c_out).double()
    x = torch.randn(3, c_in, *size, dtype=torch.float64)
    y = module(x)
    assert y.shape == (3, c_out, *size)
    half = c_out // 2
    if name == "nas-pte-1":
        two, four = (_dense(layer) for layer in (module.two, module.four))
        expected = torch.cat([conv(x, two), conv(x, four)], dim=1)
        assert (two[: half // 2, c_in // 2 :] == 0).all()
        assert (four[-(half // 4) :, : c_in * 3 // 4] == 0).all()
    elif name == "nas-pte-2":
        expected = torch.cat(
            [conv(x, _dense(module.full)), conv(x[:, 16:], _dense(module.rest))], 1
        )
        assert module.full.weight.shape == (16, c_in, 3, 3)
    else:
        cut = size[0] // 2
        above, below = x.clone(), x.clone()
        above[:, :, cut:] = 0
        below[:, :, :cut] = 0
        expected = torch.cat(
            [
                conv(above, _dense(module.upper))[:, :, :cut],
                conv(below, _dense(module.lower))[:, :, cut:],
            ],
            dim=2,
        )
    torch.testing.assert_close(y, expected)


def _dense(layer: nn.Conv2d) -> torch.Tensor:
    """The weight of a convolution with groups as one without, zeros between the groups."""
    blocks = layer.weight.chunk(layer.groups)
    dense = torch.zeros(
        layer.out_channels, layer.in_channels, *layer.kernel_size, dtype=torch.float64
    )
    outs, ins = layer.out_channels // layer.groups, layer.in_channels // layer.groups
    for g, block in enumerate(blocks):
        dense[g * outs : (g + 1) * outs, g * ins : (g + 1) * ins] = block
    return dense


@pytest.mark.parametrize(
    ("name", "c_in", "c_out"), [("nas-pte-1", 6, 8), ("nas-pte-1", 8, 12), ("nas-pte-2", 16, 32)]
)
def test_a_baseline_needs_channels_that_divide(name, c_in, c_out):
    with pytest.raises(UserError, match=re.escape("cannot have C_")):
        zoo.module(name, c_in, c_out)


def test_overlapping_fold_is_no_operator():
    from syno import Operator

    with pytest.raises(UserError, match="a second time"):
        Operator.parse(
            "y[n:N,h:H] = sum(l:H, a:k) x[n,l+a-k/2,l] * w[h]",
            output="[N, H]",
        )
