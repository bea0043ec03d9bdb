"""`syno explain`: how a search builds an operator."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util.options import Options, group, required
from syno.cli import framework, output
from syno.operands.options import Operand
from syno.operators.summary import operator_summary
from syno.space.specification_options import NamedSpecification, Rules


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

    The command prints the path from the output to the input. For each step, it prints how many
    steps were possible there, and which other steps of the operator were not possible there, and
    why: this determines the order of the path. It then prints the rules that rejected other steps
    along the path, the budgets and constraints that the operator uses, its costs and its drawing.

    OP is a file with an operator's text, JSON or index notation, - for standard input, the text
    itself, or the start of a key with --store. The exit code is 1 if no search finds the operator;
    `syno why-not` then prints the reasons.
    """
    from syno.report.tree import tree
    from syno.space.explanation import explain, rules_along
    from syno.space.sections import explanation_sections

    operator, wanted = given.found.explained(given.op, given.named)
    found = explain(operator, wanted, rules_off=given.rules.off, rules=given.rules.added)
    if given.as_json:
        output.print_json(operator_summary(operator) | found | {"rules": rules_along(found)})
    else:
        output.sections(explanation_sections(operator, found))
        output.paragraph("\nDrawing", tree(operator.to_json()))
    return framework.OK if found["listed"] else framework.NEGATIVE
