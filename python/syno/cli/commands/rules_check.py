"""`syno rules check`: tests of rules on random graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.options import Options, group, option, required
from syno.cli import framework, options, output
from syno.space.options import CHECK_GRAPHS, CHECK_TRIALS
from syno.space.specification_options import NamedSpecification

if TYPE_CHECKING:
    from syno import Rule


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    rule: str = required("", names="RULE")
    named: NamedSpecification = group(NamedSpecification)
    trials: int = option(
        "Number of rejections to compare, each of another graph.", CHECK_TRIALS, minimum=1
    )
    max_graphs: int = option("Maximum number of random graphs to build.", CHECK_GRAPHS, minimum=1)
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("rules check", _Arguments)
def command(given: _Arguments) -> int:
    """Compare what a rule rejects on random graphs with what it keeps instead.

    RULE is a Python file with custom rules, or the id or name of a rule. Both operators are
    computed with random data and weights. An exact rule must keep an equal operator. For an
    approximate rule, the command prints the fraction of elements that differ; for a restriction,
    what it rejects. Without a specification, the command uses a small one with two dimensions.

    The exit code is 1 if an exact rule keeps a different operator, or if a rule rejects nothing.
    """
    from syno.space.rule_check import check_rule, small_specification
    from syno.space.rules import describe_rule, load_rules, reported
    from syno.space.sections import check_section

    specification = given.named.specification() or small_specification(dict(given.named.limits))
    rules: list[Rule | str]
    if given.rule.endswith(".py") or Path(given.rule).exists():
        rules = [reported(one) for one in load_rules(given.rule)]
    else:
        rules = [describe_rule(given.rule).id]
    found = []
    with output.progress("rejections", given.trials * len(rules), remaining=False) as move:
        for done, one in enumerate(rules):

            def progress(compared: int, graphs: int, before: int = done * given.trials) -> bool:
                move(before + compared, f"{graphs:,} graphs")
                return True

            found.append(
                check_rule(
                    one,
                    specification,
                    trials=given.trials,
                    max_graphs=given.max_graphs,
                    seed=given.seed,
                    progress=progress,
                )
            )
    if given.as_json:
        output.print_json([check.as_json() for check in found])
    else:
        output.sections(map(check_section, found))
    good = all(check.sound and check.compared for check in found)
    return framework.OK if good else framework.NEGATIVE
