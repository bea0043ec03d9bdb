"""`syno why-not`: what keeps an operator out of a specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output
from syno.cli.commands import explain as explaining
from syno.cli.operand import explained_operator

if TYPE_CHECKING:
    from rich.console import Console

    from syno import Operator, Rule
    from syno._core import Relaxation, Usage
    from syno.space.explanation import KeptOperator, WhyNot


@framework.command(
    name="why-not",
    examples=[
        (
            "why a search does not list the operator in a file",
            "syno why-not op.txt --preset paper/resnet18 --max-depth 3",
        ),
        (
            "for programs, without looking for equal operators in a listing",
            "syno why-not op.txt --preset paper/resnet18 --max-nodes 0 --json",
        ),
        (
            "of shapes of one's own, the operator on the line",
            "syno why-not 'syno operator 1\n"
            "      out [C_out, H]\n"
            "      in [C_in, H]\n"
            "      reduce C_in -> i\n"
            "      contract o0:drop i:keep\n"
            "      match i o1' --input '[C_in, H]' --output '[C_out, H]' --primary 'C_in: 1' \\\n"
            "      --primary 'C_out: 1' --primary 'H: 0' --binding C_in=16,C_out=16,H=32",
        ),
    ],
)
@click.argument("op")
@options.specification_options
@options.bindings_option
@options.found_options
@options.rule_options
@click.option(
    "--max-nodes",
    type=click.IntRange(min=0),
    default=20_000,
    show_default=True,
    help="Partial graphs to list in search of an equal operator.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="Time for that, and as much for changes of the specification.",
)
@output.json_option
@options.limit_options
def command(
    op: str,
    store: str | None,
    study: str | None,
    rules_off: list[str],
    rules: list[Rule],
    max_nodes: int,
    max_seconds: float,
    as_json: bool,
    **named: Any,
) -> int:
    """Print what keeps an operator out of a specification: budgets, limits, rules, layers.

    When a rule refuses it because an equal operator stays, that one is printed. The smallest change
    of budgets, limits and rules that admits the operator itself is looked for and tried: it is
    printed only when the operator is found under it.

    OP is as in `syno explain`. The exit code is 0 when the
    operator, or an equal one, is in the space, and 1 when it is not.
    """
    from syno.space.explanation import why_not

    operator, wanted = explained_operator(op, store=store, study=study, **named)
    found = why_not(
        operator,
        wanted,
        rules_off=rules_off,
        rules=rules,
        max_nodes=max_nodes,
        max_seconds=max_seconds,
    )
    if as_json:
        output.print_json(_as_json(operator, found))
    else:
        _print(operator, found)
    return framework.OK if found["admitted"] else framework.NEGATIVE


def _as_json(operator: Operator, found: WhyNot) -> dict[str, Any]:
    from syno.cli.commands.show import described

    value = {**described(operator), **found}
    if found["kept"] is not None:
        kept = found["kept"]
        value["kept"] = described(kept["operator"]) | {
            "rules": kept["rules"],
            "near": kept["near"],
        }
    value["relaxations"] = [{**r, "option": _option(r)} for r in found["relaxations"]]
    return value


def _print(operator: Operator, found: WhyNot) -> None:
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


def _exceeded(screen: Console, usage: Usage) -> None:
    budgets = [b for b in usage["budgets"] if not b["within"]]
    limits = [u for u in usage["limits"] if not u["within"]]
    if not budgets and not limits:
        return
    rows = [[f"  budget of {b['variable']}", f"{b['used']} of {b['budget']}"] for b in budgets]
    rows += [[f"  {u['limit']}", explaining.amount(u)] for u in limits]
    screen.print(output.heading("Beyond the specification"))
    screen.print(output.facts(rows))
    screen.print()


def _kept(screen: Console, kept: KeptOperator) -> None:
    by = ", then ".join(kept["rules"]) if kept["rules"] else "found in a listing"
    # A near-equal operator differs on some outputs: `syno rules show` says on which.
    what = "a near-equal operator" if kept["near"] else "the same operator"
    screen.print(output.heading("Kept instead", f", {what} ({by})"))
    screen.print(output.indented(kept["operator"].formula(), 2), soft_wrap=True)
    screen.print(output.indented(kept["operator"].text, 4), soft_wrap=True)
    screen.print()


def _changes(screen: Console, found: WhyNot) -> None:
    if not found["relaxations"]:
        screen.print(
            output.heading("No change", " of budgets, limits or rules was found that admits it")
        )
        if found["no_relaxation"]:
            screen.print(output.indented(f"what remains: {found['no_relaxation']}", 2))
        return
    screen.print(output.heading("The smallest change that admits it as it is"))
    rows = [
        [f"  {_what(r)}", f"from {r['from']} to {r['to']}", _option(r)]
        for r in found["relaxations"]
    ]
    screen.print(output.facts(rows))


def _what(change: Relaxation) -> str:
    return {"budget": "budget of ", "limit": "", "rule": "rule "}[change["kind"]] + change["name"]


def _option(change: Relaxation) -> str:
    """The option of the command line that makes the change."""
    if change["kind"] == "rule":
        return f"--rule {change['name']}=off"
    if change["kind"] == "limit":
        return f"--{change['name'].replace('_', '-')} {change['to']}"
    return f"a variable '{change['name']}: {change['to']}'"
