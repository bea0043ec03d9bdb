"""TVM and Triton compute what the interpreter computes: random operators, windows, the zoo.

Small integers are compared exactly in float32, and random data within 1e-5 of the sum of absolute
terms.
"""

from __future__ import annotations

import re

import pytest

from syno.codegen import emitters
from syno.codegen.verify import random_check
from syno.codegen.verify.check import CodeComparison, MismatchError, build

from .loop_emitters import check, needs, with_sizes, zoo

ZOO = zoo()
EMITTERS = [pytest.param(name, marks=needs(name)) for name in ("tvm", "triton")]


@pytest.mark.parametrize("name", EMITTERS)
def test_random_operators(name):
    # `make check-all` asks for more: tools/check_all.sh.
    result = random_check(50, 2_000_000, [name])
    assert [f"{m.seed}: {m.smallest or m.failure}" for m in result.mismatches] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", EMITTERS)
def test_zoo(name):
    check(name, list(ZOO.values()))


# Compiling so many sizes takes minutes; test_zoo and the random operators always run.
@pytest.mark.slow
@pytest.mark.parametrize("name", EMITTERS)
def test_zoo_with_even_and_wide_windows(name):
    windowed = [case for case in ZOO.values() if "unfold" in case.operator.primitives()]
    assert len(windowed) > 8
    check(
        name,
        [
            with_sizes(case, k=k, H=size, W=size)
            for case in windowed
            for k, size in ((2, 6), (4, 6), (5, 2), (7, 4), (1, 2))
        ],
    )


# Bugs of matrix products, which are too large for the known bugs of mutations.py.
MUTATIONS = [
    ("triton", "conv2d", r"column // 7 % 5", "column // 5 % 5"),
    ("triton", "conv2d", r"& \(term < 36\)", "& (term < 35)"),
    ("triton", "conv2d", r"term // 3 % 3", "term % 3"),
    ("triton", "conv2d", r"\(row < 12\) & \(column", "(row < 11) & (column"),
    ("triton", "conv2d", r"\(7\*h \+ w - 8\)", "(7*h + w - 7)"),
    ("triton", "depthwise", r"term < 9", "term < 8"),
    ("triton", "operator-1", r"450\*image", "0*image"),
]


@pytest.mark.parametrize(
    ("name", "operator", "pattern", "bug"),
    [pytest.param(*mutation, marks=needs(mutation[0])) for mutation in MUTATIONS],
)
def test_a_wrong_source_is_noticed(name, operator, pattern, bug):
    emitter = emitters.get(name)
    # Enough channels for a matrix product.
    case = with_sizes(ZOO[operator], N=2)
    if operator == "conv2d":
        case = with_sizes(case, C_out=12)
    source = emitter.source(case)
    mutant, count = re.subn(pattern, lambda _: bug, source)
    assert count >= 1, source
    with pytest.raises(MismatchError):
        (function,) = build(emitter, [case], [mutant])
        CodeComparison(emitter, case, 0).check(function)
