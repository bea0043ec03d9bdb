"""Functions of each element, most of them as formulas of the arguments of their operator."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library.builder import Builder
from syno.inference.library.program import Value, number
from syno.inference.library.registry import code as _code
from syno.inference.library.registry import overloads
from syno.inference.node_arguments import NodeArguments

_aten = torch.ops.aten

# An argument is written with its name in ATen; it is a tensor or a number.
_FORMULAS = {
    "add: Tensor Scalar": "@self + @alpha * @other",
    "sub: Tensor Scalar": "@self - @alpha * @other",
    "rsub: Tensor Scalar": "@other - @alpha * @self",
    "mul: Tensor Scalar": "@self * @other",
    "div: Tensor Scalar": "@self / @other",
    "neg: default": "-@self",
    "abs: default": "magnitude(@self)",
    "square: default": "@self * @self",
    "reciprocal: default": "splat(1.0f) / @self",
    "sqrt: default": "root_of(@self)",
    "rsqrt: default": "splat(1.0f) / root_of(@self)",
    "maximum: default": "greater(@self, @other)",
    "max: other": "greater(@self, @other)",
    "minimum: default": "lesser(@self, @other)",
    "min: other": "lesser(@self, @other)",
    "clamp_min: default Tensor": "greater(@self, @min)",
    "clamp_max: default Tensor": "lesser(@self, @max)",
    "addcmul: default": "@self + @value * @tensor1 * @tensor2",
    "addcdiv: default": "@self + @value * @tensor1 / @tensor2",
    "lerp: Scalar Tensor": "@self + @weight * (@end - @self)",
    "threshold: default": "@self <= @threshold ? @value : @self",
    "where: self ScalarSelf ScalarOther Scalar": "@condition != Vector{} ? @self : @other",
    "masked_fill: Scalar Tensor": "@mask != Vector{} ? @value : @self",
    "sign: default": "truth(@self > Vector{}) - truth(@self < Vector{})",
    "sgn: default": "truth(@self > Vector{}) - truth(@self < Vector{})",
    "hardshrink: default": "(@self >= -@lambd) & (@self <= @lambd) ? Vector{} : @self",
    "softshrink: default": "@self > @lambd ? @self - @lambd : @self < -@lambd ? @self + @lambd : "
    "@self == @self ? Vector{} : @self",
    "pow: Tensor_Tensor Scalar": "lanes_of([](float v, float w) "
    "{ return __builtin_powf(v, w); }, @self, @exponent)",
    "atan2: default": "lanes_of([](float v, float w) "
    "{ return __builtin_atan2f(v, w); }, @self, @other)",
    "fmod: Tensor Scalar": "lanes_of([](float v, float w) "
    "{ return __builtin_fmodf(v, w); }, @self, @other)",
    "remainder: Tensor Scalar": "lanes_of([](float v, float w) "
    "{ const float r = __builtin_fmodf(v, w); return r != 0 && (r < 0) != (w < 0) ? r + w : r; }, "
    "@self, @other)",
}
# The same; their results are truth values.
_CONDITIONS = {
    "eq: Tensor Scalar": "@self == @other",
    "ne: Tensor Scalar": "@self != @other",
    "lt: Tensor Scalar": "@self < @other",
    "le: Tensor Scalar": "@self <= @other",
    "gt: Tensor Scalar": "@self > @other",
    "ge: Tensor Scalar": "@self >= @other",
    "logical_not: default": "@self == Vector{}",
    "bitwise_not: default": "@self == Vector{}",
    "logical_and: default": "(@self != Vector{}) & (@other != Vector{})",
    "bitwise_and: Tensor Scalar": "(@self != Vector{}) & (@other != Vector{})",
    "__and__: Tensor Scalar": "(@self != Vector{}) & (@other != Vector{})",
    "logical_or: default": "(@self != Vector{}) | (@other != Vector{})",
    "bitwise_or: Tensor Scalar": "(@self != Vector{}) | (@other != Vector{})",
    "__or__: Tensor Scalar": "(@self != Vector{}) | (@other != Vector{})",
    "logical_xor: default": "(@self != Vector{}) ^ (@other != Vector{})",
    "isnan: default": "@self != @self",
}
# By the functions of C that the compiler knows, one element after the other.
_LANES = {
    "log": "logf",
    "log1p": "log1pf",
    "log2": "log2f",
    "log10": "log10f",
    "exp2": "exp2f",
    "expm1": "expm1f",
    "erf": "erff",
    "erfc": "erfcf",
    "sin": "sinf",
    "cos": "cosf",
    "tan": "tanf",
    "asin": "asinf",
    "acos": "acosf",
    "atan": "atanf",
    "sinh": "sinhf",
    "cosh": "coshf",
    "asinh": "asinhf",
    "acosh": "acoshf",
    "atanh": "atanhf",
    "floor": "floorf",
    "ceil": "ceilf",
    "trunc": "truncf",
    "round": "nearbyintf",  # ties to even, as PyTorch
}


def _each(table: dict[str, str]) -> Iterator[tuple[object, str]]:
    for names, formula in table.items():
        name, _, variants = names.partition(": ")
        for target in overloads(name, *variants.split()):
            yield target, formula


_FORMULA_OF = dict(_each(_FORMULAS))
_CONDITION_OF = {target: f"truth({formula})" for target, formula in _each(_CONDITIONS)}
_LANES_OF = {target: f for name, f in _LANES.items() for target in overloads(name)}


def formula(build: Builder, node: fx.Node, given: NodeArguments, text: str) -> Value:
    """The value of a node by a formula in which @NAME is an argument: a tensor or a number."""
    operands: list[Value] = []
    letters: dict[object, str] = {}

    def term(match: re.Match[str]) -> str:
        value = given[match[1]]
        if not isinstance(value, fx.Node):
            return f"splat({number(value)})"
        if value not in letters:
            letters[value] = "abcdefgh"[len(operands)]
            operands.append(build.stored(value))
        return letters[value]

    return build.mapped(node, re.sub(r"@(\w+)", term, text), *operands)


@_code(*_FORMULA_OF)
def _formula(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    text = _FORMULA_OF[node.target]
    for name in ("alpha", "value"):
        if given.get(name, None) == 1:
            text = text.replace(f"@{name} * ", "")
    return formula(build, node, given, text)


@_code(*_CONDITION_OF, truth=True)
def _condition(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    return formula(build, node, given, _CONDITION_OF[node.target])


@_code(*_LANES_OF)
def _lanes(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    function = f"[](float v) {{ return __builtin_{_LANES_OF[node.target]}(v); }}"
    return formula(build, node, given, f"lanes_of({function}, @self)")


@_code(_aten.pow.Tensor_Scalar)
def _power(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    exponent = given["exponent"]
    if exponent in (2, 3, 4):
        return formula(build, node, given, " * ".join(["@self"] * int(exponent)))
    if abs(exponent) == 0.5:
        root = "root_of(@self)" if exponent > 0 else "splat(1.0f) / root_of(@self)"
        return formula(build, node, given, root)
    function = f"[](float v) {{ return __builtin_powf(v, {number(exponent)}); }}"
    return formula(build, node, given, f"lanes_of({function}, @self)")


@_code(*overloads("clamp", "default", "Tensor"), *overloads("clip", "default", "Tensor"))
def _clamp(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    least, most = given["min"], given["max"]
    if not isinstance(least, fx.Node) and not isinstance(most, fx.Node):
        low = -math.inf if least is None else float(least)
        high = math.inf if most is None else float(most)
        if not math.isnan(low) and not math.isnan(high):
            return formula(build, node, given, between(low, high))
    text = "@self" if least is None else "greater(@self, @min)"
    return formula(build, node, given, text if most is None else f"lesser({text}, @max)")


def between(least: float, most: float) -> str:
    """The formula of what is kept between two bounds."""
    # As in PyTorch, the upper bound counts where the two contradict each other.
    low, high = (f"splat({number(each)})" for each in (min(least, most), most))
    return f"@self < {low} ? {low} : @self > {high} ? {high} : @self"


@_code(_aten._to_copy.default, _aten.to.dtype)
def _to(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    # A value is never changed, and lies where the network does: a copy is not needed.
    given.without_effect("dtype", "non_blocking", "copy", "memory_format", "pin_memory")
    _check_kind(given)
    return _as_numbers(build.get(given["self"]))


def _check_kind(given: NodeArguments) -> None:
    """UserError for a tensor that is not an ordinary one of the CPU."""
    given.without_effect("dtype")  # the type of the result says it
    if given.get("device", None) not in (None, torch.device("cpu")):
        raise UserError(f"the network library has no code for the device {given['device']}")
    if given.get("layout", None) not in (None, torch.strided):
        raise UserError(f"the network library has no code for the layout {given['layout']}")


_FILLED: dict[object, float | None] = {
    _aten.zeros_like.default: 0.0,
    _aten.ones_like.default: 1.0,
    _aten.full_like.default: None,
    _aten.fill.Scalar: None,
    _aten.fill.Tensor: None,
}


@_code(*_FILLED)
def _filled(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    """One number everywhere; of the tensor, the shape alone counts."""
    given.without_effect("self", "memory_format", "pin_memory")
    _check_kind(given)
    value = _FILLED[node.target]
    if value is None:
        value = given.first("fill_value", "value")
    if isinstance(value, fx.Node):
        return build.mapped(node, "a", build.get(value))
    return build.mapped(node, f"splat({number(value)})")


@_code(_aten.type_as.default)
def _type_as(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    given.without_effect("other")  # the type of the result says it
    return _as_numbers(build.get(given["self"]))


def _as_numbers(value: Value) -> Value:
    """Truth values as the numbers that they are kept as."""
    return Value(
        value.buffer,
        torch.empty_strided(
            value.view.shape, value.view.stride(), dtype=torch.float32, device="meta"
        ),
    )
