"""`syno rules`: the catalogue of rules."""

from __future__ import annotations

from typing import Any

import click

from syno.cli import framework, output
from syno.cli.commands import rules_check, rules_effect


@framework.group(
    name="rules",
    examples=[
        ("all rules, in the order in which they are asked", "syno rules list"),
        ("what one refuses, why, and when", "syno rules show R6a"),
        ("for programs", "syno rules list --json"),
        ("rules of one's own, tried out on random graphs", "syno rules check my_rules.py"),
        (
            "what each saves",
            "syno rules effect --preset paper/resnet18 --depth 4",
        ),
        ("a search without one", "syno enumerate --preset paper/resnet18 --depth 4 --rule R6a=off"),
    ],
)
def command() -> None:
    """Show the rules by which a search refuses steps.

    Exact rules refuse what has an equal form elsewhere, approximate ones what has a near-equal
    form, restrictions what a specification leaves out on purpose. `--rule ID=off` switches one off
    wherever operators are listed.
    """


@framework.command(
    name="list",
    examples=[
        ("as a table", "syno rules list"),
        ("for programs", "syno rules list --json"),
        ("restrictions alone", "syno rules list --kind restriction"),
    ],
)
@click.option(
    "--kind",
    type=click.Choice(["exact", "approximate", "restriction"]),
    help="Rules of this kind only.",
)
@output.json_option
def list_command(kind: str | None, as_json: bool) -> None:
    """List the rules: id, name, kind, status, and what each refuses."""
    from syno.space.rules import list_rules

    found = [rule for rule in list_rules() if kind in (None, rule.kind)]
    if as_json:
        output.print_json([_as_json(rule) for rule in found])
        return
    rows = [[r.id, r.name, r.kind, r.status, r.doc["What"]] for r in found]
    kinds = [("id", "left"), ("name", "left"), ("kind", "left"), ("status", "left")]
    output.console().print(output.table([*kinds, ("refuses", "fold")], rows))


@framework.command(
    name="show",
    examples=[
        ("by id", "syno rules show R6a"),
        ("by name, for programs", "syno rules show view-above-share --json"),
    ],
)
@click.argument("rule")
@output.json_option
def show_command(rule: str, as_json: bool) -> None:
    """Print what a rule refuses, why, when, how sound it is, and an example.

    RULE is an id or a name, as `syno rules list` prints them.
    """
    from syno.space.rules import describe_rule

    found = describe_rule(rule)
    if as_json:
        output.print_json(_as_json(found))
        return
    screen = output.console()
    screen.print(output.heading(f"{found.id} {found.name}", f", {found.kind}"))
    rows = [[f"{heading}:", text] for heading, text in found.doc.items()]
    screen.print(output.facts(rows))


def _as_json(rule: Any) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "kind": rule.kind,
        "status": rule.status,
        "doc": rule.doc,
    }


command.add_command(list_command)
command.add_command(show_command)
command.add_command(rules_check.command)
command.add_command(rules_effect.command)
