"""`syno sample`: sample operators of a specification without training them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, described, group, option
from syno.cli import enumeration, framework, options, output
from syno.operators.summary import costed_summary
from syno.space.options import BUDGETS, MAX_NODES
from syno.space.rejections import rejection_tree
from syno.space.specification_options import NamedSpecification, Rules

if TYPE_CHECKING:
    from syno import Operator, Sampler, Specification
    from syno.network.sampler import Statistics


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    named: NamedSpecification = group(NamedSpecification)
    count: int = option("Number of operators to sample.", 20, minimum=1)
    seed: int = options.seed()
    max_nodes: int = described(BUDGETS, "max_nodes", MAX_NODES)
    rules: Rules = group(Rules)
    text: bool = option("Print only the text of the first operator.", False)
    stats: bool = options.stats()
    as_json: bool = output.as_json()


@framework.command("sample", _Arguments)
def command(given: _Arguments) -> int:
    """Sample distinct operators of a specification, and print formula, MACs and parameters.

    MACs and parameters are the sums over all layers of the specification, at batch size 1. The
    exit code is 1 if there are fewer operators than requested.
    """
    specification = enumeration.specification(given.named)
    sampler, sampled = _sample(given, specification)
    if given.text:
        output.echo(sampled[0].text, nl=False)
        return framework.OK
    statistics = sampler.statistics()
    if given.as_json:
        summaries = [costed_summary(operator) for operator in sampled]
        value = {"operators": summaries, "statistics": statistics}
        if given.stats:
            value["rejections"] = rejection_tree(statistics["rejections"])
        output.print_json(value)
    else:
        enumeration.print_operators(sampled)
        output.console().print(
            f"\n{len(sampled)} of {_count(statistics)} "
            f"from {statistics['nodes']:,} partial graphs; complete up to depth "
            f"{statistics['complete_depth']}"
        )
        if given.stats:
            enumeration.print_rejections(statistics["rejections"])
    if len(sampled) < given.count:
        output.say(
            f"only {len(sampled)} of {given.count} operators were found; a larger --max-nodes or "
            "weaker constraints may allow more"
        )
        return framework.NEGATIVE
    return framework.OK


def _count(statistics: Statistics) -> str:
    operators = f"{statistics['operators']:,} operators"
    if "orbits" not in statistics:
        return operators
    return f"{statistics['orbits']:,} orbits of {operators}"


def _sample(given: _Arguments, specification: Specification) -> tuple[Sampler, list[Operator]]:
    from syno import Sampler

    with output.progress("composing operators", given.max_nodes) as move:

        def watch(depth: int, nodes: int, operators: int) -> bool:
            move(nodes, f"depth {depth}, {operators:,} operators")
            return True

        sampler = Sampler.from_specification(
            specification,
            seed=given.seed,
            max_nodes=given.max_nodes,
            rules_off=given.rules.off,
            rules=given.rules.added,
            progress=watch,
        )
        found = len(sampler.operators)
    if found == 0:
        sampler.sample()  # raises the reason
        raise UserError("no operator connects the shapes")
    return sampler, [sampler.sample() for _ in range(min(given.count, found))]
