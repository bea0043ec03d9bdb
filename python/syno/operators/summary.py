"""An operator as plain values, the same for every command's JSON."""

from __future__ import annotations

import functools

from syno import _core
from syno.operators.operator import Operator


@functools.lru_cache(maxsize=65536)
def identity(text: str) -> str:
    """Return the id of the operator of a stored text: the hash of its canonical form.

    It is the same in all networks, specifications and stores, while a key is that of a space. The
    result is empty if the text is not that of an operator.
    """
    return _core.Operator.parse(text).structure if text.startswith("syno operator 1\n") else ""


def short_id(text: str | None, key: str | None) -> str:
    """Return the first digits of the id of an operator, or of its key if there is no text."""
    return (identity(text or "") or key or "")[:8]


def is_named(start: str, text: str | None, key: str | None) -> bool:
    """Return whether the start of an id or of a key means an operator."""
    return (key or "").startswith(start) or identity(text or "").startswith(start)


def operator_summary(operator: Operator) -> dict[str, object]:
    """What identifies an operator, and how it is written."""
    return {
        "id": operator.structure,
        "key": operator.key,
        "structure": operator.structure,
        "formula": operator.formula(),
        "primitives": operator.primitives(),
        "text": operator.text,
        "operator": operator.to_json(),
    }


def costed_summary(operator: Operator) -> dict[str, object]:
    """The same with what it costs in all layers of its specification."""
    costs = {"macs": operator.macs(), "params": operator.params()}
    return operator_summary(operator) | costs
