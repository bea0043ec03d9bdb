"""`syno rules effect`: the effect of each rule on an enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util.options import Options, group, option
from syno.cli import framework, output
from syno.cli.results import print_results
from syno.space.options import EFFECT_NODES, depth, max_nodes, threads
from syno.space.specification_options import NamedSpecification, checked_depth
from syno.space.tables import effects_table

if TYPE_CHECKING:
    from syno.space.rule_effects import Effect


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    named: NamedSpecification = group(NamedSpecification)
    depth: int | None = depth()
    only: tuple[str, ...] = option(
        "Rule to switch off; can be repeated.",
        cast(tuple[str, ...], ()),
        unset="all, one after the other",
        metavar="ID",
    )
    max_nodes: int = max_nodes(EFFECT_NODES)
    threads: int | None = threads()
    markdown: bool = option("Print the table as Markdown.", False)
    as_json: bool = output.as_json()


@framework.command("rules effect", _Arguments)
def command(given: _Arguments) -> int:
    """Enumerate a specification with each rule switched off in turn, and count the differences.

    Exact rules save graphs and structures and must not change the operators. Approximate rules keep
    one of several nearly equal operators. Restrictions exclude operators on purpose. Exact rules
    are measured with all approximate rules off. `more` and `fewer` compare semantic keys. `repeats`
    are operators with another key that compute the same as an enumerated operator: the exact rule
    recognizes them, and the key does not. The exit code is 1 if an exact rule changes the
    operators.
    """
    from syno.space.rule_effects import rule_effects
    from syno.space.rules import list_rules

    specification = given.named.required()
    wanted = checked_depth(given.depth, specification)
    found: list[Effect] = []
    count = len(given.only or list_rules()) + 2
    with output.progress("enumerations", count, remaining=False) as move:
        effects = rule_effects(
            specification,
            wanted,
            rules=given.only or None,
            max_nodes=given.max_nodes,
            threads=given.threads or 0,
            progress=lambda what, done: move(done, what),
        )
        found.extend(effects)
    if given.as_json:
        listed = [effect.as_json() for effect in found]
        print_results({"depth": wanted, "effects": listed}, threads=given.threads)
    elif given.markdown:
        output.echo(effects_table(found).markdown())
    else:
        output.show(effects_table(found))
    changed = [e.rule for e in found if e.kind == "exact" and (e.more or e.fewer)]
    if changed:
        output.say(f"exact rules that change the operators: {', '.join(map(str, changed))}")
        return framework.NEGATIVE
    return framework.OK
