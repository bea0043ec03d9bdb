"""Costs of an operator in layers as plain values: MACs, plans, and their times."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from syno._util.errors import UserError
from syno.measure.plans import choose_plan
from syno.operators.operator import Operator

LayerCosts = dict[str, Any]


def layer_costs(operator: Operator, given: Sequence[dict[str, int]]) -> list[LayerCosts]:
    """Return the costs under the given bindings, or under those of the specification."""
    specification = operator.specification
    if given or specification is None:
        pairs = [(binding, 1) for binding in given]
    else:
        pairs = list(zip(specification.bindings, specification.multiplicities, strict=True))
    layers: list[LayerCosts] = []
    for binding, count in pairs:
        entry: LayerCosts = {"binding": binding, "multiplicity": count}
        try:
            entry |= {"macs": operator.macs(binding), "params": operator.params(binding)}
            entry["weights"] = [list(shape) for shape in operator.weight_shapes(binding)]
        except UserError as error:
            if given:
                raise
            # One layer of a specification that the operator does not fit is a fact, no mistake.
            entry["does_not_fit"] = str(error)
        layers.append(entry)
    return layers


def add_plans(
    operator: Operator, layers: Sequence[LayerCosts], limit: int, *, fold_weights: bool
) -> None:
    """Add the cheapest plans to each layer that the operator fits."""
    for layer in layers:
        if "does_not_fit" in layer:
            continue
        layer["plans"] = [
            {
                "macs": plan.macs,
                "bytes_moved": plan.bytes_moved,
                "peak_bytes": plan.peak_bytes,
                "fold_macs": plan.fold_macs,
                "stages": plan.text,
            }
            for plan in operator.plans(layer["binding"], limit, fold_weights=fold_weights)
        ]


def add_times(
    operator: Operator,
    layers: Sequence[LayerCosts],
    limit: int,
    *,
    fold_weights: bool,
    emitter: str,
    threads: int,
    again: bool,
    progress: Callable[[str], None],
) -> None:
    """Add the times of the plans of each layer, and the fastest plan."""
    for layer in layers:
        if "plans" not in layer:
            continue
        choice = choose_plan(
            operator,
            layer["binding"],
            emitter=emitter,
            limit=limit,
            threads=threads,
            fold_weights=fold_weights,
            again=again,
            progress=progress,
        )
        described = dataclasses.asdict(choice)
        times = {row.pop("number"): row for row in described.pop("times")}
        layer["measured"] = described | {"speedup": choice.speedup, "noisy": choice.noisy}
        for number, plan in enumerate(layer["plans"], 1):
            plan["measured"] = times.get(number)
