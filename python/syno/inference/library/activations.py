"""Activations and other functions of each element, as plain code beside the layers."""

from __future__ import annotations

import functools

import torch
from torch import fx

from syno.inference.library.builder import Builder
from syno.inference.library.elementwise import between, formula
from syno.inference.library.program import Value, number
from syno.inference.library.registry import Lowering
from syno.inference.library.registry import code as _code
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.epilogues import activation_of

_aten = torch.ops.aten
_SELU = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805}
# `exp_of` is for numbers of at most 0.
_EXP = """[&] {
    const Vector half = splat(1.0f) / exp_of(splat(-0.5f) * magnitude(@self));
    return @self < Vector{} ? exp_of(@self) : half * half;
  }()"""
_LOG_SIGMOID = """lesser(@self, Vector{}) -
    lanes_of([](float v) { return __builtin_log1pf(v); }, exp_of(-magnitude(@self)))"""
_MISH = """[&] {
    const Vector e = exp_of(-magnitude(@self)), one = splat(1.0f), two = splat(2.0f);
    const Vector below = e * (e + two), above = two * e;
    return @self < Vector{} ? @self * below / (below + two)
                            : @self * (one + above) / (one + above * (one + e));
  }()"""
# log(1 + e) = 2 * atanh(e / (2 + e)), whose series has terms of at most 1/3 to the power.
_SOFTPLUS = """[&] {
    const Vector s = @beta * @self, e = exp_of(-magnitude(s)), z = e / (splat(2.0f) + e);
    const Vector square = z * z;
    Vector sum = splat(1.0f / 15);
    for (int n = 13; n > 0; n -= 2) sum = sum * square + splat(1.0f / n);
    const Vector found = (Relu::of(s) + splat(2.0f) * z * sum) / @beta;
    return s > @threshold ? @self : found;
  }()"""


def struct_of(activation: str) -> str:
    """The struct of the runtime that computes an activation by the name of epilogues."""
    return "".join(word.capitalize() for word in activation.split("_"))


def _numbers(given: NodeArguments, *names: str) -> list[float]:
    return [float(given[name]) for name in names]


def _activation(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    # Which one it is depends on the other arguments.
    given.without_effect("approximate", "min", "max", "min_val", "max_val")
    found = activation_of(node)
    assert found is not None
    return formula(build, node, given, f"{struct_of(found)}::of(@self)")


# How nodes are computed that are activations of epilogues.
ACTIVATION = Lowering(_activation)


for _target, _text in (
    (_aten.leaky_relu.default, "@self > Vector{} ? @self : @negative_slope * @self"),
    (_aten.mish.default, _MISH),
    (_aten.softplus.default, _SOFTPLUS),
    (_aten.log_sigmoid.default, _LOG_SIGMOID),
    (_aten.exp.default, _EXP),
):
    _code(_target)(functools.partial(formula, text=_text))


@_code(_aten.elu.default)
def _elu(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    alpha, scale, within = _numbers(given, "alpha", "scale", "input_scale")
    return formula(build, node, given, _of_elu(alpha, scale, within))


@_code(_aten.celu.default)
def _celu(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    (alpha,) = _numbers(given, "alpha")
    return formula(build, node, given, _of_elu(alpha, 1.0, 1.0 / alpha))


@_code(_aten.selu.default)
def _selu(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    return formula(build, node, given, _of_elu(_SELU["alpha"], _SELU["scale"], 1.0))


def _of_elu(alpha: float, scale: float, within: float) -> str:
    factor, low = f"splat({number(scale)})", f"splat({number(alpha * scale)})"
    below = f"exp_of(@self > Vector{{}} ? Vector{{}} : {_exponent(within)}) - splat(1.0f)"
    return f"@self > Vector{{}} ? {factor} * @self : {low} * ({below})"


def _exponent(within: float) -> str:
    return f"splat({number(within)}) * @self"


@_code(_aten.prelu.default)
def _prelu(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x, held = build.get(given["self"]), build.get(given["weight"])
    over = held.view.view([1, -1, *[1] * (x.view.dim() - 2)] if x.view.dim() > 1 else [-1])
    return build.mapped(node, "a > Vector{} ? a : b * a", x, Value(held.buffer, over))


@_code(_aten.glu.default)
def _glu(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x = build.get(given["self"])
    halves = [Value(x.buffer, half) for half in x.view.chunk(2, given["dim"])]
    return build.mapped(node, "a * Sigmoid::of(b)", *halves)


@_code(_aten.hardtanh.default)
def _hardtanh(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    return formula(build, node, given, between(*_numbers(given, "min_val", "max_val")))
