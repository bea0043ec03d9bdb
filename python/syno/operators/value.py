"""What an operator is, computes and costs: all of it but its modules, which need torch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syno import _core
from syno._util import checks
from syno._util.arguments import checked, flag, instance, items, optional
from syno._util.errors import UserError
from syno.operators.json_form import OperatorForm
from syno.operators.specification import Binding, Specification, checked_binding
from syno.operators.weights import WeightNames, number_array

Array = NDArray[Any]
Weights = Sequence[ArrayLike] | Mapping[str, ArrayLike]
# The maximum number of plans of an operator under one binding.
MOST_PLANS = 1000


class OperatorValue:
    """The value that an `Operator` is; a `Layer`, which an operator makes, knows only this of it.

    Equality and hash depend only on the canonical form.
    """

    __slots__ = ("_core", "_key", "_names", "_specification")

    def __init__(
        self,
        core: _core.Operator,
        specification: Specification | None = None,
        *,
        key: str | None = None,
        names: WeightNames | None = None,
    ) -> None:
        self._core, self._specification = core, specification
        self._key = key
        self._names = names

    # In and out.

    @classmethod
    def from_text(cls, text: str, specification: Specification | None = None) -> Self:
        """Read the versioned text of an operator.

        Raises:
            UserError: the text is malformed; the message names the line.
        """
        if not isinstance(text, str):
            raise UserError(f"an operator's text is a string, got {type(text).__name__}")
        return cls(_core.Operator.parse(checks.text("an operator's text", text)), specification)

    @classmethod
    def from_json(
        cls, data: Mapping[str, object] | str | bytes, specification: Specification | None = None
    ) -> Self:
        """Read the JSON form (docs/operators.md): a document, or its content as data.

        Coordinates may have any names.

        Raises:
            UserError: an entry is malformed; the message names it.
        """
        return cls(_core.Operator.from_json(data), specification)

    @classmethod
    def parse(
        cls,
        text: str,
        specification: Specification | None = None,
        *,
        input: str | None = None,
        output: str | None = None,
        sizes: Binding | str | None = None,
    ) -> Self:
        """Read index notation, such as y[o] = sum(i:C_in) x[i] * w0[o,i] (docs/operators.md).

        The operator keeps the names of its weights: pass them by name, indexed as in the text.

        Args:
            text: the index notation.
            specification: the specification of the operator.
            input, output: shapes, such as "[N, C_in: unordered, H, W]". Default: those of the
                specification. Without an output shape, extents come from the sizes of the indices
                of y (y[o:C_out]) or from the input; without an input shape, from the accesses to x.
            sizes: variables for numbers in the text; with "s=2", 2*h is s*h, and with "k=3", h+a-1
                is h+a-k/2 for a window a of k. Default: those of the specification.

        Raises:
            UserError: the notation is malformed, or the eight primitives cannot express it; the
                message gives line, column and reason.
        """
        operator, weights = cls.parse_with_weights(
            text, specification, input=input, output=output, sizes=sizes
        )
        return cls(operator._core, specification, names=WeightNames.of(text, weights))

    @classmethod
    def parse_with_weights(
        cls,
        text: str,
        specification: Specification | None = None,
        *,
        input: str | None = None,
        output: str | None = None,
        sizes: Binding | str | None = None,
    ) -> tuple[Self, list[tuple[str, tuple[int, ...]]]]:
        """Read index notation like `parse`, and return the names of the weights separately.

        Returns:
            The operator, whose weights are a list in canonical order, and (name, order) for each
            weight: an array `w` that is indexed as in the text is passed to the operator as
            `w.transpose(order)`.
        """
        if not isinstance(text, str):
            raise UserError(f"index notation is a string, got {type(text).__name__}")
        if text.lstrip().startswith("syno operator"):
            raise UserError(
                "this is the text of an operator, not index notation\n"
                "  expected: y[...] = sum(...) x[...] * w0[...]\n"
                "  what to do: read it with Operator.from_text"
            )
        if specification is not None:
            input = specification.input if input is None else input
            output = specification.output if output is None else output
        if sizes is None:
            sizes = {} if specification is None else _numbers(specification)
        core, weights = _core.parse_formula(
            checks.text("index notation", text),
            checks.text("'input'", input or ""),
            checks.text("'output'", output or ""),
            checked_binding(sizes),
        )
        return cls(core, specification), [(name, tuple(order)) for name, order in weights]

    def to_json(self) -> OperatorForm:
        """Return the canonical JSON form as data."""
        form: OperatorForm = json.loads(self._core.json)
        return form

    def with_specification(self, specification: Specification | None) -> Self:
        """Return the same operator with another specification."""
        return type(self)(self._core, specification, names=self._names)

    @property
    def canonical(self) -> Self:
        """The same operator with the names w0, w1, ... and the canonical order of its weights."""
        return self if self._names is None else type(self)(self._core, self._specification)

    @property
    def weight_names(self) -> WeightNames:
        """What its index notation calls the weights; w0, w1, ... without one."""
        if self._names is not None:
            return self._names
        return WeightNames.canonical(self._core.weights)

    @property
    def text(self) -> str:
        """The canonical, versioned text; equal operators have equal text."""
        return self._core.text

    # Identity.

    @property
    def specification(self) -> Specification | None:
        """The specification under which the operator was found."""
        return self._specification

    @property
    def structure(self) -> str:
        """Hash of the canonical form, 32 hexadecimal digits."""
        return self._core.structure

    @property
    def key(self) -> str:
        """The semantic key, 32 hexadecimal digits.

        Operators with equal keys are the same operator under every binding of the specification.
        Without a specification with bindings, the key is `structure`, which recognizes fewer
        repeats.
        """
        if self._key is None:
            if self._specification is not None and self._specification.full_bindings:
                self._key = _core.semantic_key(self._core, self._specification._core)
            else:
                self._key = self.structure
        return self._key

    @property
    def orbit(self) -> str:
        """The key of the orbit, which is equal for operators that symmetries map onto each other.

        The symmetries are those of the specification. It is the least key of the images of the
        operator, and `key` where the specification names no symmetries.
        """
        specification = self._specification
        if specification is None or not specification.symmetries:
            return self.key
        return _core.orbit_keys([self._core], specification._core)[0]

    # What it is.

    @property
    def input(self) -> list[str]:
        """Sizes of the input dimensions."""
        return [size for size, _, _ in self._core.input]

    @property
    def output(self) -> list[str]:
        """Sizes of the output dimensions."""
        return [size for size, _, _ in self._core.output]

    @property
    def reductions(self) -> list[str]:
        """Sizes of the summed indices."""
        return [step.size for step in self._core.steps if step.op == "reduce"]

    @property
    def variables(self) -> list[str]:
        """The variables of the sizes."""
        return self._core.variables

    @property
    def batch(self) -> str | None:
        """The variable of the batch dimension, or None.

        The batch is the first dimension of input and output if no primitive touches it and no other
        size contains its variable.
        """
        return self._core.batch

    def primitives(self) -> dict[str, int]:
        """Count the steps by primitive, such as {"reduce": 3, "stride": 1}."""
        return self._core.primitives

    @checked(stages=flag)
    def formula(self, *, stages: bool = False) -> str:
        """Return the operator in index notation, such as y[o] = sum(i:C_in) x[i] * w0[o,i].

        `/` is floor division; an access outside of x or a weight gives 0. `parse` reads the result.

        Args:
            stages: write one line for each weight, starting with x, instead of a single formula.
        """
        return _core.formula(self._core, stages)

    def dot(self) -> str:
        """Return a drawing in the language of Graphviz, with the input at the top."""
        return self._core.dot()

    def complete(self, binding: Binding | str, x: ArrayLike | None = None) -> dict[str, int]:
        """Return the values of all variables of the operator.

        Missing values are taken from the shape of the input x, if a variable is a whole dimension
        (such as the batch size), then from the specification: values of variables, and 1 for a
        variable that is passed through. Without a specification, the batch size is 1 (see `batch`).

        Raises:
            UserError: a variable has no value; the message lists such variables.
        """
        values = checked_binding(binding)
        known = set(self._core.variables)
        if x is not None and np.ndim(x) == len(self.input):
            for name, extent in zip(self.input, np.shape(x), strict=True):
                if name in known:
                    values.setdefault(name, int(extent))
        if self._specification is not None:
            values = self._specification.defaults | values
        missing = sorted(known - set(values))
        if missing and self.batch in missing:
            missing.remove(self.batch)
            values[self.batch] = 1
        if missing:
            raise UserError(
                f"the binding gives no value to {', '.join(missing)}\n"
                f"  in binding {dict(binding) if isinstance(binding, Mapping) else binding}\n"
                f"  expected: a value for each of {', '.join(self.variables)}"
            )
        return values

    def shapes(self, binding: Binding | str) -> _core.OperatorShapes:
        """Return the extents of `input`, `output` and `weights` under a binding.

        Raises:
            UserError: a size is not a positive integer.
        """
        return _core.operator_shapes(self._core, self.complete(binding))

    def weight_shapes(self, binding: Binding | str) -> list[tuple[int, ...]]:
        """Return the shapes of the weights in the canonical order of `text` and `to_json`."""
        return [tuple(shape) for shape in self.shapes(binding).weights]

    def term_count(self, binding: Binding | str) -> int:
        """Return the number of terms: output elements times the product of the reductions.

        `interpret` computes all terms, about 50 million per second.
        """
        values = self.complete(binding)
        sizes = (_core.evaluate_size(size, values) for size in [*self.output, *self.reductions])
        return math.prod(sizes)

    # What it computes.

    def interpret(self, binding: Binding | str, x: ArrayLike, weights: Weights) -> Array:
        """Compute the output by the definition, term by term.

        This reference implementation is slow; generated code is verified against it. Integers are
        computed exactly in int64, and all other types in float64.

        Args:
            binding: values of the variables; a missing batch size is taken from x.
            x: the input.
            weights: arrays by name, indexed as in the index notation of the operator; or a list of
                arrays with the shapes of `weight_shapes`, in this order.

        Raises:
            UserError: a shape is wrong, a list could be misread because the index notation has the
                weights in another order, or an integer overflows.
        """
        x, *weights = _arrays({"x": x} | self._arranged(weights))
        values = self.complete(binding, x)
        return _core.interpret(self._core, values, x, weights)

    @checked(positions=items)
    def interpret_at(
        self, binding: Binding | str, x: ArrayLike, weights: Weights, positions: Sequence[int]
    ) -> Array:
        """Compute the output only at some row-major positions; return a vector."""
        x, *weights = _arrays({"x": x} | self._arranged(weights))
        values = self.complete(binding, x)
        at = [checks.whole("a position of the output", p, least=0) for p in positions]
        return _core.interpret_at(self._core, values, x, weights, at)

    @overload
    def gradients(
        self, binding: Binding | str, x: ArrayLike, weights: Sequence[ArrayLike], dy: ArrayLike
    ) -> tuple[Array, list[Array]]: ...

    @overload
    def gradients(
        self, binding: Binding | str, x: ArrayLike, weights: Mapping[str, ArrayLike], dy: ArrayLike
    ) -> tuple[Array, dict[str, Array]]: ...

    def gradients(
        self, binding: Binding | str, x: ArrayLike, weights: Weights, dy: ArrayLike
    ) -> tuple[Array, list[Array] | dict[str, Array]]:
        """Compute the gradients of sum(dy * y) for x and each weight by the definition.

        The gradients of weights that are given by name are returned by name.
        """
        x, dy, *arrays = _arrays({"x": x, "dy": dy} | self._arranged(weights))
        dx, found = _core.gradients(self._core, self.complete(binding, x), x, arrays, dy)
        return dx, self.weight_names.named(found) if isinstance(weights, Mapping) else found

    def _arranged(self, weights: Weights) -> dict[str, ArrayLike]:
        """The weights in canonical order, each with the words by which messages name it."""
        return {f"weight {t}": w for t, w in enumerate(self.weight_names.arranged(weights))}

    def mean_square(self, binding: Binding | str, seed: int = 0) -> float:
        """Return the mean of y^2 for independent data and weights of mean 0 and variance 1.

        It is computed from the terms of the definition: masked terms do not count, and n terms that
        read the same elements count n^2. For weights of variances s0, s1, ..., multiply the result
        by all of them. If an output has many terms, some outputs are sampled with `seed`.
        """
        seed = checks.whole("'seed'", seed, least=0)
        return _core.mean_square(self._core, self.complete(binding), seed)

    def reads_future(
        self, binding: Binding | str, output_dim: int = 1, input_dim: int = 1
    ) -> str | None:
        """Describe where an output reads an input at a later position; None if none does.

        Positions are indices along two dimensions that form one sequence; dimensions are counted
        from 0, including the batch. The result is derived from the access map and holds for all
        data and weights. If the map has too many points, the returned text says so.

        Raises:
            UserError: a dimension does not exist.
        """
        output, input_ = self.output, self.input
        for name, dim, dims in (("output", output_dim, output), ("input", input_dim, input_)):
            checks.whole(f"'{name}_dim'", dim, 0, len(dims) - 1)
        values = self.complete(binding)
        return _core.reads_future(self._core, values, output_dim, input_dim) or None

    # What it costs, and its code.

    def macs(self, binding: Binding | str | None = None) -> int:
        """Return the MACs (multiply-accumulate operations) of the cheapest plan.

        Masks are ignored. Without a binding, the result is the sum over all layers of the
        specification that the operator fits, by multiplicity. FLOPs are twice as many.
        """
        if binding is None:
            return _core.total_macs(self._core, self._layers("macs()")._core)
        return _core.macs(self._core, self.complete(binding))

    def params(self, binding: Binding | str | None = None) -> int:
        """Return the number of elements of all weights, with or without a binding as in `macs`."""
        if binding is None:
            return _core.total_params(self._core, self._layers("params()")._core)
        return _core.params(self._core, self.complete(binding))

    def plan(self, binding: Binding | str) -> str:
        """Return the cheapest plan as text: its stages with shapes and MACs."""
        return self.numbered_plan(binding).text

    @checked(fold_weights=flag)
    def plans(
        self, binding: Binding | str, limit: int = 10, *, fold_weights: bool = False
    ) -> list[_core.Plan]:
        """Return the cheapest plans with distinct stages; the first is that of `plan`.

        The text of a plan is its stages; `macs`, `params`, `bytes_moved`, `peak_bytes` and
        `written` are its costs.

        Args:
            binding: values of the variables.
            limit: the maximum number of plans.
            fold_weights: allow weight pre-multiplication, for inference; its MACs are not a part of
                `macs` but in `fold_macs`.
        """
        limit = checks.whole("'limit'", limit, least=1)
        return _core.plans(self._core, self.complete(binding), limit, fold_weights)

    @checked(fold_weights=flag)
    def numbered_plan(
        self, binding: Binding | str, number: int = 1, *, fold_weights: bool = False
    ) -> _core.Plan:
        """Return plan `number` of `plans`; plan 1 is the cheapest, as in `syno show`.

        Raises:
            UserError: there are fewer plans.
        """
        hint = "`syno show OP --plans 10` prints the first ten"
        number = checks.whole("the number of a plan", number, 1, MOST_PLANS, hint=hint)
        if number == 1 and not fold_weights:
            return _core.Plan(self._core, self.complete(binding))
        found = self.plans(binding, number, fold_weights=fold_weights)
        if len(found) < number:
            raise UserError(
                f"there is no plan {number} of the operator {self.structure[:8]}\n"
                f"  in binding {dict(self.complete(binding))}\n"
                f"  expected: a number in 1..{len(found)}      got: {number}"
            )
        return found[-1]

    def source(self, binding: Binding | str, *, plan: int = 1, fold_weights: bool = False) -> str:
        """Return PyTorch source of the class SynoOperator, an nn.Module without arguments.

        The source depends only on PyTorch and accepts any size of the dimensions that are passed
        through.

        Args:
            binding: values of the variables.
            plan: the number of the plan in `plans`; 1 is the cheapest.
                `syno.measure.choose_plan` finds the fastest.
            fold_weights: multiply weights with each other beforehand if this saves MACs, for
                inference.

        Raises:
            UserError: a size is not a positive integer, or the plan does not exist.
        """
        wanted = self.numbered_plan(binding, plan, fold_weights=fold_weights)
        source, _ = _core.emit_pytorch(wanted, self.formula())
        return source

    @checked(specification=optional(instance(Specification)))
    def refusals(self, specification: Specification | None = None) -> list[tuple[str, str]]:
        """Return the rejection reasons of a specification as (reason, text).

        Reasons are stable names of constraints, restrictions, quality conditions and budgets.
        """
        specification = specification or self._specification
        if specification is None:
            raise UserError("refusals() requires a specification, and the operator has none")
        return _core.refusals(self._core, specification._core, _core.RuleSet())

    def _layers(self, call: str) -> Specification:
        if self._specification is None or not self._specification.full_bindings:
            raise UserError(
                f"{call} of an operator without layers\n"
                "  expected: a binding, or a specification with bindings      got: neither\n"
                "  what to do: use operator.with_specification(specification), or pass a binding"
            )
        return self._specification

    # Identity of the value.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OperatorValue) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self.structure)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __str__(self) -> str:
        return self.formula()

    def __repr__(self) -> str:
        steps = ", ".join(f"{count} {name}" for name, count in self.primitives().items())
        shapes = f"[{', '.join(self.input)}] -> [{', '.join(self.output)}]"
        return f"<Operator {self.structure[:8]}: {shapes}; {steps}>"


def _numbers(specification: Specification) -> dict[str, int]:
    """Return the values of a specification that belong to a single variable."""
    values = specification.defaults
    return {
        name: value for name, value in values.items() if list(values.values()).count(value) == 1
    }


def _arrays(named: Mapping[str, ArrayLike]) -> list[Array]:
    """Convert all arrays to int64 if all hold integers, otherwise to float64."""
    arrays = [number_array(name, value) for name, value in named.items()]
    integers = all(array.dtype.kind in "biu" for array in arrays)
    for name, array in zip(named, arrays, strict=True):
        if integers and array.dtype == np.uint64 and array.size and array.max() >= 2**63:
            raise UserError(f"{name} holds integers beyond 63 bits")
    kind = np.int64 if integers else np.float64
    return [np.ascontiguousarray(a, dtype=kind).reshape(a.shape) for a in arrays]
