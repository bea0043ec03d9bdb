"""`syno rules`: the catalogue of rules."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util.options import Options, option, required
from syno._util.tables import Table
from syno.cli import framework, output


@framework.group("rules", "rules_check", "rules_effect")
def command() -> None:
    """List, show and check the rules by which a search rejects steps.

    Exact rules reject operators that have another, equal form. Approximate rules reject operators
    that have a nearly equal form. Restrictions reject operators that a specification excludes on
    purpose. Commands that enumerate operators switch a rule off with `--rule ID=off`.
    """


@dataclass(frozen=True, kw_only=True)
class _ListArguments(Options):
    kind: str | None = option(
        "Print only rules of this kind.", None, choices=("exact", "approximate", "restriction")
    )
    as_json: bool = output.as_json()


@framework.command("rules list", _ListArguments)
def list_command(given: _ListArguments) -> None:
    """List the rules: id, name, kind, status, and what each of them rejects."""
    from syno.space.rules import list_rules

    found = [rule for rule in list_rules() if given.kind in (None, rule.kind)]
    if given.as_json:
        output.print_json([rule.as_json() for rule in found])
        return
    output.show(
        Table.of(
            found,
            ("id", lambda rule: rule.id),
            ("name", lambda rule: rule.name),
            ("kind", lambda rule: rule.kind),
            ("status", lambda rule: rule.status),
            ("rejects~", lambda rule: rule.doc["What"]),
        )
    )


@dataclass(frozen=True, kw_only=True)
class _ShowArguments(Options):
    rule: str = required("", names="RULE")
    as_json: bool = output.as_json()


@framework.command("rules show", _ShowArguments)
def show_command(given: _ShowArguments) -> None:
    """Print what a rule rejects, why and when, its soundness, and an example.

    RULE is an id or a name, as `syno rules list` prints them.
    """
    from syno.space.rules import describe_rule

    found = describe_rule(given.rule)
    if given.as_json:
        output.print_json(found.as_json())
        return
    screen = output.console()
    screen.print(output.heading(f"{found.id} {found.name}", f", {found.kind}"))
    rows = [[f"{heading}:", text] for heading, text in found.doc.items()]
    screen.print(output.facts(rows))
