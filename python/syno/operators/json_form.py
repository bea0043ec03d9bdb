"""Types of the JSON form of an operator, which the C++ library reads and writes."""

from __future__ import annotations

from typing import TypedDict


class DimForm(TypedDict, total=False):
    """A dimension; `causal` is there when it is true."""

    size: str
    unordered: bool
    causal: bool


StepForm = TypedDict(
    "StepForm",
    {
        "op": str,
        "in": str | list[str],
        "out": str | list[str],
        "block": str,
        "S": str,
        "size": str,
        "d": int,
        "causal": bool,
        "dims": list[list[str]],
    },
    total=False,
)
OperatorForm = TypedDict(
    "OperatorForm",
    {"out": list[DimForm], "in": list[DimForm], "steps": list[StepForm], "match": list[str]},
)
