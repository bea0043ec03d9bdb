"""The comparison of an emitted module with the reference interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from syno._errors import UserError
from syno.operator import Operator
from syno.spec import Binding
from syno.verify.points import batch_variables, output_positions

if TYPE_CHECKING:
    import torch
    from torch import nn

EMITTER = "pytorch"
# Beyond so many terms (the interpreter takes some 50 million a second), outputs are sampled.
FULL_TERMS = 2_000_000
# Largest error in float32, relative to the sum of the absolute terms of the output.
TOLERANCE = 1e-5
# Integers up to this size: sums of products stay far below 2^53, so float64 is exact.
_LARGEST = 3


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


class _MismatchError(Exception):
    """A case in which the module differs from the interpreter."""


def verify(
    operator: Operator, binding: Binding | str, *, seed: int = 0, source: str | None = None
) -> Verification:
    """Compares the operator's PyTorch code with the interpreter under a binding.

    1. Small integers in float64, where both are exact: values must be equal; gradients too when
       the operator is small. For a large operator the outputs at the borders of every dimension
       and a sample of the others are compared.
    2. Normal values in float32: the error is at most 1e-5 of the sum of the absolute terms.

    A batch size of 1 stands for any: the check then runs with 2.

    source: the code to check instead of what the operator emits. A module that raises, or has
    other weights than the operator, fails its check. UserError for a binding the operator does not
    fit.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UserError(f"'seed' is a non-negative integer, got {seed!r}")
    values = operator.complete(binding)
    text = operator.source(values) if source is None else source
    from syno.kernel import source_hash

    run = _Run(operator, values, seed)
    failure = ""
    try:
        run.check(text)
    except _MismatchError as mismatch:
        failure = f"{mismatch}\n  in binding {values}, seed {seed}\n  of operator\n{operator.text}"
    return Verification(
        source_hash=source_hash(text),
        binding=values,
        emitter=EMITTER,
        seed=seed,
        passed=not failure,
        max_error=run.max_error,
        outputs=len(run.positions),
        failure=failure,
    )


class _Run:
    """One comparison; `check` raises _MismatchError at the first difference."""

    def __init__(self, operator: Operator, binding: dict[str, int], seed: int) -> None:
        binding = binding | {name: 2 for name in batch_variables(operator) if binding[name] == 1}
        self._operator = operator
        self._binding = binding
        self._random = np.random.default_rng(seed)
        self._shapes = operator.shapes(binding)
        self._terms = operator.term_count(binding)
        self.max_error = 0.0
        self.positions = output_positions(
            self._shapes.output, self._terms, FULL_TERMS, self._random
        )

    def check(self, source: str) -> None:
        import torch

        from syno.kernel import load_kernel

        with torch.random.fork_rng(devices=[]):
            kernel = _guarded("building the module", lambda: load_kernel(source)())
        self._check_weights(kernel)
        self._check_integers(kernel.double())
        self._check_floats(kernel.float())

    def _check_weights(self, kernel: nn.Module) -> None:
        found = [tuple(p.shape) for p in kernel.parameters()]
        expected = [tuple(shape) for shape in self._shapes.weights]
        if found != expected:
            raise _MismatchError(f"the module's weights are {found}, the operator's {expected}")

    def _check_integers(self, kernel: nn.Module) -> None:
        x, *weights = (self._integers(s) for s in (self._shapes.input, *self._shapes.weights))
        small = self._terms <= FULL_TERMS
        y, inputs = _apply(kernel, x, weights, gradients=small)
        self._same_shape(y)
        expected = self._operator.interpret_at(self._binding, x, weights, self.positions)
        self._equal("y", y.detach().numpy().reshape(-1)[self.positions], expected)
        if not small or not y.requires_grad:
            return
        import torch

        dy = self._integers(self._shapes.output)
        found = torch.autograd.grad(
            y, inputs, torch.from_numpy(dy).to(y.dtype), allow_unused=True, materialize_grads=True
        )
        dx, dweights = self._operator.gradients(self._binding, x, weights, dy)
        names = ["the gradient of x", *(f"the gradient of w{t}" for t in range(len(weights)))]
        for name, got, wanted in zip(names, found, [dx, *dweights], strict=True):
            self._equal(name, got.numpy().reshape(-1), wanted.reshape(-1))

    def _check_floats(self, kernel: nn.Module) -> None:
        shapes = (self._shapes.input, *self._shapes.weights)
        x, *weights = (self._random.standard_normal(s).astype(np.float32) for s in shapes)
        y, _ = _apply(kernel, x, weights, gradients=False)
        if y.dtype != _torch_dtype(x):
            raise _MismatchError(f"the module turns float32 into {y.dtype}")
        at = self.positions
        expected = self._operator.interpret_at(self._binding, x, weights, at)
        scale = self._operator.interpret_at(
            self._binding, np.abs(x), [np.abs(w) for w in weights], at
        )
        got = y.detach().numpy().reshape(-1)[at].astype(np.float64)
        error = np.abs(got - expected)
        # Finite, as JSON and databases want it; a result that is not counts as the worst error.
        relative = np.minimum(error, 1e300) / np.maximum(scale, 1e-8)
        relative[~np.isfinite(got)] = 1e300
        self.max_error = float(relative.max(initial=0.0))
        if self.max_error > TOLERANCE:
            worst = int(np.argmax(relative))
            raise _MismatchError(
                f"y{self._index(at[worst])} in float32 is off by {relative[worst]:.1e} of the sum "
                f"of its absolute terms, more than {TOLERANCE:.0e}\n"
                f"  expected: {expected[worst]}      got: {got[worst]}"
            )

    def _equal(self, name: str, got: NDArray[Any], expected: NDArray[Any]) -> None:
        if got.shape != expected.shape:
            raise _MismatchError(f"{name} has {got.size} elements instead of {expected.size}")
        wrong = np.flatnonzero(got != expected)
        if wrong.size:
            first = int(wrong[0])
            where = self._index(self.positions[first]) if name == "y" else f" at element {first}"
            raise _MismatchError(
                f"{name}{where} differs, and {wrong.size} of {got.size} elements do\n"
                f"  expected: {expected[first]}      got: {got[first]:g}"
            )

    def _same_shape(self, y: torch.Tensor) -> None:
        if list(y.shape) != self._shapes.output:
            raise _MismatchError(f"y has shape {list(y.shape)} instead of {self._shapes.output}")

    def _integers(self, shape: list[int]) -> NDArray[np.int64]:
        return self._random.integers(-_LARGEST, _LARGEST + 1, shape)

    def _index(self, position: int) -> list[int]:
        return [int(i) for i in np.unravel_index(position, self._shapes.output or (1,))]


def _apply(
    kernel: nn.Module, x: NDArray[Any], weights: list[NDArray[Any]], *, gradients: bool
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """y, and the tensors that gradients are taken of."""
    import torch

    parameters = list(kernel.parameters())
    first = parameters[0].dtype if parameters else None
    kind = first or (torch.float64 if x.dtype.kind == "i" else torch.float32)
    with torch.no_grad():
        for parameter, weight in zip(parameters, weights, strict=True):
            parameter.copy_(torch.from_numpy(weight))
    tensor = torch.from_numpy(np.array(x)).to(kind).requires_grad_(gradients)
    with torch.set_grad_enabled(gradients):
        y = _guarded("running the module", lambda: kernel(tensor))
    if not isinstance(y, torch.Tensor):
        raise _MismatchError(f"the module returns a {type(y).__name__}, not a tensor")
    return y, [tensor, *parameters]


def _guarded(doing: str, call: Any) -> Any:
    """A module that raises is a failed check, whatever it raises: it is generated code."""
    try:
        return call()
    except Exception as error:
        raise _MismatchError(f"{doing} fails: {type(error).__name__}: {error}") from error


def _torch_dtype(x: NDArray[Any]) -> torch.dtype:
    import torch

    return torch.from_numpy(x).dtype
