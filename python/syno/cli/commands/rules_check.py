"""`syno rules check`: rules tried out on random graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno import Rule
    from syno.space.rule_check import RuleCheck


@framework.command(
    name="check",
    examples=[
        ("rules of one's own", "syno rules check my_rules.py"),
        ("a rule of the catalogue, with more trials", "syno rules check R6a --trials 500"),
        (
            "in a specification of one's own",
            "syno rules check my_rules.py --input '[C_in, H]' --output '[C_out, H]' \\\n"
            "      --primary 'C_in: 2' --primary 'C_out: 2' --primary 'H: 1' \\\n"
            "      --coefficient 'k=3: 1' --binding C_in=4,C_out=4,H=12",
        ),
    ],
)
@click.argument("rule")
@options.specification_options
@options.bindings_option
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Refusals to compare, each of another graph.",
)
@click.option(
    "--max-graphs",
    type=click.IntRange(min=1),
    default=2_000,
    show_default=True,
    help="Random graphs to grow, at most.",
)
@options.seed_option
@output.json_option
@options.limit_options
def command(rule: str, trials: int, max_graphs: int, seed: int, as_json: bool, **named: Any) -> int:
    """Compare what a rule refuses on random graphs with what it keeps instead.

    RULE is a Python file with rules of your own, or the id or name of a rule. Both operators are
    computed with random data and weights: an exact rule must keep an equal one, an approximate
    rule is told what share of the elements differs, a restriction what it refuses. Without a
    specification, a small one with two dimensions is taken.

    The exit code is 1 when an exact rule keeps another operator, or a rule refuses nothing.
    """
    from syno.space.rule_check import check_rule, small_specification
    from syno.space.rules import describe_rule, load_rules, reported

    specification = options.named_specification(**named) or small_specification(named["limits"])
    rules: list[Rule | str]
    if rule.endswith(".py") or Path(rule).exists():
        rules = [reported(one) for one in load_rules(rule)]
    else:
        rules = [describe_rule(rule).id]
    found = []
    with output.progress("refusals", trials * len(rules), remaining=False) as move:
        for done, one in enumerate(rules):

            def progress(compared: int, graphs: int, before: int = done * trials) -> bool:
                move(before + compared, f"{graphs:,} graphs")
                return True

            found.append(
                check_rule(
                    one,
                    specification,
                    trials=trials,
                    max_graphs=max_graphs,
                    seed=seed,
                    progress=progress,
                )
            )
    if as_json:
        output.print_json([check.as_json() for check in found])
    else:
        for check in found:
            _print(check)
    good = all(check.sound and check.compared for check in found)
    return framework.OK if good else framework.NEGATIVE


def _print(check: RuleCheck) -> None:
    screen = output.console()
    screen.print(output.heading(f"{check.rule}", f", {check.kind}: {_verdict(check)}"))
    rows = [
        ["  refused", f"{check.refused:,} of {check.asked:,} steps, {check.graphs:,} graphs"],
    ]
    if check.kind != "restriction":
        rows += [
            ["  compared", f"{check.compared:,}"],
            ["  equal", f"{check.equal_keys:,} by key, {check.equal_values:,} by values"],
            ["  different", f"{check.different:,}"],
            ["  undecided", f"{check.undecided:,}"],
            [
                "  elements that differ",
                f"{check.mean_share:.1%} on average, {check.most_share:.1%} at most",
            ],
        ]
    screen.print(output.facts(rows))
    if check.refused_graph and (check.different or check.kind == "restriction"):
        screen.print("  refuses, for example")
        screen.print(output.indented(check.refused_graph, 4), soft_wrap=True)
        if check.kept_graph:
            screen.print("  and keeps")
            screen.print(output.indented(check.kept_graph, 4), soft_wrap=True)


def _verdict(check: RuleCheck) -> str:
    if check.compared == 0:
        return "refused nothing: other shapes, sizes or more graphs may meet its pattern"
    if check.kind == "restriction":
        return "leaves out what it refuses"
    if check.kind == "approximate":
        return f"keeps operators that differ on {check.mean_share:.1%} of the elements"
    if check.different:
        return f"is not exact: {check.different:,} operators of {check.compared:,} are others"
    return f"no difference in {check.compared:,} operators"
