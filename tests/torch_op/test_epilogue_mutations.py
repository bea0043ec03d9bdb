"""Known bugs in epilogues, injected into emitted code, which comparisons find."""

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest

from syno import _core
from syno.codegen.native import QUICK_FLAGS, find_compiler
from syno.operators import zoo

from .cases import ACTIVATIONS

NCHW, NHWC = (0, 1, 2, 3), (0, 2, 3, 1)
BATCH = 2
FEW, MANY = 6, 40  # channels of the result: fewer and more than a vector has
ALL = "scale+bias+residual"


@dataclass(frozen=True)
class Bug:
    """A bug in the code of a convolution with this epilogue: `old` becomes `new`."""

    name: str
    old: str
    new: str
    epilogue: str = ALL
    order: tuple[int, ...] = NCHW
    channels: int = FEW


BUGS = (
    Bug("scale left out", "v *= scale", "v *= Vector{} + 1"),
    Bug("bias left out", "v += bias", "v += Vector{}"),
    Bug("residual left out", "v += more", "v += Vector{}"),
    Bug("residual subtracted", "v += more", "v -= more"),
    Bug(
        "bias before scale",
        "if constexpr (kScale) v *= scale;\n    if constexpr (kBias) v += bias;",
        "if constexpr (kBias) v += bias;\n    if constexpr (kScale) v *= scale;",
    ),
    Bug(
        "residual before scale",
        "if constexpr (kScale) v *= scale;",
        "if constexpr (kResidual) v += more;\n    if constexpr (kScale) v *= scale;\n"
        "    if constexpr (kResidual) v -= more;",
    ),
    Bug("activation left out", "return Activation::of(v);", "return v;", f"{ALL}+relu"),
    Bug(
        "activation before the residual",
        "if constexpr (kResidual) v += more;\n    return Activation::of(v);",
        "v = Activation::of(v);\n    if constexpr (kResidual) v += more;\n    return v;",
        f"{ALL}+relu",
    ),
    Bug("scale and bias exchanged", "splat(channel[kChannels + c])", "splat(channel[c])"),
    Bug("channel of the first row", "of_channel(c), to", "of_channel(0), to"),
    Bug("next channel", "of_channel(c), to", "of_channel((c + 1) % 6), to"),
    Bug("residual of the first image", "residual + n * 210", "residual"),
    Bug("residual of the next place", "residual + (to - y)", "residual + (to - y) / 2"),
    Bug(
        "first channels for all", "load_part(channel + c,", "load_part(channel,", "bias", NHWC, MANY
    ),
    Bug(
        "bias in place of scale",
        "load_part(channel + kChannels + c",
        "load_part(channel + c",
        ALL,
        NHWC,
    ),
    Bug("relu of magnitudes", "return at_least(v, Vector{});", "return at_least(v, -v);", "relu"),
    Bug("relu6 without a bound", "at_most(Relu::of(v), splat(6.0f))", "Relu::of(v)", "relu6"),
    Bug("relu6 up to 7", "splat(6.0f));", "splat(7.0f));", "relu6"),
    Bug("hardsigmoid not shifted", "Relu6::of(v + splat(3.0f))", "Relu6::of(v)", "hardsigmoid"),
    Bug("hardswish of a half", "v * Hardsigmoid", "splat(0.5f) * v * Hardsigmoid", "hardswish"),
    Bug("sigmoid of magnitudes", "at_least(-v, ", "at_least(-magnitude(v), ", "sigmoid"),
    Bug("silu without its factor", "v / sigmoid_divisor(v)", "Sigmoid::of(v)", "silu"),
    Bug("tanh without its sign", "v < Vector{} ? -far : far", "far", "tanh"),
    Bug("tanh of twice as much", "size * splat(-2.0f)", "size * splat(-4.0f)", "tanh"),
    Bug("gelu by tanh", "sum * t + splat(0.118411105f)", "sum * t + splat(0.1181f)", "gelu"),
    Bug("gelu_tanh without the cube", "splat(0.044715f) * v * v * v", "v * 0", "gelu_tanh"),
    Bug("exp of one power less", "(IntVector)round - 127)", "(IntVector)round - 126)", "silu"),
)


def emitted(epilogue, order, channels):
    operator, binding = zoo.load("conv1x1"), zoo.binding("conv1x1") | {"C_out": channels}
    source, _ = _core.emit_cpp(
        operator.numbered_plan(binding, 1),
        name="k",
        formula="",
        epilogue=epilogue,
        channel=1,
        input_order=order,
        output_order=order,
    )
    return str(source)


def pointer(array):
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def right(source, epilogue, order, channels):
    """Whether the code computes what the definition says, for two images."""
    library = find_compiler().library(source, QUICK_FLAGS)
    for name in ("k_packed_size", "k_workspace_size"):
        getattr(library, name).restype = ctypes.c_long
    operator, sizes = zoo.load("conv1x1"), zoo.binding("conv1x1")
    sizes |= {"N": BATCH, "C_out": channels}
    random = np.random.default_rng(1)
    shapes = operator.shapes(sizes)
    x, weight = 3 * random.normal(size=shapes.input), random.normal(size=shapes.weights[0])
    y = operator.interpret(sizes, x, [weight])
    parts = epilogue.split("+")
    scale, bias = random.normal(size=(2, channels)) + 0.5
    residual = random.normal(size=y.shape)
    if "scale" in parts:
        y = y * scale[:, None, None]
    if "bias" in parts:
        y = y + bias[:, None, None]
    if "residual" in parts:
        y = y + residual
    expected = ACTIVATIONS[parts[-1] if parts[-1] in ACTIVATIONS else ""](y)

    def in_memory(values):
        return np.ascontiguousarray(values.transpose(order), np.float32)

    packed = np.zeros(library.k_packed_size(), np.float32)
    held = np.ascontiguousarray(weight, np.float32)
    library.k_pack((ctypes.c_void_p * 1)(held.ctypes.data), pointer(packed))
    channel = np.concatenate([bias, scale]).astype(np.float32)
    data, added = in_memory(x), in_memory(residual)
    found = np.empty_like(in_memory(expected))
    space = np.zeros(library.k_workspace_size(1) + 16, np.float32)
    given = [pointer(each) for each in (data, packed, channel, added, found, space)]
    library.k_run(*given, ctypes.c_long(BATCH), ctypes.c_int(1))
    return np.allclose(found, in_memory(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_in_an_epilogue_is_found(bug):
    code = bug.epilogue, bug.order, bug.channels
    source = emitted(*code)
    assert source.count(bug.old) == 1, f"{bug.old} stands {source.count(bug.old)} times"
    assert not right(source.replace(bug.old, bug.new), *code)


@pytest.mark.parametrize("order", [NCHW, NHWC])
def test_code_without_a_bug_is_right(order):
    for code in {(bug.epilogue, order, bug.channels) for bug in BUGS if bug.order == order}:
        assert right(emitted(*code), *code), code


def test_every_activation_and_part_has_a_bug():
    named = {part for bug in BUGS for part in bug.epilogue.split("+")}
    assert named >= {"scale", "bias", "residual", *ACTIVATIONS} - {""}
