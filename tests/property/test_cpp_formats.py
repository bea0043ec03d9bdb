"""Compiled operators in bfloat16 and int8, held against the interpreter within derived bounds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from marks import with_slow
from syno import Operator, UserError, _core
from syno.codegen import native
from syno.codegen.native import Variant
from syno.operators import zoo

from . import emitted
from .cpp_stored import stored_functions, to_bfloat16
from .cpp_variants import (
    EXACT,
    Array,
    Emitted,
    by_phases,
    by_run,
    compiled,
    drawn,
    ended,
    interpreted,
    random_kernel,
)
from .cpp_variants import check as check_exactly
from .loop_emitters import loop_case, with_sizes
from .test_cpp_variants import NHWC, SIZES

ZOO = {name: loop_case(case) for name, case in emitted.zoo().items()}
BFLOAT16 = 2.0**-8  # the largest error of rounding, relative to the value
FLOAT32 = 2.0**-24
# Without one of the instructions, and for any processor of this kind.
PORTABLE = (
    (*native.QUICK_FLAGS, "-mno-avx512bf16", "-mno-avx512vnni"),
    (*native.QUICK_FLAGS, "-mno-avx512f"),
    tuple(flag for flag in native.QUICK_FLAGS if flag != "-march=native"),
)


def _in_bfloat16(kernel: Emitted) -> Emitted:
    """The kernel in bfloat16, with an activation that adds no error of its own."""
    *parts, last = kernel.variant.epilogue.split("+")
    if last not in ("scale", "bias", "residual", *EXACT, ""):
        last = "relu"
    epilogue = "+".join([*parts, last])
    return replace(kernel, variant=replace(kernel.variant, epilogue=epilogue, precision="bfloat16"))


def _bound(kernel: Emitted, x: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
    """The largest error of y before the epilogue.

    Each product of the sum has every weight once, and what is data of a contraction is rounded
    before it: at most as many contractions as weights. Sums in float32 of n terms, in any order,
    add n roundings.
    """
    sizes = interpreted(kernel, np.abs(x), [np.abs(weight) for weight in weights])
    ones = interpreted(kernel, np.ones_like(x), [np.ones_like(weight) for weight in weights])
    terms = ones.max(initial=1)
    factor = (1 + BFLOAT16) ** (2 * len(weights)) * (1 + FLOAT32) ** (terms + 2 * len(weights) + 2)
    return (factor - 1) * sizes


def _check_within_bounds(kernel: Emitted, function: native.Function, seed: int = 0) -> None:
    batch = 3 if kernel.batched else 1
    x, weights, parts = drawn(kernel, batch, seed)
    rng = np.random.default_rng(seed)
    x = (x + rng.uniform(-1, 1, x.shape)).astype(np.float32)
    weights = [(w + rng.uniform(-1, 1, w.shape)).astype(np.float32) for w in weights]
    before = interpreted(kernel, x, weights)
    wanted = ended(kernel.variant, before, parts)
    scale = np.ones(())
    if "scale" in parts:
        along = [1] * before.ndim
        along[kernel.variant.channel] = -1
        scale = np.abs(parts["scale"]).reshape(along)
    sizes = np.abs(before) * scale + sum(np.abs(part).max() for part in parts.values())
    bound = _bound(kernel, x, weights) * scale + 4 * FLOAT32 * (sizes + np.abs(wanted)) + 1e-30
    mine = function.with_weights(weights)
    results = [by_run(mine, x, parts, threads) for threads in (1, 2)]
    results.append(by_phases(mine, x, parts, 3, wanted.shape))
    for y in results:
        wrong = ~(np.abs(y - wanted) <= bound)
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0])
            pytest.fail(
                f"y{list(place)} = {y[place]}, expected {wanted[place]} within {bound[place]}\n"
                f"{kernel}\n{kernel.case.operator.text}\n{function.source}"
            )


def _check_random(first: int, count: int) -> None:
    for begin in range(first, first + count, 40):
        seeds = range(begin, min(begin + 40, first + count))
        kernels = [_in_bfloat16(random_kernel(seed)) for seed in seeds]
        for kernel, function in zip(kernels, compiled(kernels), strict=True):
            _check_within_bounds(kernel, function)


@pytest.mark.slow
def test_random_operators_in_bfloat16_are_within_the_bounds_of_rounding():
    _check_random(0, 80)


@pytest.mark.slow
def test_many_random_operators_in_bfloat16_are_within_the_bounds_of_rounding():
    _check_random(3000, 800)


def test_the_zoo_in_bfloat16_is_within_the_bounds_of_rounding():
    kernels = [Emitted(case, Variant(precision="bfloat16")) for case in ZOO.values()]
    functions = compiled(kernels)
    for kernel, function in zip(kernels, functions, strict=True):
        _check_within_bounds(kernel, function)
    assert sum("Words = Pairs" in function.source for function in functions) >= 4


def test_a_rounding_too_many_is_outside_of_the_bounds():
    """The bound is tight enough to find weights with 7 bits."""
    kernel = Emitted(with_sizes(ZOO["conv1x1"], **SIZES[0]), Variant(precision="bfloat16"))

    def mutant(source: str) -> str:
        made = source.replace("W::word(terms)", "(W::word(terms) & 0xffe0ffe0u)")
        assert made != source
        return made

    (function,) = compiled([kernel], mutant)
    with pytest.raises(pytest.fail.Exception, match="expected"):
        _check_within_bounds(kernel, function)


def _convolutions(name: str) -> list[Emitted]:
    kernels = []
    for sizes in SIZES:
        case = with_sizes(ZOO[name], **sizes)
        for before, after in ((None, None), (NHWC, NHWC), (None, NHWC), (NHWC, None)):
            for cache in (64, 65536):
                variant = Variant("bias+residual+relu", 1, before, after, "bfloat16")
                kernels.append(Emitted(case, variant, cache))
    return kernels


@pytest.mark.parametrize("every", with_slow([3, 1], 1))  # sizes, orders and caches in turns
@pytest.mark.parametrize("name", with_slow(["conv2d", "conv1x1"], "conv2d"))
def test_small_integers_are_exact_in_bfloat16(name, every):
    kernels = _convolutions(name)[::every]
    for kernel, function in zip(kernels, compiled(kernels), strict=True):
        assert "Words = Pairs" in function.source
        check_exactly(kernel, function)


@pytest.mark.parametrize("flags", PORTABLE, ids=["no instruction", "no AVX-512", "any processor"])
def test_code_for_other_processors_is_exact_in_bfloat16(flags):
    kernels = _convolutions("conv2d")[::5]
    for kernel, function in zip(kernels, compiled(kernels, flags=flags), strict=True):
        check_exactly(kernel, function)


# --- numbers stored in 16 and 8 bits -----------------------------------------------------------


CONV = Operator.parse(
    "y[n,o,h,w] = sum(i,a,b) x[n,i,h+a-k/2,w+b-k/2] * W[o,i,a,b]",
    input="[N, I, H, W]",
    output="[N, O, H, W]",
)
LINEAR = Operator.parse("y[n,o] = sum(i) x[n,i] * W[o,i]", input="[N, I]", output="[N, O]")
SHAPES = (
    (CONV, {"N": 1, "I": 16, "O": 16, "H": 14, "W": 14, "k": 3}),
    (CONV, {"N": 1, "I": 3, "O": 20, "H": 9, "W": 11, "k": 3}),
    (CONV, {"N": 1, "I": 64, "O": 40, "H": 7, "W": 7, "k": 1}),
    (CONV, {"N": 1, "I": 5, "O": 16, "H": 1, "W": 1, "k": 3}),
    (LINEAR, {"N": 1, "I": 50, "O": 33}),
    (LINEAR, {"N": 1, "I": 1, "O": 20}),
)
# In make test, other processors compute one shape.
FORMATS = pytest.mark.parametrize(
    ("number", "flags"),
    [
        pytest.param(number, flags, marks=pytest.mark.slow if number != 1 and other else ())
        for number in range(len(SHAPES))
        for other, flags in enumerate((native.QUICK_FLAGS, PORTABLE[0], PORTABLE[2]))
    ],
)


def _options(operator: Operator, outputs: Sequence[str], **others: str) -> list[dict[str, Any]]:
    """Every output format with every memory order."""
    orders = [(None, None), (NHWC, NHWC), (None, NHWC), (NHWC, None)]
    return [
        {"input_order": before, "output_order": after, "output_format": output, **others}
        for before, after in (orders[:1] if operator is LINEAR else orders)
        for output in outputs
    ]


def _laid(array: NDArray, order: tuple[int, ...] | None) -> NDArray:
    return np.ascontiguousarray(array.transpose(order) if order else array)


@FORMATS
def test_arrays_in_bfloat16(number, flags):
    operator, binding = SHAPES[number]
    rng = np.random.default_rng(number)
    shapes = operator.shapes(binding)
    x = rng.integers(-8, 9, (2, *shapes.input[1:])).astype(np.float32)
    weights = [rng.integers(-8, 9, shape).astype(np.float32) for shape in shapes.weights]
    residual = rng.integers(-8, 9, (2, *shapes.output[1:])).astype(np.float32)
    sums = np.concatenate([operator.interpret(binding, image[None], weights) for image in x])
    wanted = np.maximum(sums + residual, 0).astype(np.float32)
    formats = {"precision": "bfloat16", "input_format": "bfloat16", "epilogue": "residual+relu"}
    options = _options(operator, ("float32", "bfloat16"), **formats)
    for function in stored_functions(operator, binding, flags, options):
        before, after = function.orders
        halves = function.options["output_format"] == "bfloat16"
        more, expected = _laid(residual, after), _laid(wanted, after)
        if halves:
            more, expected = to_bfloat16(more), to_bfloat16(expected)
        y = np.zeros_like(more)
        for threads in (1, 2):
            y[...] = 0
            data = to_bfloat16(_laid(x, before))
            function(data, weights, y, threads, np.zeros(1, np.float32), more)
            np.testing.assert_array_equal(y, expected)


@FORMATS
def test_sums_of_codes_are_exact_and_results_saturate(number, flags):
    operator, binding = SHAPES[number]
    rng = np.random.default_rng(number)
    shapes = operator.shapes(binding)
    codes = rng.integers(0, 256, (2, *shapes.input[1:])).astype(np.uint8)
    codes[0] = rng.choice([0, 255], codes[0].shape)
    zero = int(rng.integers(0, 256))
    weights = [rng.integers(-128, 128, shape).astype(np.float32) for shape in shapes.weights]
    for weight in weights:
        weight[: len(weight) // 2] = rng.choice([-128, 127], weight[: len(weight) // 2].shape)
    x = codes.astype(np.float32) - zero
    sums = np.concatenate([operator.interpret(binding, image[None], weights) for image in x])
    channels = shapes.output[1]
    along = [1, channels, *[1] * (sums.ndim - 2)]
    # Powers of two, so that nothing but the last step rounds.
    scale = 2.0 ** rng.integers(-12, -3, channels).astype(np.float32)
    bias = rng.integers(-9, 10, channels).astype(np.float32)
    exact = sums * scale.reshape(along) + bias.reshape(along)
    assert np.abs(sums).max() < 2**24
    values = np.array([zero, 0, 1, 7, 4], np.float32)
    channel = np.concatenate([bias, scale, values]).astype(np.float32)
    stored = np.clip(np.rint(exact * 4) + 7, 0, 255)
    assert stored.min() == 0 and stored.max() == 255
    formats = {"precision": "int8", "input_format": "uint8", "epilogue": "scale+bias"}
    options = _options(operator, ("float32", "uint8"), **formats)
    for function in stored_functions(operator, binding, flags, options):
        before, after = function.orders
        in_codes = function.options["output_format"] == "uint8"
        wanted = _laid(stored if in_codes else exact, after)
        y = np.zeros(wanted.shape, np.uint8 if in_codes else np.float32)
        for threads in (1, 2):
            y[...] = 0
            function(_laid(codes, before), weights, y, threads, channel)
            np.testing.assert_array_equal(y, wanted)


def test_a_residual_of_codes():
    operator, binding = SHAPES[0]
    rng = np.random.default_rng(0)
    shapes = operator.shapes(binding)
    codes = rng.integers(0, 256, (1, *shapes.input[1:])).astype(np.uint8)
    weights = [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes.weights]
    residual = rng.integers(0, 256, (1, *shapes.output[1:])).astype(np.uint8)
    sums = operator.interpret(binding, codes.astype(np.float32) - 100, weights)
    wanted = np.maximum(sums / 64 + (residual.astype(float) - 9) * 0.5, 0)
    channels = shapes.output[1]
    channel = np.concatenate([np.zeros(channels), np.full(channels, 1 / 64), [100, 9, 0.5, 3, 2]])
    formats = {"precision": "int8", "input_format": "uint8", "epilogue": "scale+residual+relu"}
    (function,) = stored_functions(
        operator, binding, native.QUICK_FLAGS, _options(LINEAR, ["uint8"], **formats)
    )
    y = np.zeros(residual.shape, np.uint8)
    function(codes, weights, y, 2, channel.astype(np.float32), residual)
    np.testing.assert_array_equal(y, np.clip(np.rint(wanted * 2) + 3, 0, 255))


def test_sums_that_may_exceed_32_bits_are_refused():
    most = {"N": 1, "I": 66000, "O": 8}
    with pytest.raises(UserError, match="may exceed 32 bits"):
        _core.emit_cpp(LINEAR.plans(most, 1)[0], precision="int8", input_format="uint8")
    less = most | {"I": 65000}
    _core.emit_cpp(LINEAR.plans(less, 1)[0], precision="int8", input_format="uint8")


@pytest.mark.parametrize(
    ("precision", "before", "after", "words"),
    [
        ("float16", "float32", "float32", "unknown precision 'float16'"),
        ("float32", "half", "float32", "unknown input format 'half'"),
        ("float32", "bfloat16", "float32", "do not fit the precision float32"),
        ("bfloat16", "float32", "uint8", "do not fit the precision bfloat16"),
        ("int8", "float32", "float32", "do not fit the precision int8"),
        ("int8", "uint8", "bfloat16", "do not fit the precision int8"),
    ],
)
def test_formats_that_do_not_fit(precision, before, after, words):
    plan = LINEAR.plans({"N": 1, "I": 4, "O": 8}, 1)[0]
    with pytest.raises(UserError, match=words):
        _core.emit_cpp(plan, precision=precision, input_format=before, output_format=after)


def test_an_operator_with_several_steps_in_int8():
    """Operators with several steps multiply codes in the first one, and float32 in the others."""
    rng = random.Random(0)
    case = with_sizes(ZOO["operator-1"], C_in=8, C_out=16, H=8, W=8)
    operator, binding = case.operator, case.binding
    shapes = operator.shapes(binding)
    codes = np.array([rng.randrange(256) for _ in range(int(np.prod(shapes.input)))], np.uint8)
    codes = codes.reshape(shapes.input)
    weights = [
        np.array([rng.randrange(-3, 4) for _ in range(int(np.prod(shape)))], np.float32)
        .reshape(shape)
        for shape in shapes.weights
    ]  # fmt: skip
    wanted = operator.interpret(binding, codes.astype(np.float32) - 50, weights)
    assert np.abs(wanted).max() < 2**24
    formats = {"precision": "int8", "input_format": "uint8"}
    (function,) = stored_functions(operator, binding, native.QUICK_FLAGS, [formats])
    y = np.zeros(shapes.output, np.float32)
    function(codes, weights, y, 1, np.array([50, 0, 1, 0, 1], np.float32))
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("name", [pytest.param("operator-1", marks=pytest.mark.slow), "operator-2"])
def test_steps_in_float32_behind_codes_store_codes(name):
    """The last step of a large layer computes rows in pairs, whatever it stores."""
    operator = zoo.load(name)
    binding = {"N": 1, "C_in": 64, "C_out": 64, "H": 56, "k": 3, "g": 32, "s": 2}
    rng = np.random.default_rng(0)
    shapes = operator.shapes(binding)
    codes = rng.integers(0, 9, shapes.input).astype(np.uint8)
    weights = [rng.integers(-2, 3, shape).astype(np.float32) for shape in shapes.weights]
    residual = rng.integers(0, 256, shapes.output).astype(np.uint8)
    formats = {"precision": "int8", "input_format": "uint8"}
    options = [
        formats | {"output_format": output, "epilogue": epilogue}
        for epilogue, output in (("", "float32"), ("", "uint8"), ("residual+relu", "uint8"))
    ]
    functions = stored_functions(operator, binding, native.QUICK_FLAGS, options)
    assert any("kPairWidth = 56" in function.source for function in functions)
    channel = np.array([4, 100, 0.5, 3, 2.0**-6], np.float32)
    y = np.zeros(shapes.output, np.float32)
    functions[0](codes, weights, y, 1, channel)
    positions = rng.integers(0, y.size, 200)
    exact = [weight.astype(int) for weight in weights]
    wanted = operator.interpret_at(binding, codes.astype(int) - 4, exact, positions)
    np.testing.assert_array_equal(y.reshape(-1)[positions], wanted)
    ended = np.maximum(y + (residual.astype(np.float32) - 100) * 0.5, 0)
    for function, value in zip(functions[1:], (y, ended), strict=True):
        found = np.zeros(shapes.output, np.uint8)
        function(codes, weights, found, 2, channel, residual)
        np.testing.assert_array_equal(found, np.clip(np.rint(value * 2.0**-6) + 3, 0, 255))
