"""Operators as commands list them: one line of facts and the formula, or plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from syno.cli import output
from syno.report import format as fmt

if TYPE_CHECKING:
    from rich.console import Console

    from syno import Operator


def as_json(operators: Sequence[Operator]) -> list[dict[str, Any]]:
    """What --json prints of each."""
    from syno.cli.commands.show import described

    return [described(o) | {"macs": o.macs(), "params": o.params()} for o in operators]


def show(screen: Console, operators: Sequence[Operator]) -> None:
    """Print them, numbered."""
    for number, operator in enumerate(operators, start=1):
        costs = (
            f"  {fmt.count(operator.macs()):>7} MACs"
            f"  {fmt.count(operator.params()):>7} params  {fmt.primitives(operator.primitives())}"
        )
        screen.print(output.heading(operator.key[:8], costs, before=f"{number:>4}  "))
        screen.print(output.indented(operator.formula(), 6), soft_wrap=True)
