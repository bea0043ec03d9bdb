"""An operator as plain values, the same for every command's JSON."""

from __future__ import annotations

from typing import Any

from syno.operators.operator import Operator


def operator_summary(operator: Operator) -> dict[str, Any]:
    """What identifies an operator, and how it is written."""
    return {
        "key": operator.key,
        "structure": operator.structure,
        "formula": operator.formula(),
        "primitives": operator.primitives(),
        "text": operator.text,
        "operator": operator.to_json(),
    }


def costed_summary(operator: Operator) -> dict[str, Any]:
    """The same with what it costs in all layers of its specification."""
    costs = {"macs": operator.macs(), "params": operator.params()}
    return operator_summary(operator) | costs
