"""Calls that the network library has no code for, with a part of the message."""

import torch
from tests.inference.lowering_cases import M, P, X, Y, aten, of, part, rand


def refused():
    """What has no code, with a part of the message."""
    found = {}
    for rank, more in ((1, ""), (2, ""), (3, ""), (2, "_with_indices"), (3, "_with_indices")):
        target = getattr(aten, f"max_pool{rank}d{more}").default
        source = of(aten.reshape.default, X, [1, 6, *([72], [9, 8], [3, 3, 8])[rank - 1]])
        call = of(target, source, [2] * rank, dilation=[2] * rank)
        found[f"dilation of max {rank}{more}"] = (
            "the argument 'dilation'",
            part(call, 0) if more else call,
        )
    types = {"int64": torch.int64, "float64": torch.float64, "float16": torch.float16}
    for name, dtype in types.items():
        found |= {
            f"{name}": (f"gives torch.{name}", of(aten._to_copy.default, X, dtype=dtype)),
            f"to {name}": (f"gives torch.{name}", of(aten.to.dtype, X, dtype)),
            f"as {name}": (
                f"gives torch.{name}",
                of(aten.type_as.default, X, torch.zeros(1, dtype=dtype)),
            ),
            f"sum in {name}": (
                f"gives torch.{name}",
                of(aten.sum.dim_IntList, X, [1], dtype=dtype),
            ),
        }
    empty = of(aten.slice.Tensor, X, 1, 2, 2)
    return found | {
        "dropout in attention": (
            "the argument 'dropout_p'",
            of(aten.scaled_dot_product_attention.default, X, Y, P, None, 0.5),
        ),
        "keys without values": (
            "attention has 9 keys and 8 values",
            of(
                aten.scaled_dot_product_attention.default,
                X,
                X,
                of(aten.slice.Tensor, X, 2, 0, 8),
            ),
        ),
        "mean in float64": ("gives torch.float64", of(aten.mean.dim, X, [1], dtype=torch.float64)),
        "product with float64": ("gives torch.float64", of(aten.mul.Tensor, X, rand(8).double())),
        "complex numbers": ("complex numbers", of(aten.mul.Tensor, X, torch.ones(8) * 1j)),
        "a complex number": ("gives torch.complex64", of(aten.mul.Tensor, X, 2j)),
        "sum of truth values": ("gives torch.int64", of(aten.sum.dim_IntList, M, [1])),
        "sum of two truth values": ("gives torch.bool", of(aten.add.Tensor, M, M)),
        "greatest truth value": ("gives torch.bool", of(aten.amax.default, M, [1])),
        "truth values as result": ("the network gives torch.bool", M),
        "places of maxima": (
            "has no code for result 1 of 'aten.adaptive_max_pool2d.default'",
            part(of(aten.adaptive_max_pool2d.default, X, [2, 2]), 1),
        ),
        "nothing": (
            "a tensor without elements",
            of(aten.mul.Tensor, empty, 2),
        ),
        "sum of nothing": (
            "a tensor without elements",
            of(aten.sum.dim_IntList, empty, [1]),
        ),
        "nothing as result": ("a tensor without elements", empty),
        "repetition of all": (
            "repeat_interleave without 'dim'",
            of(aten.repeat_interleave.self_int, X, 2),
        ),
        "cyclic shift of all": (
            "a cyclic shift of all dimensions as one",
            of(aten.roll.default, X, [2]),
        ),
        "norm of order 3": (
            "a norm of the order 3",
            of(aten.linalg_vector_norm.default, X, 3, [1]),
        ),
        "softmax of no rank": ("of one element", of(aten.softmax.int, of(aten.mean.default, X), 0)),
        "instance norm, given": (
            "with given statistics",
            of(
                aten.instance_norm.default, X, None, None, rand(6), rand(6), False, 0.1, 1e-05, True
            ),
        ),
        "places by truth values": (
            "places in 'aten.index.Tensor' that are no whole numbers known beforehand",
            of(aten.index.Tensor, X, [None, torch.tensor([True, False] * 3)]),
        ),
        "places that lie apart": (
            "indices of dimensions that lie apart",
            of(aten.index.Tensor, X, [None, torch.tensor([0]), None, torch.tensor([0])]),
        ),
        "zeros in float64": (
            "gives torch.float64",
            of(aten.zeros_like.default, X, dtype=torch.float64),
        ),
        "no code": ("no code for 'aten.cumsum.default'", of(aten.cumsum.default, X, 1)),
    }


REFUSED = refused()
