"""`syno why-not`: what keeps an operator out of a specification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util.options import Options, described, group, option, required
from syno.cli import framework, output
from syno.cli.commands import explain as explaining
from syno.operands.options import Operand
from syno.operators.summary import operator_summary
from syno.space.named import NamedSpecification, Rules
from syno.space.options import BUDGETS, MAX_NODES
from syno.space.usage import amount, changed, relaxing_option

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
        output.print_json(_as_json(operator, found))
    else:
        _print(operator, found)
    return framework.OK if found["admitted"] else framework.NEGATIVE


def _as_json(operator: Operator, found: Found) -> Found:
    value = operator_summary(operator) | found
    if found["kept"] is not None:
        kept = found["kept"]
        value["kept"] = operator_summary(kept["operator"]) | {
            "rules": kept["rules"],
            "near": kept["near"],
        }
    value["relaxations"] = [r | {"option": relaxing_option(r)} for r in found["relaxations"]]
    return value


def _print(operator: Operator, found: Found) -> None:
    explanation = found["explanation"]
    screen = output.console()
    screen.print(output.heading(f"operator {operator.key}"))
    screen.print(output.indented(operator.formula(), 2), soft_wrap=True)
    screen.print()
    if explanation["listed"]:
        screen.print("nothing keeps it out: `syno explain` prints its path")
    else:
        explaining.against(screen, explanation)
        _exceeded(screen, explanation["usage"])
    if found["kept"] is not None:
        _kept(screen, found["kept"])
    if not explanation["listed"]:
        _changes(screen, found)


def _exceeded(screen: Console, usage: Found) -> None:
    budgets = [b for b in usage["budgets"] if not b["within"]]
    limits = [u for u in usage["limits"] if not u["within"]]
    if not budgets and not limits:
        return
    rows = [[f"  budget of {b['variable']}", f"{b['used']} of {b['budget']}"] for b in budgets]
    rows += [[f"  {u['limit']}", amount(u)] for u in limits]
    screen.print(output.heading("Beyond the specification"))
    screen.print(output.facts(rows))
    screen.print()


def _kept(screen: Console, kept: Found) -> None:
    by = ", then ".join(kept["rules"]) if kept["rules"] else "found in a listing"
    # A near-equal operator differs on some outputs: `syno rules show` says on which.
    what = "a near-equal operator" if kept["near"] else "the same operator"
    screen.print(output.heading("Kept instead", f", {what} ({by})"))
    screen.print(output.indented(kept["operator"].formula(), 2), soft_wrap=True)
    screen.print(output.indented(kept["operator"].text, 4), soft_wrap=True)
    screen.print()


def _changes(screen: Console, found: Found) -> None:
    if not found["relaxations"]:
        screen.print(
            output.heading("No change", " of budgets, limits or rules was found that admits it")
        )
        if found["no_relaxation"]:
            screen.print(output.indented(f"what remains: {found['no_relaxation']}", 2))
        return
    screen.print(output.heading("The smallest change that admits it as it is"))
    rows = [
        [f"  {changed(r)}", f"from {r['from']} to {r['to']}", relaxing_option(r)]
        for r in found["relaxations"]
    ]
    screen.print(output.facts(rows))
