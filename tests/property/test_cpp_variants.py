"""Epilogues, memory orders and phases of compiled operators: random operators, and known bugs."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from marks import slow_but, with_slow
from syno import Operator, UserError
from syno.codegen import native
from syno.codegen.emitters import Case
from syno.codegen.native import Variant

from . import emitted
from .cpp_variants import (
    ACTIVATIONS,
    TOLERANCE,
    Emitted,
    WrongError,
    by_phases,
    check,
    compiled,
    random_kernel,
)
from .loop_emitters import loop_case, with_sizes

ZOO = {name: loop_case(case) for name, case in emitted.zoo().items()}
NHWC = (0, 2, 3, 1)
EVERYTHING = "scale+bias+residual+relu"


def _check_all(kernels: list[Emitted]) -> None:
    for kernel, function in zip(kernels, compiled(kernels), strict=True):
        try:
            check(kernel, function)
        except WrongError as wrong:
            pytest.fail(str(wrong))


def _check_random(first: int, count: int) -> None:
    for seed in range(first, first + count, 40):
        _check_all([random_kernel(s) for s in range(seed, min(seed + 40, first + count))])


def test_random_operators_with_random_epilogues_and_memory_orders():
    _check_random(0, 40)


@pytest.mark.slow
def test_many_random_operators_with_random_epilogues_and_memory_orders():
    _check_random(0, 160)
    _check_random(1000, 2000)


def test_the_random_kernels_have_everything():
    kernels = [random_kernel(seed) for seed in range(200)]
    for part in ("scale", "bias", "residual", *ACTIVATIONS):
        assert sum(kernel.variant.has(part) for kernel in kernels) >= 5, part
    assert sum(kernel.variant.epilogue == "" for kernel in kernels) >= 5
    for orders in ("input_order", "output_order"):
        moved = [getattr(kernel.variant, orders) for kernel in kernels]
        assert sum(order is not None and order != tuple(sorted(order)) for order in moved) >= 20
    assert sum(kernel.batched for kernel in kernels) >= 20


# Matrix products of every kind: vectors over columns and over rows, in place and from panels.
SIZES = (
    {"C_in": 8, "C_out": 24, "H": 4, "W": 9},
    {"C_in": 5, "C_out": 33, "H": 7, "W": 7},
    {"C_in": 16, "C_out": 16, "H": 16, "W": 16},
    {"C_in": 3, "C_out": 8, "H": 1, "W": 50},
)


@pytest.mark.parametrize("every", with_slow([3, 1], 1))
@pytest.mark.parametrize(
    "name", with_slow(["conv2d", "conv1x1", "depthwise", "operator-1"], "conv1x1", "operator-1")
)
def test_convolutions(name, every):
    kernels = []
    for number, sizes in enumerate(SIZES):
        if name == "operator-1":
            sizes = sizes | {"C_in": 8, "C_out": 8 * (1 + number)}
        if name == "depthwise":
            sizes = sizes | {"C": sizes["C_out"]}
        case = with_sizes(ZOO[name], **sizes)
        for before, after in ((None, None), (NHWC, NHWC), (None, NHWC), (NHWC, None)):
            for epilogue, cache in ((EVERYTHING, 64), ("bias+silu", 65536)):
                kernels.append(Emitted(case, Variant(epilogue, 1, before, after), cache))
    _check_all(kernels[::every])


def test_pairs_of_rows_whose_last_block_has_fewer():
    """Whose number is odd, or twice an odd one, beside bounds, epilogues and other memory."""
    variants = [Variant(EVERYTHING, 1), Variant("bias+silu", 1, NHWC, None), Variant()]
    kernels = [
        Emitted(with_sizes(ZOO["conv2d"], C_in=c, C_out=24, H=h, W=w), variants[n % 3], cache)
        for n, (c, h, w, cache) in enumerate(
            itertools.product((16, 21), (9, 13, 14, 17, 25), (16, 31), (256, 2048))
        )
    ]
    rest = [kernel for kernel in kernels if " - block * " in kernel.emitted("op")[0]]
    assert len(rest) >= 15
    _check_all(rest)


MORE_STRIDED = [(7, 2), (2, 2), (5, 3), (4, 2)]
STRIDED = """syno operator 1
out [N, C_out, H, W]
in [N, C_in, s*H, s*W]
reduce C_in -> r0
reduce k -> r1
reduce k -> r2
contract o1:drop r0:keep r1:keep r2:keep
stride o2 s -> c0
stride o3 s -> c1
unfold c0 r1 -> c2
unfold c1 r2 -> c3
match o0 r0 c2 c3
"""


@pytest.mark.parametrize(
    ("k", "s"), [(3, 2), *(pytest.param(*x, marks=pytest.mark.slow) for x in MORE_STRIDED)]
)
def test_strided_convolutions(k, s):
    operator = Operator.from_text(STRIDED)
    kernels = [
        Emitted(
            Case(operator, {"N": 1, "C_in": c, "C_out": 24, "H": h, "W": w, "k": k, "s": s}),
            Variant("bias+residual", 1, order, order),
            cache,
        )
        for c, h, w in ((8, 5, 6), (3, 8, 17), (9, 1, 4))
        for order in (None, NHWC)
        for cache in (64, 2048, 65536)
    ]
    _check_all(kernels)


def test_strided_depthwise_convolutions_load_rows_once():
    operator = Operator.parse(
        "y[n,c,h,w] = sum(a:k, b:k) x[n,c,h*s+a-k/2,w*s+b-k/2] * w0[c,a,b]",
        input="[N, C, s*H, s*W]",
        output="[N, C, H, W]",
    )
    kernels = [
        Emitted(
            Case(operator, {"N": 1, "C": 3, "H": h, "W": w, "k": k, "s": 2}),
            Variant((EVERYTHING, "bias+silu", "")[n % 3], 1),
        )
        for n, (k, h, w) in enumerate(itertools.product((3, 4, 5, 7), (2, 7, 8, 15), (7, 18)))
    ]
    shared = [kernel for kernel in kernels if "at % 2 == 0" in kernel.emitted("op")[0]]
    assert len(shared) >= 20
    _check_all(shared)


def test_parts_of_a_merged_axis():
    """Groups, channels and rows lie side by side, but six of twelve divide their addresses."""
    operator = Operator.parse(
        "y[n,o,h,w] = sum(a:k_0, i:C_in, b:k_1) x[n,h+a-k_0/2,o/C_out*C_in+i,w+b-k_1/2]"
        " * w0[i,a,o/C_out,o mod C_out]",
        input="[N, H, g*C_in, W]",
        output="[N, g*C_out, H, W]",
    )
    sizes = {"k_0": 3, "g": 3, "k_1": 3, "C_in": 3, "C_out": 2, "H": 2, "N": 2, "W": 7}
    _check_all([Emitted(Case(operator, sizes), Variant("scale+bias+hardswish", 3))])


def test_a_linear_layer_over_tokens():
    case = with_sizes(ZOO["linear"], C_in=24, C_out=40, T=7)
    _check_all([Emitted(case, Variant("bias+gelu", 2)), Emitted(case, Variant(EVERYTHING, 1))])


def test_rows_without_columns():
    operator = Operator.from_text(
        "syno operator 1\nout [C_out]\nin [C_in]\nreduce C_in -> r0\ncontract o0:drop r0:keep\n"
        "match r0\n"
    )
    _check_all(
        [
            Emitted(Case(operator, {"C_in": 12, "C_out": size}), Variant("scale+bias+residual", 0))
            for size in (8, 12, 16, 40)
        ]
    )


PLAIN_FLAGS = [flag for flag in native.QUICK_FLAGS if not flag.startswith("-march")]


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("g++", [*PLAIN_FLAGS, "-mavx2", "-mfma"]),
        pytest.param("g++", [*PLAIN_FLAGS, "-msse2"], marks=pytest.mark.slow),
        *([("clang++", native.QUICK_FLAGS)] if shutil.which("clang++") else []),
    ],
)
def test_other_vectors_and_compilers(compiler, flags):
    if "-mavx2" in flags and "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("the processor has other vectors")
    kernels = [random_kernel(seed) for seed in range(4)]
    kernels += [
        Emitted(with_sizes(ZOO["conv2d"], C_out=24), Variant(f"{terms}{last}", 1, order, order))
        for order in (None, NHWC)
        for terms, last in zip(("scale+bias+", "residual+", "") * 3, ACTIVATIONS, strict=True)
    ]
    for kernel, function in zip(
        kernels, compiled(kernels, compiler=compiler, flags=flags), strict=True
    ):
        check(kernel, function)


def _identity(size: int) -> Emitted:
    operator = Operator.from_text("syno operator 1\nout [H]\nin [H]\nmatch o0\n")
    return Emitted(Case(operator, {"H": size}))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_as_exact_as_stated(name):
    exponents = np.exp2(np.linspace(-40, 30, 20_000))
    dense = np.linspace(-20, 20, 200_000)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -87.0, -87.5, 88.0, 104.0]
    x = np.concatenate([dense, exponents, -exponents, special]).astype(np.float32)
    kernel = _identity(len(x))
    kernel = Emitted(kernel.case, Variant(name))
    (function,) = compiled([kernel])
    found = function(x).astype(float)
    with np.errstate(all="ignore"):
        wanted = ACTIVATIONS[name](torch.from_numpy(x.astype(float))).numpy()
        wanted = np.where(
            np.abs(wanted) > np.finfo(np.float32).max, np.sign(wanted) * np.inf, wanted
        )
        error = np.abs(found - wanted) / np.maximum(1, np.abs(wanted))
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    error[same] = 0
    worst = int(np.nanargmax(np.where(np.isnan(error), np.inf, error)))
    assert error[worst] <= TOLERANCE, (x[worst], found[worst], wanted[worst])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_images_and_threads_and_phases_give_the_same_bits(threads):
    kernel = Emitted(with_sizes(ZOO["conv2d"], C_in=8, C_out=24), Variant("bias+gelu", 1))
    (function,) = compiled([kernel])
    random = np.random.default_rng(0)
    shapes = kernel.case.operator.shapes(kernel.case.binding)
    function.pack([random.standard_normal(shape) for shape in shapes.weights])
    bias = random.standard_normal(shapes.output[1]).astype(np.float32)
    for images in (1, 2, 5, 7):
        x = random.standard_normal((images, *shapes.input[1:])).astype(np.float32)
        one = np.concatenate([function(x[n : n + 1], 1, bias=bias) for n in range(images)])
        assert np.array_equal(function(x, threads, bias=bias), one)
        found = by_phases(function, x, {"bias": bias}, threads, one.shape)
        assert np.array_equal(found, one)


# Known bugs: what an epilogue gets wrong, each in its own way. None reads out of bounds.
SMALL = Emitted(with_sizes(ZOO["conv2d"], C_out=6), Variant(EVERYTHING, 1))
LARGE = Emitted(with_sizes(ZOO["conv2d"], C_out=24), Variant(EVERYTHING, 1))
WIDE = Emitted(with_sizes(ZOO["conv2d"], C_out=32), Variant(EVERYTHING, 1, NHWC, NHWC))
LINES = Emitted(with_sizes(ZOO["conv2d"], C_out=24), Variant(EVERYTHING, 2))
MUTATIONS = {
    "channel of another dimension": (LARGE, r"true, 35, 24, Relu", "true, 7, 5, Relu"),
    "channel of a neighbour": (LARGE, r"place / kInner % kCh", "(place / kInner + 1) % kCh"),
    "one channel for all rows": (SMALL, r"epilogue\.of_channel\(c\)", "epilogue.of_channel(0)"),
    "channels from the first on": (
        WIDE,
        r"return of_channels\(c, count\)",
        "return of_channels(0, count)",
    ),
    "channels that are not counted on": (
        *(
            LINES,
            r"\(unsigned long lane\) \{ return channel_of\(place \+ lane\)",
        ),
        "(unsigned long) { return channel_of(place)",
    ),
    "bias and scale swapped": (
        LARGE,
        r"kScale \? splat\(channel\[kChannels \+ c\]",
        "kScale ? splat(channel[c]",
    ),
    "scale after bias": (
        *(LARGE, r"if constexpr \(kScale\) v \*= scale;\s*if constexpr \(kBias\) v \+= bias;"),
        "v += bias; v *= scale;",
    ),
    "bias left out": (SMALL, r"if constexpr \(kBias\) v \+= bias;", ""),
    "bias twice": (SMALL, r"v \+= bias;", "v += bias + bias;"),
    "activation before the residual": (
        LARGE,
        r"if constexpr \(kResidual\) v \+= more;\s*return Activation::of\(v\);",
        "return Activation::of(v) + more;",
    ),
    "activation left out": (SMALL, r"Relu>;", "Same>;"),
    "another activation": (LARGE, r"Relu>;", "Relu6>;"),
    "residual left out": (LARGE, r"if constexpr \(kResidual\) v \+= more;", ""),
    "residual of another place": (
        *(LARGE, r"load_part\(residual \+ \(to - y\), 0, count\)"),
        "load_part(residual + (to - y) / 2, 0, count)",
    ),
    "residual of the first image": (SMALL, r"residual \+ n \* 210", "residual + n * 0"),
    "residual of lanes that are not stored": (
        *(SMALL, r"load_part\(residual \+ \(to - y\), 0, count\)"),
        "load_part(residual + (to - y), 0, count - 1)",
    ),
    "results stored without an epilogue": (LARGE, r"y, team, epilogue\)", "y, team)"),
    "epilogue of a part of the vectors": (
        *(
            WIDE,
            r"store_end\(ends, start \+ C::column\(n0 \+ n\)",
        ),
        "store_end(Plain{}, start + C::column(n0 + n)",
    ),
    "a phase that one part does alone": (
        *(LARGE, r"workspace \+ \d+ \+ part \* \d+, Team\{part, team_of\(parts\)\}"),
        "workspace, Team{0, team_of(parts)}",
    ),
    "a phase less": (LARGE, r"_phase_count\(void\) \{ return", "_phase_count(void) { return -1 +"),
    "an image that no thread has": (
        *(LARGE, r"for \(long n = whole; n < batch"),
        "for (long n = whole + 1; n < batch",
    ),
    "channels as in row-major memory": (WIDE, r"true, 1, 32, Relu", "true, 35, 32, Relu"),
}


@pytest.mark.parametrize("bug", slow_but(MUTATIONS, *list(MUTATIONS)[:3]))
def test_a_known_bug_is_caught(bug):
    kernel, pattern, replacement = MUTATIONS[bug]
    (right,) = compiled([kernel])
    check(kernel, right)

    def mutant(text: str) -> str:
        changed, count = re.subn(pattern, lambda _: replacement, text)
        assert count == 1, f"{pattern} stands {count} times in\n{text}"
        return changed

    (wrong,) = compiled([kernel], mutant)
    with pytest.raises(WrongError):
        check(kernel, wrong)


@pytest.mark.parametrize(
    ("epilogue", "message"),
    [
        ("relu+bias", r"nothing after the activation\s+got: 'bias'"),
        ("bias+scale", r"'scale' once, as the first part\s+got: 'scale'"),
        ("residual+bias", r"'bias' once, before 'residual'\s+got: 'bias'"),
        ("residual+residual", r"'residual' once\s+got: 'residual'"),
        ("bias+leaky_relu", r"the name of a part\s+got: 'leaky_relu'"),
        ("bias+", r"the name of a part\s+got: ''"),
        ("Relu", r"the name of a part\s+got: 'Relu'"),
    ],
)
def test_a_malformed_epilogue_is_refused(epilogue, message):
    with pytest.raises(UserError, match=rf"malformed\n  expected: {message}\n  hint: join by"):
        native.compile_operator(*ZOO["conv2d"], variant=Variant(epilogue))


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        (Variant("bias", 0), r"in channel\n  expected: a dimension from 1 to 3\s+got: 0"),
        (Variant("scale", 4), r"a dimension from 1 to 3\s+got: 4"),
        (Variant("bias", -1), r"a dimension from 1 to 3\s+got: -1"),
        (Variant("", 1, (0, 2, 3)), r"in input_order\n.*\[0, 1, 2, 3\]\s+got: \[0, 2, 3\]"),
        (Variant("", 1, None, (0, 1, 1, 3)), r"in output_order\n.*got: \[0, 1, 1, 3\]"),
        (Variant("", 1, (1, 0, 2, 3)), r"begins with 0\s+got: \[1, 0, 2, 3\]"),
    ],
)
def test_a_channel_or_an_order_that_does_not_exist_is_refused(variant, message):
    with pytest.raises(UserError, match=message):
        native.compile_operator(*ZOO["conv2d"], variant=variant)
    # Without values for channels there is nothing to refuse.
    native.compile_operator(*ZOO["conv2d"], variant=Variant("relu", 9))


def test_arrays_that_the_epilogue_does_not_name_are_refused():
    (function,) = compiled([SMALL])
    shapes = SMALL.case.operator.shapes(SMALL.case.binding)
    function.pack([np.ones(shape) for shape in shapes.weights])
    x, channels, y = np.ones(shapes.input), np.ones(6), np.ones(shapes.output)
    with pytest.raises(UserError, match=r"\['scale', 'bias', 'residual'\]\s+got: \['bias'\]"):
        function(x, bias=channels)
    with pytest.raises(UserError, match=r"bias of the wrong shape\n  expected: \[6\]"):
        function(x, bias=np.ones(5), scale=channels, residual=y)
    with pytest.raises(UserError, match="residual of the wrong shape"):
        function(x, bias=channels, scale=channels, residual=y[:, :5])
    (plain,) = compiled([Emitted(SMALL.case)])
    plain.pack([np.ones(shape) for shape in shapes.weights])
    with pytest.raises(UserError, match="has other parts"):
        plain(x, bias=channels)


# Rows that windows read again and again: with one window, with two, without a weight, and dilated.
WINDOWS = {
    "depthwise": emitted.zoo()["depthwise"].operator.text,
    "of one axis": """syno operator 1
out [N, C, H, W]
in [N, C, H, W]
reduce k -> r0
contract o1:keep r0:keep
unfold o2 r0 -> c0
match o0 o1 c0 o3
""",
    "pooling": """syno operator 1
out [N, C, H, W]
in [N, C, H, W]
reduce k -> r0
reduce k -> r1
unfold o2 r0 -> c0
unfold o3 r1 -> c1
match o0 o1 c0 c1
""",
    "dilated": """syno operator 1
out [N, C, H, W]
in [N, C, H, W]
reduce k -> r0
reduce k -> r1
contract o1:keep r0:keep r1:keep
stride r0 s -> c0
unfold o2 c0 -> c1
unfold o3 r1 -> c2
match o0 o1 c1 c2
""",
}


@pytest.mark.parametrize("name", with_slow(WINDOWS, "depthwise"))
def test_windows_over_rows(name):
    operator = Operator.from_text(WINDOWS[name])
    kernels = []
    for k, h, w in (
        (3, 7, 7),
        (3, 16, 20),
        (5, 8, 33),
        (2, 4, 16),
        (7, 14, 3),
        (4, 2, 70),
        (3, 13, 5),
    ):
        binding = {"N": 1, "C": 3, "H": h, "W": w, "k": k, "s": 2}
        case = Case(operator, {name: binding[name] for name in operator.variables})
        kernels += [
            Emitted(case, Variant("bias+residual", 1, order, order)) for order in (None, NHWC)
        ]
    _check_all(kernels)


def test_windows_over_rows_load_what_they_share_once():
    for name, met in (("depthwise", 9), ("of one axis", 9), ("pooling", 9), ("dilated", 11)):
        operator = Operator.from_text(WINDOWS[name])
        binding = {"N": 1, "C": 3, "H": 14, "W": 20, "k": 3, "s": 2}
        case = Case(operator, {name: binding[name] for name in operator.variables})
        assert f"r < {met}; ++r" in Emitted(case).emitted("op")[0], name


# Blocks of few rows with channels inside, whose rows are vectors together.
@pytest.mark.parametrize("name", with_slow(["block-diagonal", "monarch"], "monarch"))
def test_rows_of_small_blocks(name):
    kernels = []
    for rows, terms, blocks, tokens in ((4, 4, 16, 9), (2, 3, 20, 5), (7, 5, 9, 3), (3, 4, 5, 1)):
        case = with_sizes(
            ZOO[name], C_in=terms * blocks, C_out=rows * blocks, T=tokens, g=blocks, s=rows
        )
        for before, after in ((None, None), (None, (0, 2, 1)), ((0, 2, 1), None)):
            kernels.append(Emitted(case, Variant(EVERYTHING, 2, before, after)))
            kernels.append(Emitted(case, Variant("bias", 2, before, after), 64))
    _check_all(kernels)


def test_rows_of_small_blocks_are_joined():
    case = with_sizes(ZOO["block-diagonal"], C_in=64, C_out=64, T=8, g=16)
    assert "kLength = 64, kTile = 8" in Emitted(case).emitted("op")[0]
