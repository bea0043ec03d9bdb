"""Every schedule that a tuning may choose computes the operator, whatever the operator."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from syno import UserError, _core
from syno.codegen import emitters
from syno.codegen.emitters.protocol import Array, Case
from syno.codegen.native import QUICK_FLAGS, Function, Variant, compile_functions
from syno.codegen.verify.check import CodeComparison
from syno.codegen.verify.random_cases import random_case
from syno.measure import kernels
from syno.measure.schedule_costs import Machine, choices_of, nests_of, tuning_text
from syno.operators import zoo

SEED = 20
MACHINE = Machine(16, 32, 2)
_SIZES = {"g": 4, "s": 2, "k": 3}


def tunings(case: Case, rng: random.Random, count: int) -> list[str]:
    """Random ones, and for each nest the two forms."""
    plan = case.operator.plans(case.binding, 1)[0]
    nests = [nest for nest in json.loads(_core.cpp_choices(plan)) if len(nest["forms"]) > 1]
    found = []
    for _ in range(count):
        chosen = {nest["nest"]: rng.choice(choices_of(nest, MACHINE)) for nest in nests}
        found.append(tuning_text(chosen))
    for form in ("product", "rows"):
        found.append(tuning_text({nest["nest"]: {"form": form} for nest in nests}))
    return found if nests else []


def check(cases: list[tuple[Case, str]]) -> None:
    """Compiles all tuned operators together, and compares each with the interpreter."""
    sources, variants = [], []
    for number, (case, text) in enumerate(cases):
        name = f"op{number}"
        plan = case.operator.plans(case.binding, 1)[0]
        source, manifest = _core.emit_cpp(plan, name=name, with_runtime=False, tuning=text)
        sources.append((name, source, json.loads(manifest)))
        variants.append(Variant(tuning=text))
    functions = compile_functions(sources, variants=variants, flags=QUICK_FLAGS)
    for (case, _), function in zip(cases, functions, strict=True):
        comparison = CodeComparison(emitters.get("cpp"), case, 0)
        comparison.check(lambda x, w, function=function: on_threads(function, x, w))  # type: ignore[misc]


def on_threads(function: Function, x: Array, weights: list[Array]) -> Array:
    function.pack(weights)
    results = [function(x, threads) for threads in (1, 2, 3)]
    assert all(np.array_equal(results[0], each) for each in results[1:]), function.variant
    return results[0]


@pytest.mark.parametrize("channels", [8, pytest.param(24, marks=pytest.mark.slow)])
def test_tuned_operators_of_the_zoo_are_right(channels: int) -> None:
    rng = random.Random(SEED + channels)
    cases: list[tuple[Case, str]] = []
    for name in rng.sample(zoo.names(), 8):
        operator = zoo.load(name)
        given = {k: v for k, v in _SIZES.items() if k in operator.variables}
        size = rng.choice([6, 7, 10])
        try:
            binding = kernels.sizes(operator, channels, size, 1, given)
            operator.shapes(binding)
        except UserError:
            continue  # it does not fit that layer
        case = Case(operator.canonical, binding)
        cases += [(case, text) for text in tunings(case, rng, 3)]
    assert len(cases) > 10
    check(cases)


@pytest.mark.parametrize("count", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_tuned_random_operators_are_right(count: int) -> None:
    rng = random.Random(SEED)
    cases: list[tuple[Case, str]] = []
    for seed in range(count):
        operator, binding = random_case(seed).case
        case = Case(operator.canonical, binding)
        cases += [(case, text) for text in tunings(case, rng, 1)]
    assert len(cases) > count / 3
    check(cases)


def test_a_tuning_that_does_not_fit_is_refused() -> None:
    operator = zoo.load("conv2d")
    plan = operator.plans(kernels.sizes(operator, 8, 6, 1), 1)[0]
    with pytest.raises(UserError, match="the tuning has the nest 7"):
        _core.emit_cpp(plan, tuning="7: rows=2")
    with pytest.raises(UserError, match="is malformed"):
        _core.emit_cpp(plan, tuning="0: rows=two")
    with pytest.raises(UserError, match="a block of 5 rows"):
        _core.emit_cpp(plan, tuning="0: form=product block=5")


def test_the_choices_say_what_the_rules_do() -> None:
    operator = zoo.load("operator-1")
    plan = operator.plans(kernels.sizes(operator, 64, 56, 1), 1)[0]
    (nest,) = nests_of(plan)
    assert nest["rows"] == 64 and nest["columns"] == 56 * 56 and nest["taps"] == 3
    assert nest["form"] == "product" and nest["can_pair"]
    # Without choices, and with those of the rules, the code is the same.
    plain, _ = _core.emit_cpp(plan)
    same, _ = _core.emit_cpp(plan, tuning=f"{nest['nest']}: block={nest['block']} form=product")
    assert plain == same
    turned, _ = _core.emit_cpp(plan, tuning=f"{nest['nest']}: rows=6 width=4")
    assert "using Chosen = Tiles<0, 6, 4, 0>" in turned
