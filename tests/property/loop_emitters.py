"""What tests of the emitters for C++, TVM and Triton share: cases, checks, reasons to skip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from syno import Operator
from syno.codegen import emitters
from syno.codegen.emitters import Case
from syno.codegen.verify.check import CodeComparison, MismatchError, build, described

from . import emitted

Array = NDArray[np.float32]


def needs(name: str) -> pytest.MarkDecorator:
    """Skips without the emitter's package: `make check-all` installs it, `make test` does not."""
    reason = emitters.get(name).available()
    return pytest.mark.skipif(reason is not None, reason=str(reason))


def zoo() -> dict[str, Case]:
    return {name: loop_case(case) for name, case in emitted.zoo().items()}


def loop_case(case: emitted.Case) -> Case:
    return Case(Operator.from_text(case.text), dict(case.binding))


def with_sizes(case: Case, **sizes: int) -> Case:
    """The case with these sizes, as far as the operator has such variables."""
    known = {name: size for name, size in sizes.items() if name in case.operator.variables}
    return Case(case.operator, case.binding | known)


def random_case(seed: int) -> Case:
    return loop_case(emitted.random_case(seed))


def batches(case: Case) -> Iterator[tuple[dict[str, int], Array, list[Array]]]:
    """The binding with several batches, and small integers as x and weights of each."""
    random = np.random.default_rng(0)
    for batch in (1, 3, 8):
        binding = case.binding | {"N": batch}
        shapes = case.operator.shapes(binding)
        x, *weights = (
            random.integers(-3, 4, shape).astype(np.float32)
            for shape in (shapes.input, *shapes.weights)
        )
        yield binding, x, weights


def check(name: str, cases: Sequence[Case], sources: Sequence[str] | None = None) -> None:
    """Fails with all that is needed to repeat the first wrong case."""
    emitter = emitters.get(name)
    functions = build(emitter, cases, sources)
    for number, (case, function) in enumerate(zip(cases, functions, strict=True)):
        try:
            CodeComparison(emitter, case, number).check(function)
        except MismatchError as mismatch:
            source = emitter.source(case) if sources is None else sources[number]
            pytest.fail(f"{described(case, number, mismatch)}\n{source}")
