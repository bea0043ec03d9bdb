"""The differential test itself: what it draws, that it catches bugs, and how it says so."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from syno import Operator
from syno.codegen import emitters
from syno.codegen.emitters.cpp import CppEmitter
from syno.codegen.emitters.pytorch import PyTorchEmitter
from syno.codegen.verify import random_check
from syno.codegen.verify.random_cases import MAX_TERMS, is_legal, random_case
from syno.codegen.verify.shrink import shrink
from syno.codegen.verify.traits import TRAITS, traits

from . import cpp_mutations, loop_mutations
from .mutations import BUGS, MUTATIONS, mutated

OPERATORS = 400
ALL_MUTATIONS = MUTATIONS | {
    "cpp": cpp_mutations.CPP,
    "tvm": loop_mutations.TVM,
    "triton": loop_mutations.TRITON,
}


def test_random_operators_agree_with_the_interpreter():
    result = random_check(OPERATORS, 1_000_000)
    assert [f"{m.seed}: {m.smallest or m.failure}" for m in result.mismatches] == []
    assert result.operators == OPERATORS
    assert 0 < result.max_error["pytorch"] < 1e-5


def test_the_mix_has_enough_of_everything():
    result = random_check(OPERATORS, 1_000_000, emitters=())
    counts = dict(result.counted())
    assert set(counts) == {"like a convolution", *TRAITS}
    least = {"nested windows": 0.05, "strided window": 0.03, "no weight": 0.02}
    rare = ("expand", "causal window", "rotation after a window", "window of 1", "wide window")
    least |= dict.fromkeys(rare, 0.06)
    for name, count in counts.items():
        assert count / OPERATORS >= least.get(name, 0.1), (name, count)
    assert counts["cutting mask"] / OPERATORS > 0.4
    assert counts["derived weight coordinate"] / OPERATORS > 0.4


@pytest.mark.parametrize(
    "emitter",
    [pytest.param(e, marks=() if e == "pytorch" else pytest.mark.slow) for e in ALL_MUTATIONS],
)
def test_every_known_bug_is_caught(emitter):
    reason = emitters.get(emitter).available()
    if reason is not None:
        pytest.skip(reason)
    bugs = ALL_MUTATIONS[emitter]
    assert len(BUGS) >= 20
    assert set(BUGS) <= {mutation.bug for mutation in bugs}
    for mutation in bugs:
        case = mutation.case
        source = emitters.get(emitter).source(case)
        assert mutation.mutant(source) != source
    found = [(mutation.bug, mutated(emitter, mutation)) for mutation in bugs]
    missed = [bug for bug, verification in found if verification.passed]
    assert missed == []
    raised = [bug for bug, verification in found if "fails: " in verification.failure]
    assert raised == [], "these are noticed by an exception, not by what they compute"


def wrong(monkeypatch, pattern, replacement):
    """Lets PyTorch's code have a bug everywhere."""
    right = PyTorchEmitter.source
    monkeypatch.setattr(
        PyTorchEmitter, "source", lambda self, case: re.sub(pattern, replacement, right(self, case))
    )


def test_a_mismatch_is_made_small(monkeypatch):
    wrong(monkeypatch, r"roll\((-?\d+), ", r"roll(1 + \1, ")
    result = random_check(40, 0)
    assert result.mismatches
    first = result.mismatches[0]
    assert Operator.from_text(first.operator).primitives().get("shift", 0) > 0
    # A rotation of a dimension of two, and nothing else.
    text = first.smallest.partition("of operator\n")[2]
    assert re.fullmatch(
        r"syno operator 1\nout \[\w+\]\nin \[\w+\]\nshift o0 -?1 -> c0\nmatch c0\n+", text
    )
    assert re.search(r"in binding \{'\w+': 2\}, seed", first.smallest)
    # The seed alone draws the case again.
    again = random_check(1, first.seed)
    assert again.mismatches == [first]


def test_code_that_cannot_be_built_is_a_mismatch_of_its_own_case(monkeypatch):
    wrong(monkeypatch, r"(?s)^.*roll\(.*$", "this is no Python")
    result = random_check(20, 0)
    expected = [s for s in range(20) if "shift" in random_case(s).case.operator.primitives()]
    assert {m.seed for m in result.mismatches} <= set(expected)
    assert result.mismatches
    assert all("building the code fails: SyntaxError" in m.failure for m in result.mismatches)


def test_other_batch_sizes_are_tried(monkeypatch):
    wrong(monkeypatch, r"if x\.", "if x.shape[0] == 3 or x.")
    failures = [m.failure for m in random_check(40, 0).mismatches]
    assert any("run in binding" in failure for failure in failures)


def test_processes_find_the_same(monkeypatch):
    alone, together = random_check(40, 7), random_check(40, 7, jobs=2)
    assert alone.mix == together.mix
    assert alone.operators == together.operators == 40
    assert together.mismatches == []
    assert json.loads(json.dumps(together.to_json()))["mismatches"] == 0


@pytest.mark.slow
def test_small_operators_are_blocked_like_large_ones():
    # A cache of a few floats: panels in blocks, each thread its own, and producers in registers.
    emitter = CppEmitter(cache_floats=16)
    if emitter.available():
        pytest.skip(emitter.available())
    drawn = [random_case(seed).case for seed in range(5 * OPERATORS)]
    cases = [case for case in drawn if emitter.source(case) != CppEmitter().source(case)]
    assert len(cases) > OPERATORS / 10
    random = np.random.default_rng(0)
    for case, function in zip(cases, emitter.build(cases), strict=True):
        shapes = case.operator.shapes(case.binding)
        x = random.integers(-3, 4, shapes.input)
        weights = [random.integers(-3, 4, shape) for shape in shapes.weights]
        expected = case.operator.interpret(case.binding, x, weights)
        got = function(x.astype(np.float32), [w.astype(np.float32) for w in weights])
        assert np.array_equal(got, expected), f"{case.operator.text}\n{case.binding}"


def test_a_case_is_the_same_for_the_same_seed_and_legal():
    for seed in range(50):
        first, second = random_case(seed), random_case(seed)
        assert first.case == second.case
        assert is_legal(*first.case, max_terms=20_000)
        assert first.case.operator.term_count(first.case.binding) <= MAX_TERMS
        assert list(first.case.binding) == first.case.operator.variables


def test_traits_of_known_operators():
    from syno.codegen.emitters import Case
    from syno.operators import zoo

    found = traits(Case(zoo.load("conv2d"), zoo.binding("conv2d") | {"k": 4}))
    assert found >= {"window", "even window", "cutting mask", "one weight", "batch"}
    assert not found & {"nested windows", "rotation", "derived weight coordinate", "wide window"}
    found = traits(Case(zoo.load("conv2d"), zoo.binding("conv2d") | {"k": 1}))
    assert "cutting mask" not in found
    found = traits(Case(zoo.load("grouped"), zoo.binding("grouped")))
    assert found >= {"derived weight coordinate", "split", "merge"}
    rotated = Operator.from_text(
        "syno operator 1\nout [H]\nin [H]\nreduce k -> r0\ncontract r0:keep\nunfold o0 r0 -> c0\n"
        "shift c0 1 -> c1\nmatch c1\n"
    )
    found = traits(Case(rotated, {"H": 3, "k": 7}))
    assert found >= {"rotation after a window", "wide window", "extent 3", "extent 7"}


def test_shrinking_keeps_what_fails():
    case = random_case(3).case
    assert shrink(case, lambda smaller: False) is case
    smallest = shrink(case, lambda smaller: len(smaller.operator.output) >= 1)
    assert len(smallest.operator._core.steps) == 0
    assert set(smallest.binding.values()) <= {1}
