"""`syno rules effect`: what each rule saves in a specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.space.rule_effects import Effect


@framework.command(
    name="effect",
    examples=[
        ("of all rules", "syno rules effect --preset paper/resnet18 --depth 4"),
        (
            "of two of them, for programs",
            "syno rules effect --preset paper/resnet18 --depth 5 --only R6a --only R7 --json",
        ),
        ("as a table of a document", "syno rules effect --preset paper/gpt2 --depth 3 --markdown"),
    ],
)
@options.specification_options
@options.bindings_option
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    help="Primitives in an operator, at most. [--max-depth]",
)
@click.option(
    "--only", multiple=True, metavar="ID", help="A rule to switch off; repeat. [all, in turn]"
)
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    default=2_000_000,
    show_default=True,
    help="Partial graphs to visit in each listing.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="The counts do not depend on it. [as many as there are cores]",
)
@click.option("--markdown", is_flag=True, help="Print the table in Markdown.")
@output.json_option
@options.limit_options
def command(
    depth: int | None,
    only: Sequence[str],
    max_nodes: int,
    threads: int | None,
    markdown: bool,
    as_json: bool,
    **named: Any,
) -> int:
    """List a specification with each rule off in turn, and count what it saves.

    Exact rules save graphs and structures and may not change the operators, approximate rules keep
    one of near-equal operators, restrictions leave operators out on purpose. Exact rules are
    counted where all approximate ones are off. `more` and `fewer` compare semantic keys; `repeats`
    are operators under a further key that compute what a listed one does, which an exact rule
    catches and the key does not. The exit code is 1 when an exact rule changes the operators.
    """
    from syno.space.rule_effects import rule_effects
    from syno.space.rules import list_rules

    specification = options.required_specification(**named)
    wanted = options.checked_depth(depth, specification)
    found: list[Effect] = []
    count = len(only or list_rules()) + 2
    with output.progress("listing", count, remaining=False) as move:
        effects = rule_effects(
            specification,
            wanted,
            rules=only or None,
            max_nodes=max_nodes,
            threads=threads or 0,
            progress=lambda what, done: move(done, what),
        )
        found.extend(effects)
    if as_json:
        output.print_json({"depth": wanted, "effects": [effect.as_json() for effect in found]})
    elif markdown:
        output.echo(_markdown(found))
    else:
        columns = [("", "left"), ("kind", "left"), *((name, "right") for name in _COUNTS)]
        output.console().print(output.table(columns, [_row(effect) for effect in found]))
    changed = [e.rule for e in found if e.kind == "exact" and (e.more or e.fewer)]
    if changed:
        output.say(f"exact rules that change the operators: {', '.join(map(str, changed))}")
        return framework.NEGATIVE
    return framework.OK


_COUNTS = ("graphs", "structures", "operators", "more", "fewer", "repeats")


def _row(effect: Effect) -> list[str]:
    what = f"{effect.rule} {effect.name} off" if effect.rule else "all rules"
    if effect.rule is None and effect.without:
        what = f"all {effect.without} rules off"
    if not effect.exhausted:
        what += " (budget spent)"
    counts = [effect.graphs, effect.structures, effect.operators]
    changes = [effect.more, effect.fewer, effect.repeats]
    return [
        what,
        effect.kind,
        *(f"{n:,}" for n in counts),
        *(f"{n:,}" if n else "" for n in changes),
    ]


def _markdown(effects: list[Effect]) -> str:
    lines = ["| | kind | " + " | ".join(_COUNTS) + " |", "| --- | --- |" + " ---: |" * len(_COUNTS)]
    lines += ["| " + " | ".join(_row(effect)) + " |" for effect in effects]
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines)
