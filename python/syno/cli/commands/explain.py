"""`syno explain`: how a search comes to an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.options import Options, group, required
from syno.cli import framework, output
from syno.operands.options import Operand
from syno.operators.summary import operator_summary
from syno.space.named import NamedSpecification, Rules
from syno.space.tables import rules_table
from syno.space.usage import amount, obstacle_in_words, says_something

if TYPE_CHECKING:
    from rich.console import Console

    from syno import Operator
    from syno.space.explanation import Found


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    op: str = required("", names="OP")
    named: NamedSpecification = group(NamedSpecification)
    found: Operand = group(Operand, without=("preset",))
    rules: Rules = group(Rules)
    as_json: bool = output.as_json()


@framework.command("explain", _Arguments)
def command(given: _Arguments) -> int:
    """Print how a search builds an operator, and what it uses of its specification.

    The path goes from the output towards the input. Beside each step stands how many steps were
    possible there, and which of the operator's own steps could not come there and why: that is what
    gives the path its order. Then follow the rules that refused other steps along the path, the
    budgets and limits that the operator uses, its costs and its drawing.

    OP is a file with an operator's text, JSON or index notation, - for standard input, one of these
    itself, or the start of a key with --store. The exit code is 1 when no search lists the
    operator; `syno why-not` says what to do then.
    """
    from syno.space.explanation import explain, rules_along

    operator, wanted = given.found.explained(given.op, given.named)
    found = explain(operator, wanted, rules_off=given.rules.off, rules=given.rules.added)
    if given.as_json:
        output.print_json(operator_summary(operator) | found | {"rules": rules_along(found)})
    else:
        _print(operator, found)
    return framework.OK if found["listed"] else framework.NEGATIVE


def _print(operator: Operator, found: Found) -> None:
    from syno.report.tree import tree
    from syno.space.explanation import rules_along

    screen = output.console()
    screen.print(output.heading(f"operator {operator.key}"))
    screen.print(output.indented(operator.formula(), 2), soft_wrap=True)
    if found["listed"]:
        _path(screen, found["steps"])
        _shaped(screen, rules_along(found))
    else:
        screen.print()
        against(screen, found)
        screen.print("`syno why-not` says which operator is kept instead, and what admits it")
    use(screen, found["usage"])
    screen.print()
    output.paragraph("Drawing", tree(operator.to_json()))


def against(screen: Console, found: Found) -> None:
    """Print everything that speaks against an operator."""
    rows = [[refusal["reason"], refusal["text"]] for refusal in found["refusals"]]
    if found["refused_match"]:
        rows.append([found["refused_match"], "another complete graph stands for this one"])
    if not found["reached"] and not any(
        r["reason"] in found["obstacle"] for r in found["refusals"]
    ):
        rows.append([found["obstacle_reason"], obstacle_in_words(found)])
    screen.print(output.heading("Refused"))
    screen.print(output.facts([["  " + reason, text] for reason, text in rows]))
    for misfit in found["usage"]["misfits"]:
        line = f"  does not fit {misfit['binding']}: {misfit['size']} is no positive integer there"
        screen.print(line, soft_wrap=True)
    screen.print()


def _path(screen: Console, steps: Sequence[Found]) -> None:
    rows = []
    for number, step in enumerate(steps, start=1):
        beside = f"one of {step['children']:,}" if step["children"] > 1 else "the only one"
        rows.append([f"{number:>4}", step["step"], beside])
        rows += [["", f"  not {o['step']}", o["reason"]] for o in step["others"]]
    screen.print()
    screen.print(output.heading("Path", ", from the output to the input"))
    screen.print(output.facts(rows))


def _shaped(screen: Console, rules: Sequence[Found]) -> None:
    if not rules:
        return
    screen.print()
    screen.print(output.heading("Rules along the path"))
    output.show(rules_table(rules))


def use(screen: Console, usage: Found) -> None:
    """Print what an operator uses of budgets and limits, and what it costs."""
    screen.print()
    screen.print(output.heading("Budgets"))
    budgets = [
        [f"  {b['variable']}", f"{b['used']} of {b['budget']}", "" if b["within"] else "too much"]
        for b in usage["budgets"]
    ]
    screen.print(output.facts(budgets))
    screen.print()
    screen.print(output.heading("Limits"))
    limits = [
        [f"  {u['limit']}", amount(u), "" if u["within"] else "not allowed"]
        for u in usage["limits"]
        if not u["within"] or says_something(u)
    ]
    screen.print(output.facts(limits))
    screen.print()
    screen.print(output.heading("Costs", ", all layers that it fits together"))
    costs = [("MACs", usage["macs"]), ("parameters", usage["params"])]
    rows = [[f"  {name}", f"{value:,}", f"({fmt.count(value)})"] for name, value in costs]
    rows.append(["  pooling", f"{usage['pooling']:,}", "elements are summed before any weight"])
    screen.print(output.facts(rows))
