"""`syno why-not`: what keeps an operator out of a specification."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util.options import Options, described, group, option, required
from syno.cli import framework, output
from syno.operands.options import Operand
from syno.space.named import NamedSpecification, Rules
from syno.space.options import BUDGETS, MAX_NODES


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
        doc="Partial graphs to list in search of an equal operator.",
        minimum=0,
    )
    max_seconds: float = option(
        "Time for that, and as much for changes of the specification.", 10.0, minimum=0
    )
    as_json: bool = output.as_json()


@framework.command("why-not", _Arguments)
def command(given: _Arguments) -> int:
    """Print what keeps an operator out of a specification: budgets, limits, rules, layers.

    When a rule refuses it because an equal operator stays, that one is printed. The smallest change
    of budgets, limits and rules that admits the operator itself is looked for and tried: it is
    printed only when the operator is found under it.

    OP is as in `syno explain`. The exit code is 0 when the
    operator, or an equal one, is in the space, and 1 when it is not.
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
