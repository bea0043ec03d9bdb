"""Weights of an operator whose elements belong to one channel of the output each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syno import _core
from syno.inference.layer import Computation

_Values = NDArray[np.int64]


def carriers(computation: Computation, channel: int) -> dict[int, _Values]:
    """The channel that each element of a weight belongs to, for weights where there is only one.

    Multiplying such a weight by factors of these channels multiplies the output by them. Elements
    that the operator never reads may have any channel.
    """
    operator, binding = computation.operator, computation.binding
    shapes = operator.shapes(binding)
    steps = operator.to_json()["steps"]
    extents = {f"o{d}": int(n) for d, n in enumerate(shapes.output)}
    for step in steps:
        _extend(extents, step, binding)
    found: dict[int, _Values] = {}
    contractions = [step for step in steps if step["op"] == "contract"]
    for number, (step, shape) in enumerate(zip(contractions, shapes.weights, strict=True)):
        grids = np.indices(shape)
        known = {name: grids[d] for d, (name, _) in enumerate(step["dims"])}
        while f"o{channel}" not in known:
            before = len(known)
            for other in steps:
                _infer(known, other, extents)
            if len(known) == before:
                break
        if f"o{channel}" in known:
            found[number] = np.clip(known[f"o{channel}"], 0, shapes.output[channel] - 1)
    return found


def _extend(extents: dict[str, int], step: Any, binding: Mapping[str, int]) -> None:
    """Adds the extents of the coordinates that a step, a `StepForm`, makes."""

    def size(text: str) -> int:
        return int(_core.evaluate_size(text, binding))

    match step["op"]:
        case "reduce":
            extents[step["out"]] = size(step["size"])
        case "merge":
            quotient, remainder = step["out"]
            extents[remainder] = size(step["block"])
            extents[quotient] = extents[step["in"]] // extents[remainder]
        case "split":
            outer, inner = step["in"]
            extents[step["out"]] = extents[outer] * extents[inner]
        case "shift":
            extents[step["out"]] = extents[step["in"]]
        case "unfold":
            extents[step["out"]] = extents[step["in"][0]]
        case "stride":
            extents[step["out"]] = extents[step["in"]] * size(step["S"])


def _infer(known: dict[str, _Values], step: Any, extents: dict[str, int]) -> None:
    """Adds coordinates that follow from known ones: what makes a coordinate is one-to-one."""
    match step["op"]:
        case "merge":
            quotient, remainder = step["out"]
            if quotient in known and remainder in known:
                value = known[quotient] * extents[remainder] + known[remainder]
                known.setdefault(step["in"], value)
        case "split" if step["out"] in known:
            outer, inner = step["in"]
            known.setdefault(outer, known[step["out"]] // extents[inner])
            known.setdefault(inner, known[step["out"]] % extents[inner])
        case "shift" if step["out"] in known:
            value = (known[step["out"]] - step["d"]) % extents[step["in"]]
            known.setdefault(step["in"], value)
        case "stride" if step["out"] in known:
            factor = extents[step["out"]] // extents[step["in"]]
            known.setdefault(step["in"], known[step["out"]] // factor)
