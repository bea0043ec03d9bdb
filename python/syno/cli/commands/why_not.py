"""`syno why-not`: why a specification rejects an operator."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util.options import Options, described, group, option, required
from syno.cli import framework, output
from syno.operands.options import Operand
from syno.space.options import BUDGETS, MAX_NODES
from syno.space.specification_options import NamedSpecification, Rules


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    op: str = required("", names="OP")
    named: NamedSpecification = group(NamedSpecification)
    found: Operand = group(Operand, without=("preset",))
    rules: Rules = group(Rules)
    max_nodes: int = described(
        BUDGETS,
        "max_nodes",
        MAX_NODES,
        doc="Maximum number of partial graphs to enumerate to find an equal operator.",
        minimum=0,
    )
    max_seconds: float = option(
        "Time limit of this enumeration in seconds, and of the search for changes.", 10.0, minimum=0
    )
    as_json: bool = output.as_json()


@framework.command("why-not", _Arguments)
def command(given: _Arguments) -> int:
    """Print why a specification rejects an operator: budgets, constraints, rules and layers.

    If a rule rejects the operator because the space has an equal operator, the command prints that
    operator. It also searches for the smallest change of budgets, constraints and rules that admits
    the operator itself, and prints a change only if it has tried it successfully.

    OP is as in `syno explain`. The exit code is 0 if the operator or an equal one is in the space,
    and 1 if it is not.
    """
    from syno.space.explanation import why_not
    from syno.space.sections import explanation_json, obstacle_sections

    operator, wanted = given.found.explained(given.op, given.named)
    found = why_not(
        operator,
        wanted,
        rules_off=given.rules.off,
        rules=given.rules.added,
        max_nodes=given.max_nodes,
        max_seconds=given.max_seconds,
    )
    if given.as_json:
        output.print_json(explanation_json(operator, found))
    else:
        output.sections(obstacle_sections(operator, found))
    return framework.OK if found["admitted"] else framework.NEGATIVE
