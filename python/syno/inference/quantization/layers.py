"""Layers as products of integers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from syno import _core
from syno._util.errors import UserError, first_line
from syno.inference.carriers import carriers
from syno.inference.codes import MOST_WEIGHT, Codes, Contractions, LayerCodes, inside
from syno.inference.layer import TracedLayer
from syno.inference.precision import INT8

# Shares of the greatest weight of a channel that are tried as the greatest integer.
_SHARES = tuple(1 - 0.03 * step for step in range(12))


# Why a layer that the user named stays in float32.
KEPT = "it is kept"


class StaysFloat(Exception):
    """Why a layer is not computed with integers, for the report."""


def contractions_of(layer: TracedLayer) -> int:
    """How many products a layer computes one after the other, all of which can be of integers.

    A layer whose weights would be multiplied with each other beforehand computes its steps instead:
    products of integers are no small integers. StaysFloat where its kernel would multiply floats.
    """
    computation = layer.computation
    try:
        return _contractions(layer)
    except StaysFloat:
        if not computation.fold_weights or len(layer.weights) < 2:
            raise
    layer.computation = dataclasses.replace(computation, fold_weights=False)
    try:
        return _contractions(layer)
    except StaysFloat:
        layer.computation = computation
        raise


def _contractions(layer: TracedLayer) -> int:
    found = layer.computation
    shapes = found.operator.shapes(found.binding)
    if len(shapes.input) != len(shapes.output):
        raise StaysFloat("its input and its output have different numbers of dimensions")
    try:
        _, manifest = _core.emit_cpp(
            found.planned(),
            channel=layer.channel,
            precision=INT8,
            input_format="uint8",
            value_format="uint8",
            input_order=inside(len(shapes.input), layer.channel),
            output_order=inside(len(shapes.output), layer.channel),
        )
    except UserError as error:
        raise StaysFloat(first_line(error)) from error
    between = len(json.loads(manifest).get("codes", ()))
    count = len(_results(layer, layer.reference()))
    if count != between + 1 or (count > 1 and not _same_plan(layer)):
        raise StaysFloat("some of its steps have no products of integers")
    return count


def _same_plan(layer: TracedLayer) -> bool:
    """Whether the kernel computes what the emitted module does, step by step."""
    found, numbered = layer.computation, layer.computation.operator.numbered_plan
    plain = numbered(found.binding, found.plan, fold_weights=False)
    return str(found.planned()) == str(plain)


def _results(layer: TracedLayer, module: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
    """The greatest values that the contractions of a module give, for one random input."""
    shape = layer.computation.operator.shapes(layer.computation.binding).input
    x = torch.randn(list(shape), generator=torch.Generator().manual_seed(0))
    found: list[float] = []

    def visit(_: int, y: torch.Tensor) -> torch.Tensor:
        found.append(float(y.abs().max()))
        return y

    with Contractions(visit), torch.no_grad():
        module(x)
    return found


def _weights_before(layer: TracedLayer, count: int) -> list[set[int]]:
    """Of each contraction but the last, which weights what it gives depends on."""
    module = layer.reference()
    plain = _results(layer, module)
    found: list[set[int]] = [set() for _ in range(count - 1)]
    for number, weight in enumerate(module.parameters()):
        with torch.no_grad():
            held = weight.clone()
            weight.mul_(2)
            twice = _results(layer, module)
            weight.copy_(held)
        for place in range(count - 1):
            if twice[place] != plain[place]:
                found[place].add(number)
    return found


def with_codes(layer: TracedLayer, x: Codes, between: Sequence[Codes]) -> None:
    """Makes a layer multiply integers.

    x: what it reads; between: what each of its contractions but the last gives to the next.
    """
    before = _weights_before(layer, len(between) + 1)
    found = carriers(layer.computation, layer.channel)
    weights, scales = [], []
    for number, weight in enumerate(layer.weights):
        early = any(number in each for each in before)
        owner = None if early else found.get(number)
        integers, scale = _integers(weight, owner, layer.channels)
        weights.append(integers)
        scales.append(scale)
    units = []
    for each in before:
        unit = x.scale
        for number in sorted(each):
            unit *= float(scales[number])
        units.append(unit)
    layer.codes = LayerCodes(x, tuple(between), tuple(units), tuple(weights), tuple(scales))
    layer.set_weights(
        [
            integers * _spread(scale, found.get(number), integers)
            for number, (integers, scale) in enumerate(zip(weights, scales, strict=True))
        ]
    )


def _integers(
    weight: torch.Tensor, owner: NDArray[np.int64] | None, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The integers of a weight, and their scale: of all, or of each channel that owns elements."""
    groups = torch.zeros(weight.numel(), dtype=torch.int64)
    count = 1
    if owner is not None:
        groups, count = torch.from_numpy(owner).reshape(-1), channels
    flat = weight.detach().double().reshape(-1)
    most = torch.zeros(count, dtype=torch.float64).scatter_reduce(0, groups, flat.abs(), "amax")
    most = torch.where(most > 0, most, 1.0)  # a channel that is dead
    best, least = most, torch.full([count], torch.inf, dtype=torch.float64)
    for share in _SHARES:
        scale = scale_of(most * share)[groups]
        error = (_rounded(flat, scale) * scale - flat).square()
        total = torch.zeros(count, dtype=torch.float64).scatter_add(0, groups, error)
        best, least = torch.where(total < least, most * share, best), torch.minimum(total, least)
    scale = scale_of(best).float()
    integers = _rounded(flat, scale.double()[groups]).float().reshape(weight.shape)
    return integers, scale if owner is not None else scale[0]


def scale_of(greatest: torch.Tensor) -> torch.Tensor:
    """The scale by which the greatest weight is the greatest integer."""
    return greatest / MOST_WEIGHT


def _rounded(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (values / scale).round().clamp(-MOST_WEIGHT, MOST_WEIGHT)


def _spread(
    scale: torch.Tensor, owner: NDArray[np.int64] | None, integers: torch.Tensor
) -> torch.Tensor:
    """The scale of each integer."""
    if scale.dim() == 0 or owner is None:
        return scale
    return scale[torch.from_numpy(owner).reshape(integers.shape)]
