"""Operator: a linear operator with learned weights, as a value."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syno import _core
from syno._util import checks
from syno._util.errors import UserError
from syno.operators.json_form import OperatorForm
from syno.operators.specification import Binding, Specification, checked_binding

if TYPE_CHECKING:
    from syno.operators.initialization import Reference
    from syno.operators.kernel import KernelPack

Array = NDArray[Any]
# As many plans as there may be of an operator under one binding.
MOST_PLANS = 1000


class Operator:
    """A complete operator in canonical form. A value: content alone decides equality and hash.

    It travels as text. The specification it was found under, if any, comes along: it completes
    bindings with the values of its variables and says what `key`, `macs()` and `params()` are
    about; it is no part of the operator and of equality.
    """

    __slots__ = ("_core", "_key", "_specification")

    def __init__(
        self,
        core: _core.Operator,
        specification: Specification | None = None,
        *,
        key: str | None = None,
    ) -> None:
        self._core = core
        self._specification = specification
        self._key = key

    # In and out.

    @classmethod
    def from_text(cls, text: str, specification: Specification | None = None) -> Operator:
        """Reads the versioned text. UserError names the line that is wrong."""
        if not isinstance(text, str):
            raise UserError(f"an operator's text is a string, got {type(text).__name__}")
        return cls(_core.Operator.parse(checks.text("an operator's text", text)), specification)

    @classmethod
    def from_json(
        cls, data: Mapping[str, object] | str | bytes, specification: Specification | None = None
    ) -> Operator:
        """Reads the JSON form (docs/operators.md): a document, or its content as data.

        Coordinates may have any names. UserError says which entry is malformed, and why.
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
    ) -> Operator:
        """Reads index notation, such as y[o] = sum(i:C_in) x[i] * w0[o,i] (docs/operators.md).

        input, output: shapes, such as "[N, C_in: unordered, H, W]"; those of the specification
            unless given. Without an output, extents come from sizes behind the indices of y
            (y[o:C_out]) or from the input; without an input, from how x is read.
        sizes: variables that numbers in the text stand for; with "s=2", 2*h is s*h, and with "k=3",
            h+a-1 is h+a-k/2 for a window a of k. Those of the specification, unless given.

        UserError with line and column, and with the reason for what the eight primitives cannot
        express.
        """
        return cls.parse_with_weights(text, specification, input=input, output=output, sizes=sizes)[
            0
        ]

    @classmethod
    def parse_with_weights(
        cls,
        text: str,
        specification: Specification | None = None,
        *,
        input: str | None = None,
        output: str | None = None,
        sizes: Binding | str | None = None,
    ) -> tuple[Operator, list[tuple[str, tuple[int, ...]]]]:
        """As `parse`; also what the text calls each weight of the operator.

        With (name, order) for weight t, an array `w` as the text indexes it goes to the operator
        as `w.transpose(order)`.
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
        """The JSON form as data, in canonical form."""
        form: OperatorForm = json.loads(self._core.json)
        return form

    def with_specification(self, specification: Specification | None) -> Operator:
        """The same operator under another specification."""
        return Operator(self._core, specification)

    @property
    def text(self) -> str:
        """The canonical, versioned text; equal operators have equal text."""
        return self._core.text

    # Identity.

    @property
    def specification(self) -> Specification | None:
        """What it was found under."""
        return self._specification

    @property
    def structure(self) -> str:
        """Hash of the canonical form, 32 hexadecimal digits."""
        return self._core.structure

    @property
    def key(self) -> str:
        """The semantic key, 32 hexadecimal digits.

        Operators with equal keys are the same operator under every binding of the specification.
        Without a specification with bindings it is `structure`, which tells fewer repeats.
        """
        if self._key is None:
            if self._specification is not None and self._specification.full_bindings:
                self._key = _core.semantic_key(self._core, self._specification._core)
            else:
                self._key = self.structure
        return self._key

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
        """Sizes of the indices that are summed over."""
        return [step.size for step in self._core.steps if step.op == "reduce"]

    @property
    def variables(self) -> list[str]:
        """The variables its sizes are made of."""
        return self._core.variables

    @property
    def batch(self) -> str | None:
        """The variable of the first dimensions, where these are one dimension passed through.

        No primitive touches it and no other size has it; None for an operator without a batch.
        """
        return self._core.batch

    def primitives(self) -> dict[str, int]:
        """How many steps use each primitive, such as {"reduce": 3, "unfold": 2, "contract": 1}."""
        return self._core.primitives

    def formula(self, *, stages: bool = False) -> str:
        """The operator in index notation, such as y[o] = sum(i:C_in) x[i] * w0[o,i].

        `/` is floor division; reading outside of x or a weight gives 0. `parse` reads it.
        stages: one line for each weight, x first, instead of one for all.
        """
        return _core.formula(self._core, stages)

    def dot(self) -> str:
        """A drawing in Graphviz' language, the input at the top."""
        return self._core.dot()

    def complete(self, binding: Binding | str, x: ArrayLike | None = None) -> dict[str, int]:
        """The value of every variable of the operator.

        What `binding` lacks comes from the shape of an input x, where a variable is a dimension of
        its own (the batch size), then from the specification: values of variables, and 1 for a
        variable that is passed through. Without a specification a batch is 1 (see `batch`).
        UserError lists what is still missing.
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
        """Extents of `input`, `output` and `weights` under a binding.

        UserError where a size is not a positive integer.
        """
        return _core.operator_shapes(self._core, self.complete(binding))

    def weight_shapes(self, binding: Binding | str) -> list[tuple[int, ...]]:
        """The shape of each weight, in the canonical order of `text` and `to_json`."""
        return [tuple(shape) for shape in self.shapes(binding).weights]

    def term_count(self, binding: Binding | str) -> int:
        """Terms of all outputs together: outputs times the product of the reductions.

        That is what `interpret` runs through, some 50 million a second.
        """
        values = self.complete(binding)
        sizes = (_core.evaluate_size(size, values) for size in [*self.output, *self.reductions])
        return math.prod(sizes)

    # What it computes.

    def interpret(
        self, binding: Binding | str, x: ArrayLike, weights: Sequence[ArrayLike]
    ) -> Array:
        """y by the definition, term by term: slow, and the truth that code is checked against.

        x: of the input's shape; weights: of `weight_shapes`, in that order. Integers give int64,
        exactly (UserError on overflow); anything else is computed in float64. A variable that the
        binding lacks is taken from x where it is a dimension of its own, such as a batch size.
        """
        x, *weights = _arrays({"x": x} | _named(weights))
        values = self.complete(binding, x)
        return _core.interpret(self._core, values, x, weights)

    def interpret_at(
        self,
        binding: Binding | str,
        x: ArrayLike,
        weights: Sequence[ArrayLike],
        positions: Sequence[int],
    ) -> Array:
        """y at some row-major positions of the output only, as a vector."""
        x, *weights = _arrays({"x": x} | _named(weights))
        values = self.complete(binding, x)
        at = [checks.whole("a position of the output", p, least=0) for p in positions]
        return _core.interpret_at(self._core, values, x, weights, at)

    def gradients(
        self, binding: Binding | str, x: ArrayLike, weights: Sequence[ArrayLike], dy: ArrayLike
    ) -> tuple[Array, list[Array]]:
        """Gradients of sum(dy * y) with respect to x and to each weight, by the definition."""
        x, dy, *weights = _arrays({"x": x, "dy": dy} | _named(weights))
        values = self.complete(binding, x)
        return _core.gradients(self._core, values, x, weights, dy)

    def mean_square(self, binding: Binding | str, seed: int = 0) -> float:
        """The mean of y^2 where data and weights are independent, of mean 0 and variance 1.

        By the terms of the definition: those that a mask cuts off are not counted, and n terms that
        read the same elements count n^2. With weights of variances s0, s1, ... it is multiplied by
        all of them. Where an output has many terms, some outputs are drawn from `seed`.
        """
        seed = checks.whole("'seed'", seed, least=0)
        return _core.mean_square(self._core, self.complete(binding), seed)

    def reads_future(
        self, binding: Binding | str, output_dim: int = 1, input_dim: int = 1
    ) -> str | None:
        """Where an output reads an input of a later position, in words; None where none does.

        The positions are those along two dimensions that are one sequence, counted from 0, the
        batch included. It is decided on the access map, for all data and weights; where that has
        too many points to be decided, the text says so. UserError for dimensions that are not
        there.
        """
        output, input_ = self.output, self.input
        for name, dim, dims in (("output", output_dim, output), ("input", input_dim, input_)):
            checks.whole(f"'{name}_dim'", dim, 0, len(dims) - 1)
        values = self.complete(binding)
        return _core.reads_future(self._core, values, output_dim, input_dim) or None

    # What it costs, and its code.

    def macs(self, binding: Binding | str | None = None) -> int:
        """Multiply-adds of the cheapest plan under a binding, dense (masks are ignored).

        Without a binding: over all layers of the specification that the operator fits, by
        multiplicity. `flops` are twice as many.
        """
        if binding is None:
            return _core.total_macs(self._core, self._layers("macs()")._core)
        return _core.macs(self._core, self.complete(binding))

    def params(self, binding: Binding | str | None = None) -> int:
        """Elements of all weights, under a binding or over all layers as in `macs`."""
        if binding is None:
            return _core.total_params(self._core, self._layers("params()")._core)
        return _core.params(self._core, self.complete(binding))

    def plan(self, binding: Binding | str) -> str:
        """The cheapest plan in readable lines: stages with shapes and multiply-adds."""
        return self._plan(binding).text

    def plans(
        self, binding: Binding | str, limit: int = 10, *, fold_weights: bool = False
    ) -> list[_core.Plan]:
        """The cheapest plans, no two with the same stages; the first one is `plan`'s.

        A plan prints as its stages; `macs`, `params`, `bytes_moved`, `peak_bytes` and `written`
        are its costs. fold_weights: weights may be multiplied with each other before the data
        comes, for inference; such MACs stand in `fold_macs`, apart.
        """
        limit = checks.whole("'limit'", limit, least=1)
        return _core.plans(self._core, self.complete(binding), limit, fold_weights)

    def numbered_plan(
        self, binding: Binding | str, number: int = 1, *, fold_weights: bool = False
    ) -> _core.Plan:
        """Plan number `number` of `plans`, counted from 1, the cheapest, as `syno show` prints it.

        UserError when there are not so many.
        """
        hint = "`syno show OP --plans 10` prints the first ten"
        number = checks.whole("the number of a plan", number, 1, MOST_PLANS, hint=hint)
        if number == 1 and not fold_weights:
            return self._plan(binding)
        found = self.plans(binding, number, fold_weights=fold_weights)
        if len(found) < number:
            raise UserError(
                f"there is no plan {number} of the operator {self.structure[:8]}\n"
                f"  in binding {dict(self.complete(binding))}\n"
                f"  expected: a number in 1..{len(found)}      got: {number}"
            )
        return found[-1]

    def source(self, binding: Binding | str, *, plan: int = 1, fold_weights: bool = False) -> str:
        """PyTorch source of the class SynoOperator, an nn.Module without constructor arguments.

        It needs torch alone, and takes any size of the dimensions that are passed through.
        plan: its number in `plans`, from 1, the cheapest; `syno.measure.choose_plan` finds the
        fastest. fold_weights: weights are multiplied with each other before x comes, where that
        takes fewer multiply-adds; for inference. UserError where a size is not a positive integer
        under the binding, and for a plan that is not there.
        """
        chosen = self.numbered_plan(binding, plan, fold_weights=fold_weights)
        source, _ = _core.emit_pytorch(chosen, self.formula())
        return source

    def kernel_pack(
        self,
        binding: Binding | str,
        *,
        plan: int = 1,
        fold_weights: bool = False,
        reference: Reference | None = None,
    ) -> KernelPack:
        """A new torch module that computes the operator under a binding. Needs torch.

        plan, fold_weights: as in `source`; the weights are the operator's all the same.
        reference: the layer that the first weights are scaled like, as `syno.replace` does
        (default: results of variance 1 for data of variance 1).
        """
        from syno.operators.initialization import Reference
        from syno.operators.kernel import KernelPack

        binding = self.complete(binding)
        return KernelPack(self, binding, plan, fold_weights, reference or Reference())

    def construct_kernel_packs(self) -> list[KernelPack]:
        """One torch module a layer of the specification, in the order of its bindings.

        Layers whose sizes the operator does not fit are left out. UserError when it fits none.
        """
        specification = self._layers("construct_kernel_packs()")
        packs = []
        refused = []
        for binding, count in zip(
            specification.full_bindings, specification.multiplicities, strict=True
        ):
            try:
                packs += [self.kernel_pack(binding) for _ in range(count)]
            except UserError as error:
                refused.append(f"  {binding}: {str(error).splitlines()[0]}")
        if not packs:
            raise UserError(
                "\n".join(["the operator fits no layer of its specification", *refused])
            )
        return packs

    def refusals(self, specification: Specification | None = None) -> list[tuple[str, str]]:
        """(reason, text) of everything a specification has against the operator; empty: none.

        Reasons are stable names: limits, rules that restrict, quality conditions, budgets.
        """
        specification = specification or self._specification
        if specification is None:
            raise UserError("refusals() needs a specification: the operator comes without one")
        return _core.refusals(self._core, specification._core, _core.RuleSet())

    def _plan(self, binding: Binding | str) -> _core.Plan:
        return _core.Plan(self._core, self.complete(binding))

    def _layers(self, call: str) -> Specification:
        if self._specification is None or not self._specification.full_bindings:
            raise UserError(
                f"{call} of an operator without layers\n"
                "  expected: a binding, or a specification with bindings      got: neither\n"
                "  hint: operator.with_specification(specification), or give the call a binding"
            )
        return self._specification

    # Identity of the value.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self.structure)

    def __copy__(self) -> Operator:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Operator:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return Operator.from_text, (self.text, self._specification)

    def __str__(self) -> str:
        return self.formula()

    def __repr__(self) -> str:
        steps = ", ".join(f"{count} {name}" for name, count in self.primitives().items())
        shapes = f"[{', '.join(self.input)}] -> [{', '.join(self.output)}]"
        return f"<Operator {self.structure[:8]}: {shapes}; {steps}>"


def _named(weights: Sequence[ArrayLike]) -> dict[str, ArrayLike]:
    if isinstance(weights, np.ndarray) or not isinstance(weights, Sequence):
        raise UserError(
            "'weights' is a list with one array a weight\n"
            f"  expected: a list      got: {type(weights).__name__}"
        )
    return {f"weight {t}": weight for t, weight in enumerate(weights)}


def _numbers(specification: Specification) -> dict[str, int]:
    """The values that single variables of a specification have."""
    values = specification.defaults
    return {
        name: value for name, value in values.items() if list(values.values()).count(value) == 1
    }


def number_array(name: str, value: ArrayLike) -> Array:
    """`value` as an array of integers or floats. UserError, which names it, for anything else."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UserError(f"{name} is not an array: {error}") from error
    if array.dtype.kind not in "biuf":
        raise UserError(
            f"{name} does not hold numbers\n  expected: integers or floats      got: {array.dtype}"
        )
    return array


def _arrays(named: Mapping[str, ArrayLike]) -> list[Array]:
    """All as int64 when all hold integers, else all as float64."""
    arrays = [number_array(name, value) for name, value in named.items()]
    integers = all(array.dtype.kind in "biu" for array in arrays)
    for name, array in zip(named, arrays, strict=True):
        if integers and array.dtype == np.uint64 and array.size and array.max() >= 2**63:
            raise UserError(f"{name} holds integers beyond 63 bits")
    kind = np.int64 if integers else np.float64
    return [np.ascontiguousarray(a, dtype=kind).reshape(a.shape) for a in arrays]
