"""C++ for training: value and gradients against the interpreter, in any batch, and known bugs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from marks import slow_but, with_slow
from syno import Operator
from syno.codegen.emitters import Case
from syno.codegen.emitters.training import EMITTER, TrainingEmitter
from syno.codegen.native import no_compiler
from syno.codegen.native.training import compile_training, on_arrays
from syno.codegen.verify import random_check, verify
from syno.codegen.verify.check import CodeComparison, MismatchError
from syno.codegen.verify.random_cases import random_case
from syno.operators import zoo

pytestmark = pytest.mark.skipif(no_compiler() is not None, reason="there is no C++ compiler")

CONV = Case(zoo.load("conv2d"), {"N": 2, "C_in": 16, "C_out": 16, "H": 5, "W": 6, "k": 3})
STRIDED = Case(
    Operator.from_text(
        "syno operator 1\nout [N, C_out, H]\nin [N, C_in, s*H]\nreduce C_in -> r0\nreduce k -> r1\n"
        "contract o1:drop r0:keep r1:keep\nstride o2 s -> c0\nunfold c0 r1 -> c1\nmatch o0 r0 c1\n"
    ),
    {"N": 2, "C_in": 3, "C_out": 10, "H": 4, "k": 3, "s": 2},
)
ROLLED = Case(
    Operator.from_text(
        "syno operator 1\nout [C, H]\nin [C, H]\nreduce k -> r0\ncontract r0:keep\n"
        "shift o1 1 -> c0\nunfold c0 r0 -> c1\nmatch o0 c1\n"
    ),
    {"C": 5, "H": 5, "k": 3},
)


def integers(shape, random):
    return random.integers(-3, 4, shape).astype(np.float32)


@pytest.mark.parametrize("count", [6, pytest.param(30, marks=pytest.mark.slow)])
def test_random_operators_agree_with_the_interpreter(count):
    result = random_check(count, 3_000_000, emitters=("training",))
    assert [f"{m.seed}: {m.smallest or m.failure}" for m in result.mismatches] == []


@pytest.mark.parametrize("images", with_slow([1, 3], 1))
def test_blocks_of_the_batch_of_any_size_agree(images):
    emitter = TrainingEmitter(images=images)
    found = (random_case(seed).case for seed in range(7_000, 7_060))
    cases = [case for case in found if case.operator.batch is not None][:12]
    assert len(cases) == 12
    for case, function in zip(cases, emitter.build(cases), strict=True):
        for batch in (1, 2, 5):
            sizes = case.binding | {case.operator.batch: batch}
            CodeComparison(emitter, Case(case.operator, sizes), 0).check(function)


def test_without_the_gradient_of_the_input_those_of_the_weights_are_the_same():
    case = Case(zoo.load("operator-1"), zoo.binding("operator-1"))
    function = compile_training(case.operator, case.binding)
    random = np.random.default_rng(0)
    shapes = case.operator.shapes(case.binding)
    x, dy = integers(shapes.input, random), integers(shapes.output, random)
    weights = [integers(shape, random) for shape in shapes.weights]
    _, expected = on_arrays(function, x, weights, dy)
    found = [np.full_like(weight, np.nan) for weight in weights]
    function.gradients(
        x.ctypes.data,
        [weight.ctypes.data for weight in weights],
        dy.ctypes.data,
        0,
        [gradient.ctypes.data for gradient in found],
        len(x),
    )
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


def test_blocks_that_are_not_added_up_are_caught():
    emitter = TrainingEmitter(images=1)
    wrong = emitter.source(CONV).replace("kAdds = true", "kAdds = false")
    assert wrong != emitter.source(CONV)
    (function,) = emitter.build([CONV], [wrong])
    with pytest.raises(MismatchError, match="the gradient of w0"):
        CodeComparison(emitter, CONV, 0).check(function)


# Each changes the gradients alone: the value of the operator stays right.
BUGS = {
    "weight not mirrored": (CONV, r"return 8;", "return 0;", r"a_c_ \+ k_ \* -3", "a_c_ + k_ * 3"),
    "weight mirrored along one axis": (CONV, r"a_k_ \+ l_ \* -1", "a_k_ + l_ * 0"),
    "window one too far": (CONV, r"30\*u_ \+ 6\*u2_ \+ 480\*n_ - 7", "30*u_ + 6*u2_ + 480*n_ - 6"),
    "padding left out": (CONV, r"u2_ - 1\) < 5", "u2_ - 1) < 4"),
    "batch summed once": (CONV, r"n_ = 0; n_ < 32", "n_ = 0; n_ < 1"),
    "taps of the weight gradient swapped": (CONV, r"9\*i_ \+ 3\*k_\) \+ s", "9*i_ + k_) + 3 * s"),
    "stride forgotten": (STRIDED, r"\(\(?[\w +]+\)? % 2\)", "(0)"),
    "rotation the other way": (
        ROLLED,
        r"i_ \+ k_ \+ 3\) % 5|k_ \+ i_ \+ 3\) % 5",
        "k_ + i_ + 2) % 5",
    ),
}


@pytest.mark.parametrize("bug", slow_but(BUGS, *list(BUGS)[:2]))
def test_a_bug_in_the_gradients_is_caught(bug):
    case, *changes = BUGS[bug]
    source = EMITTER.source(case)
    at = source.index("_gradients_detail")
    wrong = source[at:]
    for pattern, replacement in zip(changes[::2], changes[1::2], strict=True):
        wrong, count = re.subn(pattern, replacement, wrong)
        assert count > 0, f"{pattern} is not in\n{source[at:]}"
    right = verify(case.operator, case.binding, emitter="training")
    assert right.passed, right.failure
    found = verify(case.operator, case.binding, emitter="training", source=source[:at] + wrong)
    assert not found.passed
    assert "gradient" in found.failure
