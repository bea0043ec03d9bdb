"""Calls of the operators that the network library computes, with all of their arguments.

A case is a function of what makes the call: at once, or as nodes of a graph, for one sample.
"""

import math

import torch

aten = torch.ops.aten


def rand(*shape):
    """The same numbers from 0 to 1 for each shape."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape)))


def of(target, *args, **kwargs):
    """The call of an operator. Arguments may be other calls, and tensors are constants."""

    def case(b):
        def value(argument):
            if isinstance(argument, list):
                return [value(each) for each in argument]
            if isinstance(argument, torch.Tensor):
                return b.const(argument)
            return argument(b) if callable(argument) else argument

        named = {name: value(argument) for name, argument in kwargs.items()}
        return b(target, *(value(argument) for argument in args), **named)

    return case


def part(case, index):
    """One of the results of a call."""
    return lambda b: b.part(case(b), index)


def X(b):
    """The input, [N, 6, 9, 8]."""
    return b.x


def Y(b):
    """Another tensor of its shape."""
    return b.y


def P(b):
    """A tensor of its shape and of positive numbers."""
    return b.p


def M(b):
    """A tensor of its shape and of truth values."""
    return b.m


SHAPE = (6, 9, 8)  # of the input, without the batch


def arithmetic():
    """Formulas of two operands: in each order, broadcast, with numbers and tensors of no rank."""
    found = {}
    for name in ("add", "sub", "rsub", "mul", "div"):
        tensor, scalar = (getattr(getattr(aten, name), each) for each in ("Tensor", "Scalar"))
        found |= {
            f"{name}": of(tensor, X, P),
            f"{name} of rows": of(tensor, X, of(aten.slice.Tensor, P, 1, 2, 3)),
            f"{name} to columns": of(tensor, of(aten.slice.Tensor, P, 3, 0, 1), P),
            f"{name} of both": of(
                tensor, of(aten.slice.Tensor, P, 3, 0, 1), of(aten.slice.Tensor, P, 2, 4, 5)
            ),
            f"{name} of a constant": of(tensor, X, rand(6, 1, 1) + 1),
            f"{name} to a constant": of(tensor, torch.ones(8) * 3, P),
            f"{name} of no rank": of(tensor, X, torch.tensor(1.7)),
            f"{name} of float64 of no rank": of(tensor, X, torch.tensor(1.7, dtype=torch.float64)),
            f"{name} of whole numbers": of(tensor, X, torch.arange(1, 9)),
            f"{name} of a number": of(scalar, X, 1.7),
            f"{name} of a whole number": of(scalar, X, 3),
        }
    for name in ("mul", "add"):
        tensor = getattr(aten, name).Tensor
        found[f"{name} of truth values"] = of(tensor, X, M)
    for name in ("add", "sub", "rsub"):
        tensor, scalar = (getattr(getattr(aten, name), each) for each in ("Tensor", "Scalar"))
        found[f"{name}, alpha"] = of(tensor, X, Y, alpha=0.3)
        found[f"{name} of a number, alpha"] = of(scalar, X, 1.7, 3)
    return found


def comparisons():
    """Conditions, and what reads them."""
    found = {}
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        op = getattr(aten, name)
        found[name] = of(op.Tensor, X, of(aten.relu.default, X))
        found[f"{name} of a number"] = of(op.Scalar, X, 0.2)
    for name in ("logical_and", "logical_or", "logical_xor"):
        op = getattr(aten, name).default
        found[name] = of(op, M, of(aten.lt.Scalar, X, 0.5))
        found[f"{name} of numbers"] = of(op, of(aten.relu.default, X), Y)
    for name in ("bitwise_and", "bitwise_or", "__and__", "__or__"):
        op = getattr(aten, name)
        found[name] = of(op.Tensor, M, of(aten.lt.Scalar, X, 0.5))
        found[f"{name} of a number"] = of(op.Scalar, M, True)
    return found | {
        "logical not": of(aten.logical_not.default, M),
        "bitwise not": of(aten.bitwise_not.default, M),
        "isnan": of(aten.isnan.default, X),
        "where": of(aten.where.self, M, X, of(aten.slice.Tensor, P, 1, 0, 1)),
        "where, number behind": of(aten.where.ScalarOther, M, X, 3.5),
        "where, number in front": of(aten.where.ScalarSelf, M, -2, X),
        "where, numbers": of(aten.where.Scalar, M, -2.0, 3.5),
        "where, constant": of(aten.where.self, torch.arange(8) > 3, X, torch.tensor(0.5)),
        "masked fill": of(aten.masked_fill.Scalar, X, M, -math.inf),
        "masked fill, tensor": of(
            aten.masked_fill.Tensor, X, torch.arange(8) > 3, torch.tensor(2.0)
        ),
        "as numbers": of(aten._to_copy.default, M, dtype=torch.float32),
        "to": of(aten.to.dtype, M, torch.float32, True, True, torch.preserve_format),
        "copy": of(
            aten._to_copy.default,
            M,
            dtype=torch.float32,
            layout=torch.strided,
            device=torch.device("cpu"),
            pin_memory=False,
            non_blocking=True,
            memory_format=torch.preserve_format,
        ),
        "type as": of(aten.type_as.default, M, X),
    }


def elementwise():
    """Functions of each element."""
    found = {}
    names = (
        "neg abs square reciprocal sqrt rsqrt sign exp expm1 log log1p log2 log10 exp2 erf erfc sin"
        " cos tan asin acos atan sinh cosh asinh acosh atanh sgn floor ceil trunc round relu relu6"
        " silu hardswish sigmoid tanh hardsigmoid gelu selu mish log_sigmoid leaky_relu elu celu"
        " softplus hardtanh"
    )
    for name in names.split():
        found[name] = of(getattr(aten, name).default, X)
    two = {"maximum": "default", "minimum": "default", "max": "other", "min": "other"}
    for name, variant in two.items():
        target = getattr(getattr(aten, name), variant)
        found[f"{name} of two"] = of(target, X, of(aten.slice.Tensor, Y, 1, 0, 1))
    for exponent in (2, 3, 4, 0.5, -1, -0.5, 1.7, 0):
        found[f"power {exponent}"] = of(aten.pow.Tensor_Scalar, X, exponent)
    for name in ("clamp", "clip"):
        op = getattr(aten, name)
        found |= {
            f"{name}": of(op.default, X, -0.5, 0.7),
            f"{name} from below": of(op.default, X, 0.1),
            f"{name} from above": of(op.default, X, None, 0.1),
            f"{name} by names": of(op.default, X, max=6, min=0),
            f"{name} the wrong way": of(op.default, X, 0.7, -0.5),
            f"{name} by NaN": of(op.default, X, math.nan, 0.5),
            f"{name} by tensors": of(op.Tensor, X, Y, P),
            f"{name} by a tensor": of(op.Tensor, X, max=of(aten.slice.Tensor, Y, 1, 0, 1)),
        }
    for name in ("clamp_min", "clamp_max"):
        op = getattr(aten, name)
        found[name] = of(op.default, X, 0.2)
        found[f"{name} by a tensor"] = of(op.Tensor, X, Y)
    return found | {
        "power of a number": of(aten.pow.Scalar, 1.3, X),
        "power of two": of(aten.pow.Tensor_Tensor, P, X),
        "gelu, tanh": of(aten.gelu.default, X, approximate="tanh"),
        "leaky": of(aten.leaky_relu.default, X, 0.2),
        "elu, all": of(aten.elu.default, X, 1.2, 0.7, 0.9),
        "celu, alpha": of(aten.celu.default, X, alpha=0.5),
        "softplus, all": of(aten.softplus.default, X, 2, threshold=1.5),
        "hardtanh, 0 to 6": of(aten.hardtanh.default, X, max_val=6, min_val=0),
        "hardtanh, other": of(aten.hardtanh.default, X, -0.5, 0.3),
        "prelu": of(aten.prelu.default, X, rand(6)),
        "prelu, one": of(aten.prelu.default, X, rand(1)),
        "threshold": of(aten.threshold.default, X, 0.1, 2),
        "glu": of(aten.glu.default, X),
        "glu of channels": of(aten.glu.default, X, 1),
        "hard shrink": of(aten.hardshrink.default, X, 0.3),
        "soft shrink": of(aten.softshrink.default, X, 0.3),
        "angle": of(aten.atan2.default, X, of(aten.slice.Tensor, Y, 1, 0, 1)),
        "rest": of(aten.fmod.Tensor, X, P),
        "rest of a number": of(aten.fmod.Scalar, X, 0.3),
        "remainder": of(aten.remainder.Tensor, X, Y),
        "remainder of a number": of(aten.remainder.Scalar, X, -0.7),
        "addcmul": of(aten.addcmul.default, X, Y, P, value=0.5),
        "addcmul, plain": of(aten.addcmul.default, X, Y, P),
        "addcdiv": of(aten.addcdiv.default, X, Y, P, value=0.5),
        "lerp": of(aten.lerp.Scalar, X, Y, 0.3),
        "lerp by a tensor": of(aten.lerp.Tensor, X, Y, rand(8)),
    }


def reductions():
    """Values of several elements."""
    dims = ([1], [2, 3], [-1], [1, -1])
    found = {}
    for name, variant in (
        ("mean", "dim"),
        ("sum", "dim_IntList"),
        ("amax", "default"),
        ("amin", "default"),
    ):
        target = getattr(getattr(aten, name), variant)
        for dim in dims:
            found[f"{name} {dim}"] = of(target, X, dim)
            found[f"{name} {dim}, kept"] = of(target, X, dim, True)
    for name in ("mean", "sum"):
        target = aten.mean.dim if name == "mean" else aten.sum.dim_IntList
        found[f"{name}, type"] = of(target, X, [1], dtype=torch.float32)
    for name in ("max", "min"):
        target = getattr(aten, name).dim
        found[f"{name} of a dimension"] = part(of(target, X, 1), 0)
        found[f"{name} of a dimension, kept"] = part(of(target, X, -1, True), 0)
    for name in ("var", "std"):
        op = getattr(aten, name)
        found |= {
            f"{name}": of(op.dim, X, [1]),
            f"{name}, biased": of(op.dim, X, [2, 3], False, True),
            f"{name}, correction": of(op.correction, X, [-1], correction=0, keepdim=True),
            f"{name}, correction 2": of(op.correction, X, [1, 2], correction=2),
            f"{name}, correction by default": of(op.correction, X, [1]),
        }
    for order in (1, 2, math.inf):
        found[f"norm {order}"] = of(aten.linalg_vector_norm.default, X, order, [1])
    for name in ("softmax", "log_softmax"):
        target = getattr(aten, name).int
        for dim in (1, 2, -1):
            found[f"{name} {dim}"] = of(target, X, dim)
        found[f"{name}, type"] = of(target, X, -1, torch.float32)
    found["norm, all"] = of(
        aten.linalg_vector_norm.default, X, 2, [1, 3], True, dtype=torch.float32
    )
    whole = {
        "mean": aten.mean.default,
        "sum": aten.sum.default,
        "max": aten.max.default,
        "min": aten.min.default,
        "amax": aten.amax.default,
        "var": aten.var.default,
        "std": aten.std.default,
        "norm": aten.linalg_vector_norm.default,
    }
    for name, target in whole.items():
        found[f"{name} of all"] = of(target, X)
    for name, target in {"mean": aten.mean.dim, "sum": aten.sum.dim_IntList}.items():
        found[f"{name} of all, typed"] = of(getattr(aten, name).default, X, dtype=torch.float32)
        for dim in (None, []):
            found[f"{name} over {dim}"] = of(target, X, dim)
        one = of(aten.mean.default, X)
        found[f"{name} of no rank"] = of(target, one, [0])
    for name in ("var", "std"):
        found[f"{name} of all, biased"] = of(getattr(aten, name).default, X, False)
        one = of(aten.slice.Tensor, X, 3, 0, 1)
        found[f"{name} of one element"] = of(getattr(aten, name).dim, one, [3])
    return found


def normalization():
    """Norms with and without weights."""
    row, channel = ((8,), 6)
    weight, bias = (rand(8) + 0.5, rand(8))
    return {
        "batch norm": part(
            of(
                aten._native_batch_norm_legit_no_training.default,
                X,
                torch.arange(6.0),
                torch.ones(6),
                torch.arange(6.0) / 5,
                torch.arange(6.0) + 1,
                0.1,
                0.001,
            ),
            0,
        ),
        "layer norm": of(aten.layer_norm.default, X, row),
        "layer norm, all": of(aten.layer_norm.default, X, [*row], weight, bias, 0.1, False),
        "layer norm, bias": of(aten.layer_norm.default, X, row, None, bias),
        "layer norm of maps": of(aten.layer_norm.default, X, (9, 8), rand(9, 8)),
        "layer norm, turned weight": of(
            aten.layer_norm.default, X, [9, 8], of(aten.transpose.int, rand(8, 9), 0, 1)
        ),
        "rms norm": of(aten.rms_norm.default, X, [8]),
        "rms norm, all": of(aten.rms_norm.default, X, [9, 8], rand(9, 8), 0.1),
        "group norm": of(aten.group_norm.default, X, 3),
        "group norm, all": of(
            aten.group_norm.default, X, 2, rand(channel), rand(channel), 0.1, False
        ),
        "group norm, bias": of(aten.group_norm.default, X, 2, None, rand(channel)),
        "instance norm": of(
            aten.instance_norm.default, X, None, None, None, None, True, 0.1, 1e-05, False
        ),
        "instance norm, all": of(
            aten.instance_norm.default,
            X,
            rand(channel),
            rand(channel),
            None,
            None,
            True,
            0.3,
            0.1,
            True,
        ),
    }


def pooling():
    """Windows of signals, maps and volumes."""
    signal = of(aten.flatten.using_ints, X, 2)
    volume = of(aten.reshape.default, X, [-1, 6, 3, 3, 8])
    found = {}
    for rank, source in ((1, signal), (2, X), (3, volume)):
        window = [3, 2, 3][-rank:]
        maximum = getattr(aten, f"max_pool{rank}d").default
        average = getattr(aten, f"avg_pool{rank}d").default
        found |= {
            f"max {rank}": of(maximum, source, window),
            f"max {rank}, all": of(maximum, source, window, [2], [1], [1], True),
            f"average {rank}": of(average, source, window),
            f"average {rank}, all": of(average, source, window, [2], [1], True, False),
            f"average {rank}, counted": of(average, source, window, [2], [1], True),
        }
        if rank > 1:
            found[f"average {rank}, divisor"] = of(
                average, source, window, stride=[1], divisor_override=5
            )
            indices = getattr(aten, f"max_pool{rank}d_with_indices").default
            found[f"max {rank} of two results"] = part(
                of(indices, source, window, [1], [1], [1], True), 0
            )
        for size in (1, 2):
            sizes = [size, 3, 5][-rank:]
            adaptive = getattr(aten, f"adaptive_avg_pool{rank}d").default
            greatest = getattr(aten, f"adaptive_max_pool{rank}d").default
            found[f"adaptive average {rank} {sizes}"] = of(adaptive, source, sizes)
            found[f"adaptive max {rank} {sizes}"] = part(of(greatest, source, sizes), 0)
    return found


def resampling():
    """Maps and signals of other sizes."""
    signal = of(aten.flatten.using_ints, X, 2)
    found = {}
    for name in ("upsample_nearest", "_upsample_nearest_exact"):
        one, two = (getattr(aten, f"{name}1d"), getattr(aten, f"{name}2d"))
        found |= {
            f"{name} 1": of(one.vec, signal, None, [1.5]),
            f"{name} 1, size": of(one.vec, signal, [31], None),
            f"{name} 1, scale": of(one.default, signal, [100], 1.4),
            f"{name} 2": of(two.vec, X, None, [2.0, 1.5]),
            f"{name} 2, size": of(two.vec, X, [7, 13], None),
            f"{name} 2, scales": of(two.default, X, [13, 10], 1.45, 1.3),
        }
    one, two = (aten.upsample_linear1d, aten.upsample_bilinear2d)
    for corners in (False, True):
        found |= {
            f"linear, {corners}": of(one.vec, signal, None, corners, [1.5]),
            f"linear, size, {corners}": of(one.vec, signal, [31], corners, None),
            f"linear, scale, {corners}": of(one.default, signal, [100], corners, 1.4),
            f"bilinear, {corners}": of(two.vec, X, None, corners, [2.0, 1.5]),
            f"bilinear, size, {corners}": of(two.vec, X, [4, 13], corners, None),
            f"bilinear, scales, {corners}": of(two.default, X, [13, 10], corners, 1.45, 1.3),
        }
        cubic = aten.upsample_bicubic2d
        found |= {
            f"bicubic, {corners}": of(cubic.vec, X, None, corners, [2.0, 1.5]),
            f"bicubic, size, {corners}": of(cubic.vec, X, [4, 13], corners, None),
            f"bicubic, scales, {corners}": of(cubic.default, X, [13, 10], corners, 1.45, 1.3),
        }
    return found | {
        "pixel shuffle": of(aten.pixel_shuffle.default, of(aten.slice.Tensor, X, 1, 0, 4), 2),
        "pixel unshuffle": of(aten.pixel_unshuffle.default, of(aten.slice.Tensor, X, 2, 1, 9), 2),
        "channel shuffle": of(aten.channel_shuffle.default, X, 3),
    }


def joins():
    """Tensors made of others."""
    found = {}
    for name in ("cat", "concat", "concatenate"):
        target = getattr(aten, name).default
        for dim in (1, 2, -1):
            found[f"{name} {dim}"] = of(target, [X, Y, X], dim)
    for name, sides in {
        "left": [1, 0],
        "around": [1, 2, 3, 0],
        "cropped": [-1, -2, 0, -3],
        "cropped and padded": [-1, 2, 1, -2],
        "channels": [0, 0, 0, 0, 2, -1],
    }.items():
        found[f"pad, {name}"] = of(aten.pad.default, X, sides)
        found[f"pad by a value, {name}"] = of(aten.pad.default, X, sides, "constant", 1.5)
        found[f"constant pad, {name}"] = of(aten.constant_pad_nd.default, X, sides, -1)
    for mode in ("reflect", "replicate", "circular"):
        found[f"pad, {mode}"] = of(aten.pad.default, X, [1, 2, 3, 0], mode)
        found[f"pad, {mode}, more"] = of(aten.pad.default, X, [0, 7, 2, 2], mode)
    return found | {
        "cat of nothing": of(aten.cat.default, [X, of(aten.slice.Tensor, Y, 1, 2, 2), Y], 1),
        "cat of columns": of(
            aten.cat.default,
            [of(aten.slice.Tensor, X, 3, 2, 3), X, of(aten.slice.Tensor, Y, 3, 0, 1)],
            3,
        ),
        "cat of truth values": of(aten.cat.default, [M, X], 1),
        "stack": of(aten.stack.default, [X, Y], 1),
        "stack behind": of(aten.stack.default, [X, Y], -1),
        "repeat": of(aten.repeat.default, X, [1, 2, 1, 3]),
        "repeat interleaved": of(aten.repeat_interleave.self_int, X, 3, 1),
        "repeat interleaved, size": of(aten.repeat_interleave.self_int, X, 2, -1, output_size=16),
        "roll": of(aten.roll.default, X, [2], [1]),
        "roll of two": of(aten.roll.default, X, [-3, 11], [2, -1]),
    }


def products():
    """Products of what the network computes, and attention."""
    t = aten.transpose.int

    def heads(count):
        return of(aten.slice.Tensor, X, 1, 0, count)

    def keys(count):
        return of(aten.slice.Tensor, Y, 1, 6 - count, 6)

    attend = aten.scaled_dot_product_attention.default
    masks = {
        "of numbers": torch.randn(9, 9, generator=torch.Generator().manual_seed(1)),
        "causal": torch.ones(9, 9).tril().bool(),
        "of keys": (torch.arange(9) < 5)[None],
        "of rows": (torch.arange(9) < 5)[:, None],
        "with rows of nothing": torch.ones(9, 9).tril(-2).bool(),
        "of infinity": torch.full((9, 9), -math.inf).triu(-1),
        "of heads": torch.randn(6, 9, 9, generator=torch.Generator().manual_seed(2)),
        "of heads and keys": torch.randn(1, 6, 1, 9, generator=torch.Generator().manual_seed(2)),
    }
    found = {f"attention, mask {name}": of(attend, X, Y, P, mask) for name, mask in masks.items()}
    return found | {
        "attention": of(attend, X, Y, P),
        "attention, causal": of(attend, X, Y, P, is_causal=True),
        "attention, causal, fewer rows": of(
            attend, of(aten.slice.Tensor, X, 2, 0, 4), Y, P, None, 0.0, True
        ),
        "attention, scale": of(attend, X, Y, P, scale=0.7),
        "attention, groups": of(attend, X, keys(2), heads(2), enable_gqa=True),
        "attention, one group": of(attend, X, keys(1), heads(1), enable_gqa=True),
        "attention, groups of moved keys": of(
            attend,
            of(t, X, 2, 3),
            of(t, keys(3), 2, 3),
            of(t, heads(3), 2, 3),
            is_causal=True,
            enable_gqa=True,
        ),
        "attention, shared keys": of(attend, X, keys(1), heads(1)),
        "attention, shared rows": of(attend, heads(1), Y, P),
        "attention, shared values": of(attend, X, Y, heads(1)),
        "attention, computed mask": of(
            attend,
            of(t, X, 2, 3),
            of(t, Y, 2, 3),
            of(t, P, 2, 3),
            of(aten.slice.Tensor, X, 2, 0, 8),
        ),
        "attention, computed truth": of(
            attend, X, Y, P, of(aten.gt.Scalar, of(aten.pad.default, X, [0, 1]), 0.3)
        ),
        "attention of one head": of(
            attend,
            of(aten.select.int, X, 1, 0),
            of(aten.select.int, Y, 1, 1),
            of(aten.select.int, P, 1, 2),
        ),
        "product": of(aten.matmul.default, X, of(t, Y, 2, 3)),
        "product, shared right": of(
            aten.matmul.default, X, of(t, of(aten.slice.Tensor, Y, 1, 0, 1), 2, 3)
        ),
        "product, shared left": of(
            aten.matmul.default, of(aten.slice.Tensor, X, 1, 0, 1), of(t, Y, 2, 3)
        ),
        "product, weight": of(aten.matmul.default, X, rand(8, 5)),
        "product, weight in front": of(aten.matmul.default, rand(5, 9), X),
        "product, weights": of(aten.matmul.default, X, rand(6, 8, 5)),
        "product, vector": of(aten.matmul.default, X, rand(8)),
        "product, vector in front": of(aten.matmul.default, rand(9), X),
        "bmm": of(
            aten.bmm.default,
            of(aten.select.int, X, 1, 0),
            of(t, of(aten.select.int, Y, 1, 1), 1, 2),
        ),
        "mm": of(
            aten.mm.default, of(aten.select.int, of(aten.select.int, X, 1, 0), 1, 0), rand(8, 3)
        ),
    }


def written():
    """Tensors with parts of others, or one number everywhere."""
    ordinary = {
        "dtype": torch.float32,
        "layout": torch.strided,
        "device": torch.device("cpu"),
        "pin_memory": False,
        "memory_format": torch.preserve_format,
    }
    part_of = of(aten.slice.Tensor, Y, 3, 0, 3)
    return {
        "slice written": of(aten.slice_scatter.default, X, part_of, 3, 1, 7, 2),
        "slice written, names": of(
            aten.slice_scatter.default, X, of(aten.slice.Tensor, Y, 1, 0, 2), dim=1, start=-2
        ),
        "index written": of(aten.select_scatter.default, X, of(aten.select.int, Y, 2, 0), 2, -1),
        "copy of a row": of(aten.copy.default, X, of(aten.slice.Tensor, Y, 2, 0, 1), True),
        "zeros": of(aten.zeros_like.default, X, **ordinary),
        "ones": of(aten.ones_like.default, X, **ordinary),
        "full": of(aten.full_like.default, X, -2.5, **ordinary),
        "fill": of(aten.fill.Scalar, X, 3),
        "fill with a tensor": of(aten.fill.Tensor, X, of(aten.mean.default, Y)),
    }


def places():
    """Elements that are chosen by their places, and windows as columns."""
    index = torch.tensor([[3, 0, -1], [2, 2, 1]])
    window = {"dilation": [2, 1], "padding": [1, 2], "stride": [2, 3]}

    return {
        "index": of(aten.index.Tensor, X, [None, None, index]),
        "index of two": of(aten.index.Tensor, X, [None, index, index % 2]),
        "index of the last": of(aten.index.Tensor, X, [None, None, None, index[0]]),
        "index select": of(aten.index_select.default, X, 1, index[1]),
        "index select, last": of(aten.index_select.default, X, -1, torch.tensor([7, 0, 7])),
        "flip": of(aten.flip.default, X, [1]),
        "flip of two": of(aten.flip.default, X, [-1, 2]),
        "windows": of(aten.im2col.default, X, [2, 3], [1, 1], [0, 0], [1, 1]),
        "windows, all": of(aten.im2col.default, X, [3, 2], **window),
        "from windows": of(
            aten.col2im.default,
            of(aten.im2col.default, X, [2, 3], [1, 1], [0, 0], [1, 1]),
            [9, 8],
            [2, 3],
            [1, 1],
            [0, 0],
            [1, 1],
        ),
        "from windows, all": of(
            aten.col2im.default,
            of(aten.im2col.default, X, [3, 2], **window),
            [9, 8],
            [3, 2],
            **window,
        ),
    }


CASES = {
    **arithmetic(),
    **comparisons(),
    **elementwise(),
    **reductions(),
    **normalization(),
    **pooling(),
    **resampling(),
    **joins(),
    **written(),
    **places(),
    **products(),
}
