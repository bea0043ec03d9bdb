"""The registry of emitters, and what each of them promises."""

import numpy as np
import pytest

from syno import Operator, UserError, _core
from syno.codegen import emitters
from syno.codegen.emitters import Case, Emitter, WrongCodeError
from syno.codegen.verify import verify
from syno.codegen.verify.check import CodeComparison
from syno.operators import zoo


def usable(name: str) -> Emitter:
    emitter = emitters.get(name)
    reason = emitter.available()
    if reason is not None:
        pytest.skip(reason)
    return emitter


def cases(count: int) -> list[Case]:
    drawn = (_core.random_operator(seed, max_terms=2000) for seed in range(count))
    return [Case(Operator(core), binding) for core, binding in drawn]


@pytest.mark.parametrize("name", emitters.names())
class TestEveryEmitter:
    def test_has_its_name_and_float32(self, name):
        emitter = emitters.get(name)
        assert emitter.name == name
        assert "float32" in emitter.dtypes
        assert set(emitter.dtypes) <= {"float64", "float32"}
        assert emitter.available() is None or emitter.available().strip()

    def test_builds_several_cases_in_one_go(self, name):
        emitter = usable(name)
        some = cases(12)
        functions = emitter.build(some)
        assert len(functions) == len(some)
        for case, function in zip(some, functions, strict=True):
            CodeComparison(emitter, case, 0).check(function)

    def test_leaves_its_arguments_and_answers_alike_in_its_own_type(self, name):
        emitter = usable(name)
        case = Case(zoo.load("operator-1"), zoo.binding("operator-1"))
        (function,) = emitter.build([case])
        random = np.random.default_rng(0)
        shapes = case.operator.shapes(case.binding)
        for dtype in emitter.dtypes:
            x, *weights = (
                random.standard_normal(shape).astype(dtype)
                for shape in (shapes.input, *shapes.weights)
            )
            given = [x.copy(), *(w.copy() for w in weights)]
            first, second = function(x, weights).copy(), function(x, weights)
            assert first.dtype == second.dtype == dtype
            assert np.array_equal(first, second)
            for array, before in zip([x, *weights], given, strict=True):
                assert np.array_equal(array, before)

    def test_writes_the_same_source_again(self, name):
        emitter = usable(name)
        for case in cases(5):
            assert emitter.source(case) == emitter.source(case)

    @pytest.mark.parametrize(
        "operators",
        [zoo.names()[::6], pytest.param(zoo.names(), marks=pytest.mark.slow)],
        ids=["some", "all"],
    )
    def test_the_zoo_passes_its_verification(self, name, operators):
        usable(name)
        for operator in operators:
            result = verify(zoo.load(operator), zoo.binding(operator), emitter=name)
            assert result.passed, result.failure
            assert result.emitter == name

    def test_an_operator_that_does_not_fit_its_binding_is_a_user_error(self, name):
        emitter = usable(name)
        with pytest.raises(UserError, match="not a positive integer"):
            emitter.source(Case(zoo.load("grouped"), zoo.binding("grouped") | {"g": 3}))


def test_mistakes_are_user_errors():
    with pytest.raises(UserError, match="unknown emitter 'tensorflow'\n  expected: one of pytorch"):
        emitters.get("tensorflow")
    with pytest.raises(UserError, match="unknown emitter"):
        verify(zoo.load("linear"), zoo.binding("linear"), emitter="none")


def test_an_emitter_that_cannot_run_says_why(monkeypatch):
    monkeypatch.setattr(type(emitters.get("pytorch")), "available", lambda self: "no compiler")
    with pytest.raises(UserError, match="the emitter 'pytorch' cannot run here: no compiler"):
        verify(zoo.load("linear"), zoo.binding("linear"))


def test_a_source_with_other_weights_is_not_built():
    case, other = (Case(zoo.load(name), zoo.binding(name)) for name in ("conv2d", "operator-1"))
    emitter = emitters.get("pytorch")
    with pytest.raises(WrongCodeError, match="the module's weights are"):
        emitter.build([case], [emitter.source(other)])


class Rounding:
    """An emitter whose functions compute in float32 alone."""

    name = "rounding"
    dtypes = ("float32",)
    has_gradients = False
    any_batch = False
    any_size = False


def test_integers_stay_where_float32_is_exact():
    conv = zoo.load("conv2d")
    # Terms of an output: C_in * k * k. 3 * 3 * terms < 2^24, or smaller integers.
    for channels, limit in ((8, 3), (200_000, 3), (300_000, 2), (600_000, 1), (2_000_000, None)):
        binding = {"N": 1, "C_in": channels, "C_out": 1, "H": 1, "W": 1, "k": 3}
        assert CodeComparison(Rounding(), Case(conv, binding), 0).integer_limit() == limit
