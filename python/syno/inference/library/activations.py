"""Activations and other functions of each element, as plain code beside the layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import fx

from syno.inference.library.program import Value, number
from syno.inference.library.registry import code as _code

if TYPE_CHECKING:
    from syno.inference.library.lower import _Lowering

_aten = torch.ops.aten
_SELU = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805}
# `exp_of` is for numbers of at most 0.
_EXP = "a < Vector{} ? exp_of(a) : splat(1.0f) / exp_of(-a)"
_MISH = """[&] {
    const Vector e = exp_of(-magnitude(a)), one = splat(1.0f), two = splat(2.0f);
    const Vector below = e * (e + two), above = two * e;
    return a < Vector{} ? a * below / (below + two) : a * (one + above) / (one + above * (one + e));
  }()"""
# log(1 + e) = 2 * atanh(e / (2 + e)), whose series has terms of at most 1/3 to the power.
_SOFTPLUS = """[&] {
    const Vector s = splat(@BETA@) * a, e = exp_of(-magnitude(s)), z = e / (splat(2.0f) + e);
    const Vector square = z * z;
    Vector sum = splat(1.0f / 15);
    for (int n = 13; n > 0; n -= 2) sum = sum * square + splat(1.0f / n);
    const Vector found = (Relu::of(s) + splat(2.0f) * z * sum) / splat(@BETA@);
    return s > splat(@THRESHOLD@) ? a : found;
  }()"""


def _numbers(node: fx.Node, **defaults: float) -> list[float]:
    """The arguments of a call behind its tensor, by their names in ATen."""
    given = dict(zip(defaults, node.args[1:], strict=False)) | dict(node.kwargs)
    return [float(given.get(name, default)) for name, default in defaults.items()]  # type: ignore[arg-type]


@_code(_aten.leaky_relu.default)
def _leaky_relu(self: _Lowering, node: fx.Node) -> None:
    (slope,) = _numbers(node, negative_slope=0.01)
    self._mapped(node, f"a > Vector{{}} ? a : splat({number(slope)}) * a")


@_code(_aten.elu.default)
def _elu(self: _Lowering, node: fx.Node) -> None:
    alpha, scale, within = _numbers(node, alpha=1.0, scale=1.0, input_scale=1.0)
    self._mapped(node, _of_elu(alpha, scale, within))


@_code(_aten.celu.default)
def _celu(self: _Lowering, node: fx.Node) -> None:
    (alpha,) = _numbers(node, alpha=1.0)
    self._mapped(node, _of_elu(alpha, 1.0, 1.0 / alpha))


@_code(_aten.selu.default)
def _selu(self: _Lowering, node: fx.Node) -> None:
    self._mapped(node, _of_elu(_SELU["alpha"], _SELU["scale"], 1.0))


def _of_elu(alpha: float, scale: float, within: float) -> str:
    below = f"exp_of(a > Vector{{}} ? Vector{{}} : splat({number(within)}) * a) - splat(1.0f)"
    return (
        f"a > Vector{{}} ? splat({number(scale)}) * a : splat({number(alpha * scale)}) * ({below})"
    )


@_code(_aten.mish.default)
def _mish(self: _Lowering, node: fx.Node) -> None:
    self._mapped(node, _MISH)


@_code(_aten.softplus.default)
def _softplus(self: _Lowering, node: fx.Node) -> None:
    beta, threshold = _numbers(node, beta=1.0, threshold=20.0)
    code = _SOFTPLUS.replace("@BETA@", number(beta)).replace("@THRESHOLD@", number(threshold))
    self._mapped(node, code)


@_code(_aten.exp.default)
def _exp(self: _Lowering, node: fx.Node) -> None:
    self._mapped(node, _EXP)


@_code(_aten.prelu.default)
def _prelu(self: _Lowering, node: fx.Node) -> None:
    x, held = self._get(node.args[0]), self._get(node.args[1])
    over = held.view.view([1, -1, *[1] * (x.view.dim() - 2)] if x.view.dim() > 1 else [-1])
    self._mapped(node, "a > Vector{} ? a : b * a", Value(held.buffer, over))


@_code(_aten.clamp.default)
def _clamp(self: _Lowering, node: fx.Node) -> None:
    given = dict(zip(("min", "max"), node.args[1:], strict=False)) | dict(node.kwargs)
    least, most = given.get("min"), given.get("max")
    low = -math.inf if least is None else float(least)  # type: ignore[arg-type]
    high = math.inf if most is None else float(most)  # type: ignore[arg-type]
    self._mapped(node, _between(low, high))


@_code(_aten.hardtanh.default)
def _hardtanh(self: _Lowering, node: fx.Node) -> None:
    self._mapped(node, _between(*_numbers(node, min_val=-1.0, max_val=1.0)))


def _between(least: float, most: float) -> str:
    # As in PyTorch, the upper bound counts where the two contradict each other.
    low, high = (f"splat({number(each)})" for each in (min(least, most), most))
    return f"a < {low} ? {low} : a > {high} ? {high} : a"


@_code(_aten.abs.default)
def _abs(self: _Lowering, node: fx.Node) -> None:
    self._mapped(node, "magnitude(a)")


@_code(_aten.neg.default)
def _neg(self: _Lowering, node: fx.Node) -> None:
    self._mapped(node, "-a")
