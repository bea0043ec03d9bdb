"""The comparison of an operator's code with the reference interpreter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from syno import _core
from syno._util import checks
from syno._util.arguments import checked, instance, text
from syno._util.errors import UserError
from syno.codegen import emitters
from syno.codegen.emitters import Case, Code, Emitter, WrongCodeError
from syno.codegen.emitters.protocol import Array, Differentiable
from syno.codegen.verify.points import batch_variables, output_positions
from syno.operators.operator import Operator
from syno.operators.specification import Binding

# Beyond so many terms (the interpreter takes some 50 million a second), outputs are sampled.
FULL_TERMS = 2_000_000
# Largest error in float32, relative to the sum of the absolute terms of the output.
TOLERANCE = 1e-5
# Integers are drawn up to the first of these with which every sum is exact in the emitter's type.
_INTEGERS = (3, 2, 1)
# Sums of integers below are exact.
_EXACT = {"float64": 2**53, "float32": 2**24}

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Verification:
    """One comparison of emitted source with the reference interpreter.

    source_hash: SHA-256 of the source, 64 hexadecimal digits; it names what was checked.
    binding: the size of every variable; max_error: the largest error in float32, relative to the
    sum of the absolute terms; outputs: how many outputs were compared (all of them, or a sample of
    a large operator); failure: the failing case in words, empty when it passed.
    """

    source_hash: str
    binding: dict[str, int]
    emitter: str
    seed: int
    passed: bool
    max_error: float
    outputs: int
    failure: str = ""


class MismatchError(Exception):
    """A case in which the code differs from the interpreter."""


@checked(operator=instance(Operator), emitter=text)
def verify(
    operator: Operator,
    binding: Binding | str,
    *,
    emitter: str = "pytorch",
    seed: int = 0,
    source: str | None = None,
) -> Verification:
    """Verify the generated code of an operator against the reference interpreter.

    1. With small integers, for which all sums are exact, values must be equal, and also gradients
       if the emitter has them and the operator is small. For a large operator, the outputs at the
       borders of all dimensions and a sample of the others are compared.
    2. With normal values in float32, errors are at most 1e-5 of the sum of the absolute terms.

    If the code accepts any batch size, a batch size of 1 is replaced with 2. Code that cannot be
    built or run, or has other weights than the operator, fails the verification.

    Args:
        operator: the operator.
        binding: values of its variables.
        emitter: the emitter of the code; see `syno.codegen.emitters.names`.
        source: code to verify instead of that of the emitter.
        seed: seed of the random data and weights.

    Raises:
        UserError: the operator does not fit the binding, or the emitter is unknown or cannot run
            here.
    """
    seed = checks.whole("'seed'", seed, least=0)
    chosen = usable(emitter)
    case = Case(operator.canonical, operator.complete(binding))
    text = chosen.source(case) if source is None else source
    comparison = CodeComparison(chosen, _with_batch(chosen, case), seed)
    failure = ""
    try:
        comparison.check(build(chosen, [case], [text])[0])
    except MismatchError as mismatch:
        failure = described(case, seed, mismatch)
    # Late: it needs torch.
    from syno.operators.emitted import source_hash

    return Verification(
        source_hash=source_hash(text),
        binding=case.binding,
        emitter=chosen.name,
        seed=seed,
        passed=not failure,
        max_error=comparison.max_error,
        outputs=len(comparison.positions),
        failure=failure,
    )


def usable(name: str) -> Emitter:
    """The emitter of that name. UserError when it is unknown or cannot run here."""
    emitter = emitters.get(name)
    reason = emitter.available()
    if reason is not None:
        raise UserError(f"the emitter '{name}' cannot run here: {reason}")
    return emitter


def build(
    emitter: Emitter, cases: Sequence[Case], sources: Sequence[str] | None = None
) -> Sequence[Code]:
    """The functions of the cases; MismatchError where code cannot be built."""
    return _guarded("building the code", lambda: emitter.build(cases, sources))


def _with_batch(emitter: Emitter, case: Case) -> Case:
    """The case with 2 in place of a batch of 1, where code takes any size."""
    operator, binding = case
    ones = (name for name in free_sizes(emitter, operator) if binding[name] == 1)
    return Case(operator, binding | dict.fromkeys(ones, 2))


def free_sizes(emitter: Emitter, operator: Operator) -> list[str]:
    """The variables that code may be run with any size of."""
    if emitter.any_size:
        return batch_variables(operator)
    return [operator.batch] if emitter.any_batch and operator.batch is not None else []


def described(case: Case, seed: int, mismatch: Exception | str) -> str:
    """A failing case with all that is needed to repeat it."""
    return (
        f"{mismatch}\n  in binding {case.binding}, seed {seed}\n  of operator\n{case.operator.text}"
    )


class CodeComparison:
    """One comparison of code with the interpreter.

    max_error: the largest error in float32 so far; positions: the outputs that are compared.
    """

    def __init__(self, emitter: Emitter, case: Case, seed: int) -> None:
        operator, binding = case
        self._emitter = emitter
        self._operator = operator
        self._binding = binding
        self._random = np.random.default_rng(seed)
        self._shapes = operator.shapes(binding)
        self._terms = operator.term_count(binding)
        self._gradients = emitter.has_gradients and self._terms <= FULL_TERMS
        self.max_error = 0.0
        self.positions = output_positions(
            self._shapes.output, self._terms, FULL_TERMS, self._random
        )

    def check(self, function: Code) -> None:
        """Raises MismatchError at the first difference."""
        limit = self.integer_limit()
        if limit is not None:
            self._check_integers(function, limit)
        self._check_floats(function)

    def integer_limit(self) -> int | None:
        """The largest integers to draw so that every sum of terms is exact; None: no such sum is.

        Whatever order an emitter multiplies and sums in, what it holds is a sum of some of an
        output's terms, with some of their factors.
        """
        sizes = [*self._operator.reductions]
        terms = math.prod(_core.evaluate_size(size, self._binding) for size in sizes)
        factors = 1 + len(self._shapes.weights)
        if self._gradients:  # every term of y gives one of each gradient, with dy as a factor
            terms, factors = self._terms, factors + 1
        exact = _EXACT[self._emitter.dtypes[0]]
        return next((limit for limit in _INTEGERS if terms * limit**factors < exact), None)

    def _check_integers(self, function: Code, limit: int) -> None:
        kind = self._emitter.dtypes[0]
        x, dy, *weights = (
            self._random.integers(-limit, limit + 1, shape) for shape in self._all_shapes()
        )
        given = x.astype(kind), [w.astype(kind) for w in weights]
        y = self._run(function, *given)
        expected = self._operator.interpret_at(self._binding, x, weights, self.positions)
        self._equal("y", y.reshape(-1)[self.positions], expected)
        if self._gradients:
            found = self._run_gradients(function, *given, dy.astype(kind))
            dx, dweights = self._operator.gradients(self._binding, x, weights, dy)
            for (name, got), wanted in zip(found.items(), [dx, *dweights], strict=True):
                self._same_shape(name, got, wanted.shape)
                self._equal(name, got.reshape(-1), wanted.reshape(-1))

    def _check_floats(self, function: Code) -> None:
        x, dy, *weights = (
            self._random.standard_normal(shape, np.float32) for shape in self._all_shapes()
        )
        at, operator, binding = self.positions, self._operator, self._binding
        y = self._run(function, x, weights)
        if y.dtype != np.float32:
            raise MismatchError(f"the code turns float32 into {y.dtype}")
        positive = [np.abs(w) for w in weights]
        self._near(
            "y",
            y.reshape(-1)[at],
            operator.interpret_at(binding, x, weights, at),
            operator.interpret_at(binding, np.abs(x), positive, at),
        )
        if self._gradients:
            found = self._run_gradients(function, x, weights, dy)
            dx, dweights = operator.gradients(binding, x, weights, dy)
            of_x, of_weights = operator.gradients(binding, np.abs(x), positive, np.abs(dy))
            bounds = [of_x, *of_weights]
            for (name, got), wanted, bound in zip(
                found.items(), [dx, *dweights], bounds, strict=True
            ):
                self._near(name, got.reshape(-1), wanted.reshape(-1), bound.reshape(-1))

    def _all_shapes(self) -> list[list[int]]:
        return [self._shapes.input, self._shapes.output, *self._shapes.weights]

    def _run(self, function: Code, x: Array, weights: Sequence[Array]) -> Array:
        y = _guarded("running the code", lambda: function(x, weights))
        self._same_shape("y", y, self._shapes.output)
        return y

    def _run_gradients(
        self, function: Code, x: Array, weights: Sequence[Array], dy: Array
    ) -> dict[str, Array]:
        assert isinstance(function, Differentiable)
        dx, dweights = _guarded("running the gradients", lambda: function.gradients(x, weights, dy))
        named = {f"the gradient of w{t}": dw for t, dw in enumerate(dweights)}
        return {"the gradient of x": dx} | named

    def _near(self, name: str, got: Array, expected: Array, scale: Array) -> None:
        error = np.abs(got.astype(np.float64) - expected)
        # Finite, as JSON and databases want it; a result that is not counts as the worst error.
        relative = np.minimum(error, 1e300) / np.maximum(scale, 1e-8)
        relative[~np.isfinite(got)] = 1e300
        self.max_error = max(self.max_error, float(relative.max(initial=0.0)))
        if self.max_error > TOLERANCE:
            worst = int(np.argmax(relative))
            raise MismatchError(
                f"{name}{self._where(name, worst)} in float32 is off by {relative[worst]:.1e} of "
                f"the sum of its absolute terms, more than {TOLERANCE:.0e}\n"
                f"  expected: {expected[worst]}      got: {got[worst]}"
            )

    def _equal(self, name: str, got: Array, expected: Array) -> None:
        wrong = np.flatnonzero(got != expected)
        if wrong.size:
            first = int(wrong[0])
            raise MismatchError(
                f"{name}{self._where(name, first)} differs, and {wrong.size} of {got.size} "
                f"elements do\n  expected: {expected[first]}      got: {got[first]:g}"
            )

    def _same_shape(self, name: str, got: Array, wanted: Sequence[int]) -> None:
        if list(got.shape) != list(wanted):
            raise MismatchError(f"{name} has shape {list(got.shape)} instead of {list(wanted)}")

    def _where(self, name: str, element: int) -> str:
        if name != "y":
            return f" at element {element}"
        index = np.unravel_index(self.positions[element], self._shapes.output or (1,))
        return str([int(i) for i in index])


def _guarded(doing: str, call: Callable[[], _Result]) -> _Result:
    """Code that raises is a failed check, whatever it raises: it is generated."""
    try:
        return call()
    except WrongCodeError as error:
        raise MismatchError(str(error)) from error
    except Exception as error:
        raise MismatchError(f"{doing} fails: {type(error).__name__}: {error}") from error
