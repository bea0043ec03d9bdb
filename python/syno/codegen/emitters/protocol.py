"""What an emitter is to those that run, check and mutate its code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from syno.operators.operator import Operator

Array = NDArray[np.number]


class Case(NamedTuple):
    """An operator and the size of every variable of it."""

    operator: Operator
    binding: dict[str, int]


class WrongCodeError(Exception):
    """Code that is not what was asked for, such as one with other weights; says what is wrong."""


class Code(Protocol):
    """The code of one case, ready to run.

    Where the emitter has gradients, it also has the method `gradients(x, weights, dy)`: those of
    sum(dy * y) for x and for each weight, as (dx, [dw0, dw1, ...]).
    """

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        """y. All arrays have one type of `Emitter.dtypes`, y too; the arguments stay as they are.

        x has the input's shape and weights those of `Operator.weight_shapes`, in that order.
        """


@runtime_checkable
class Differentiable(Protocol):
    """The code of one case of an emitter that has gradients."""

    def gradients(
        self, x: Array, weights: Sequence[Array], dy: Array
    ) -> tuple[Array, Sequence[Array]]:
        """The gradients of sum(dy * y) for x and for each weight."""


class Emitter(Protocol):
    """One way from operators to running code. Emitters are derived from it for its defaults.

    name: as in `syno.codegen.emitters.get`.
    dtypes: the types its code computes in, the most exact one first: ("float64", "float32"), or
    ("float32",) for code that has no other. float32 is always among them.
    has_gradients: whether its functions have `gradients`.
    any_batch: whether code made for one batch size (of `Operator.batch`) takes any; any_size: and
    any size of the other dimensions that pass through.
    """

    name: str
    dtypes: tuple[str, ...] = ("float32",)
    has_gradients: bool = False
    any_batch: bool = True
    any_size: bool = False

    def available(self) -> str | None:
        """None, or why this emitter cannot run here and what to do, in words for the user."""

    def source(self, case: Case) -> str:
        """The source text of one case, the same on every run.

        UserError where the operator does not fit the binding.
        """

    def build(self, cases: Sequence[Case], sources: Sequence[str] | None = None) -> Sequence[Code]:
        """A function for each case, all built in one go, as compilers like it.

        sources: what to build instead of `source(case)`, one for each case; checks of the checks
        give wrong ones. Whatever is raised means that code of one of these cases cannot be built;
        whoever wants to know of which builds them one by one.
        """
