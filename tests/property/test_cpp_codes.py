"""Kernels whose steps all multiply codes of 8 bits: contractions, and depthwise convolutions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from marks import slow_but
from syno import Operator, UserError, _core
from syno.codegen import native
from syno.operators import zoo

from .cpp_stored import stored_functions
from .test_cpp_variants import NHWC

PLAIN = tuple(flag for flag in native.QUICK_FLAGS if flag != "-march=native")
# Of vectors with and without the instruction, and of any processor.
FLAGS = {
    "here": native.QUICK_FLAGS,
    "no instruction": (*native.QUICK_FLAGS, "-mno-avx512vnni"),
    "no AVX-512": (*native.QUICK_FLAGS, "-mno-avx512f"),
    "AVX2": (*PLAIN, "-mavx2", "-mfma"),
    "any processor": PLAIN,
}
CODES = {"precision": "int8", "input_format": "uint8", "value_format": "uint8"}
BATCH = 2
MOST_TERMS = 4e6
# In make test.
QUICK = ("depthwise-separable", "operator-1", "operator-2", "grouped", "low-rank-conv")
IDENTITY = [128.0, 1.0, 1.0]  # zero, scale and 1 / scale of codes that hold small integers
DEPTHWISE = ("depthwise", "depthwise-separable", "dilated", "shift-conv")
STEPS = ("operator-1", "operator-2", "stacked-conv", "low-rank-conv")
LAYERS = ("conv2d", "conv1x1", "grouped", "linear", "transposed-conv", "conv1d-swapped")
WITH_STEPS = Operator.parse(
    "y[n,c,h,w] = sum(a:A,b:B) x[n,c,s*h+a-A/2,s*w+b-B/2] * W[c,b,a]",
    input="[N, C, s*H, s*W]",
    output="[N, C, H, W]",
)
OTHERS = (
    "low-rank",
    "monarch",
    "block-diagonal",
    "patch-fold",
    "window-by-rotation",
    "tiled-projection",
    "dilated",
)


def drawn_sizes(operator: Operator, name: str, rng: random.Random) -> dict[str, int] | None:
    """Sizes around those of the zoo, with more channels; None where they do not fit."""
    sizes = {}
    for variable, size in zoo.binding(name).items():
        if variable == operator.batch:
            sizes[variable] = 1
        elif variable.startswith("C"):
            sizes[variable] = size * rng.choice((2, 3, 4, 5, 8, 16))
        elif variable in ("H", "W", "L"):
            sizes[variable] = max(1, size + rng.choice((-4, -2, 0, 1, 3, 9)))
        else:
            sizes[variable] = rng.choice((size, size, size + 2)) if variable == "k" else size
    try:
        operator.shapes(sizes)
    except UserError:  # such as an odd width with a stride of 2
        return None
    return sizes if operator.term_count(sizes) < MOST_TERMS else None


def cases(name: str, count: int, seed: int) -> Iterator[tuple[Operator, dict[str, int]]]:
    """An operator with several sizes."""
    operator, rng = zoo.load(name), random.Random(f"{name} {seed}")
    found = 0
    for _ in range(50 * count):
        sizes = drawn_sizes(operator, name, rng)
        if sizes is not None:
            found += 1
            yield operator, sizes
        if found == count:
            return
    raise AssertionError(f"only {found} of {count} sizes of {name} fit")


def sparse(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray:
    """Small integers of which few are not zero, so that no sum of two steps saturates."""
    values = rng.integers(-1, 2, shape)
    return np.where(rng.random(shape) < 12 / max(12, values[0].size), values, 0)


def check(operator: Operator, sizes: dict[str, int], flags: tuple[str, ...]) -> str:
    """Compare all memory orders and outputs with the interpreter; the sources."""
    rng = np.random.default_rng(len(operator.text) + sum(sizes.values()))
    images = BATCH if operator.batch else 1
    shapes = operator.shapes(sizes)
    x = np.concatenate([sparse(rng, (1, *shapes.input[1:])) for _ in range(images)])
    x = x if operator.batch else sparse(rng, tuple(shapes.input))
    weights = [rng.integers(-1, 2, shape).astype(np.float32) for shape in shapes.weights]
    one = [x[n : n + 1] for n in range(images)] if operator.batch else [x]
    y = np.concatenate([operator.interpret(sizes, i.astype(float), weights) for i in one])
    orders: list[tuple[int, ...] | None] = [None]
    if x.ndim == y.ndim == 4 and operator.batch:
        orders.append(NHWC)
    options = [
        CODES | {"input_order": order, "output_order": order, "output_format": output}
        for order in orders
        for output in ("float32", "uint8")
    ]
    plan = operator.plans(sizes, 1)[0]
    zero = int(rng.integers(1, 200))
    sources = ""
    for function in stored_functions(operator, sizes, flags, options):
        made = {k: v for k, v in function.options.items() if v is not None}
        manifest = json.loads(_core.emit_cpp(plan, name="op", **made)[1])
        order, _ = function.orders
        laid = [np.ascontiguousarray(a.transpose(order) if order else a) for a in (x + zero, y)]
        in_codes = function.options["output_format"] == "uint8"
        wanted = np.clip(laid[1] + 90, 0, 255) if in_codes else laid[1]
        found = np.empty(wanted.shape, np.uint8 if in_codes else np.float32)
        values = [zero, 0, 1, 90, 1, *IDENTITY * len(manifest.get("codes", ()))]
        for threads in (1, 2):
            found[...] = 77
            data = laid[0].astype(np.uint8)
            function(data, weights, found, threads, np.array(values, np.float32))
            assert np.array_equal(found, wanted), (sizes, order, threads)
        sources += function.source
    return sources


@pytest.mark.parametrize("name", slow_but(sorted({*DEPTHWISE, *STEPS, *LAYERS, *OTHERS}), *QUICK))
def test_every_step_is_exact_in_codes(name):
    sources = "".join(check(*case, FLAGS["here"]) for case in cases(name, 3, 0))
    if name in STEPS:
        assert "codes[0]" in sources, "no step gives codes to another"
    if name in DEPTHWISE[:2]:
        assert "struct Depthwise" in sources


def test_a_small_first_step_gives_codes():
    """It is not computed where the second one copies its data, as in float32."""
    sizes = zoo.binding("operator-1") | {"C_in": 16, "C_out": 64, "H": 7, "g": 2, "s": 2}
    assert "codes[0]" in check(zoo.load("operator-1"), sizes, FLAGS["here"])


@pytest.mark.slow
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("name", zoo.names())
def test_every_step_of_the_zoo_is_exact_in_codes(name, flags):
    for case in cases(name, 12, 1):
        check(*case, FLAGS[flags])


@pytest.mark.parametrize("flags", slow_but(sorted({*FLAGS} - {"here"}), "no AVX-512"))
@pytest.mark.parametrize("name", ["operator-2", "depthwise-separable"])
def test_code_for_other_processors_is_exact_in_codes(name, flags):
    for case in cases(name, 1, 2):
        check(*case, FLAGS[flags])


@pytest.mark.parametrize("channels", slow_but([8, 17, 48], 17))
@pytest.mark.parametrize("step", slow_but([1, 2, 3], 2))
@pytest.mark.parametrize("taps", slow_but([(1, 4), (3, 3), (5, 2), (7, 1)], (3, 3), (5, 2)))
def test_depthwise_convolutions_with_steps(channels, step, taps):
    """All codes and weights, for maps with borders on every side."""
    rows, columns = taps
    sizes = {"N": 1, "C": channels, "A": rows, "B": columns, "s": step, "H": 5, "W": 9}
    check_all_codes(WITH_STEPS, sizes)


def check_all_codes(operator: Operator, sizes: dict[str, int]) -> None:
    rng = np.random.default_rng(sum(sizes.values()))
    shapes = operator.shapes(sizes)
    codes = rng.choice([0, 1, 254, 255], shapes.input).astype(np.uint8)
    weights = [rng.choice([-128, -1, 1, 127], s).astype(np.float32) for s in shapes.weights]
    wanted = operator.interpret(sizes, codes.astype(float) - 3, weights)
    options = CODES | {"input_order": NHWC, "output_order": NHWC}
    (function,) = stored_functions(operator, sizes, native.QUICK_FLAGS, [options])
    assert "struct Depthwise" in function.source
    y = np.empty([wanted.shape[d] for d in NHWC], np.float32)
    values = np.array([3, 0, 1, 0, 1], np.float32)
    function(np.ascontiguousarray(codes.transpose(NHWC)), weights, y, 2, values)
    assert np.array_equal(y, wanted.transpose(NHWC))


LOW_RANK = Operator.parse(
    "y[n,o] = sum(r:R, i:I) x[n,i] * W0[o,r] * W1[r,i]", input="[N, I]", output="[N, O]"
)


@pytest.mark.parametrize("factor", [1.0, 2.0**-5, 2.0**-8, 2.0**3])
def test_what_steps_give_to_others_is_rounded_and_saturates(factor):
    sizes = {"N": 1, "I": 40, "R": 24, "O": 33}
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (3, 40)).astype(np.uint8)
    by_name = dict(zip(("W0", "W1"), LOW_RANK.shapes(sizes).weights, strict=True))
    weights = [rng.integers(-9, 10, shape).astype(np.float32) for shape in by_name.values()]
    last, first = weights if weights[0].shape == (33, 24) else weights[::-1]
    sums = (codes.astype(np.float64) - 128) @ first.T
    between = np.clip(np.rint(sums * factor) + 100, 0, 255)
    assert factor < 2**-6 or ((between == 0).any() and (between == 255).any())
    wanted = ((between - 100) / factor) @ last.T
    (function,) = stored_functions(LOW_RANK, sizes, native.QUICK_FLAGS, [CODES])
    assert "codes[0]" in function.source
    y = np.empty((3, 33), np.float32)
    values = np.array([128, 0, 1, 0, 1, 100, 1 / factor, factor], np.float32)
    function(codes, weights, y, 2, values)
    np.testing.assert_array_equal(y, wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("precision", "values", "words"),
    [
        ("int8", "int4", "unknown value format 'int4'"),
        ("int8", "bfloat16", "value format bfloat16 does not fit the precision int8"),
        ("float32", "uint8", "value format uint8 does not fit the precision float32"),
    ],
)
def test_value_formats_that_do_not_fit(precision, values, words):
    plan = LOW_RANK.plans({"N": 1, "I": 8, "R": 8, "O": 8}, 1)[0]
    data = "uint8" if precision == "int8" else "float32"
    with pytest.raises(UserError, match=words):
        _core.emit_cpp(plan, precision=precision, input_format=data, value_format=values)


BUGS = {
    "a tap of another column": ("place + i) * (kInside", "place + i + 1) * (kInside"),
    "the zero of a border": ("IntVector one = IntVector{} + zero", "IntVector one = IntVector{}"),
    "rows of words in turns": ("<< (8 * part));\n      }", "<< (8 * (part ^ 1)));\n      }"),
    "another scale of the data": ("value(sum[n][v]) * splat(data.scale)", "value(sum[n][v])"),
    "codes of another zero": ("const auto zero = static_cast<int>(to.zero)", "const int zero = 0"),
}


@pytest.mark.parametrize("bug", slow_but(BUGS, "the zero of a border"))
def test_a_bug_is_found(bug, monkeypatch):
    """The comparisons above notice each of these changes of the text."""
    old, new = BUGS[bug]
    runtime = _core.cpp_runtime()
    assert runtime.count(old) >= 1, f"{old} is not there"
    monkeypatch.setattr(_core, "cpp_runtime", lambda: runtime.replace(old, new))
    with pytest.raises(AssertionError):
        check_all_codes(WITH_STEPS, {"N": 1, "C": 8, "A": 3, "B": 3, "s": 1, "H": 5, "W": 9})
        check_steps_with_scale()
        for case in cases("operator-2", 3, 0):
            check(*case, FLAGS["here"])


def check_steps_with_scale():
    test_what_steps_give_to_others_is_rounded_and_saturates(2.0**-5)
