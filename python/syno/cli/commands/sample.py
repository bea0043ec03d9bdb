"""`syno sample`: operators of a specification, without training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, described, group, option
from syno.cli import enumeration, framework, options, output
from syno.operators.summary import costed_summary
from syno.space.named import NamedSpecification, Rules
from syno.space.options import BUDGETS, MAX_NODES
from syno.space.rejections import rejection_tree

if TYPE_CHECKING:
    from syno import Operator, Sampler, Specification


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    named: NamedSpecification = group(NamedSpecification)
    count: int = option("How many to draw.", 20, minimum=1)
    seed: int = options.seed()
    max_nodes: int = described(BUDGETS, "max_nodes", MAX_NODES)
    rules: Rules = group(Rules)
    text: bool = option("Print the text of the first one only.", False)
    stats: bool = options.stats()
    as_json: bool = output.as_json()


@framework.command("sample", _Arguments)
def command(given: _Arguments) -> int:
    """Draw distinct operators of a specification and print formula, MACs and parameters.

    MACs and parameters are of all layers of the specification together, at batch size 1. The exit
    code is 1 when there are fewer operators than asked for.
    """
    specification = given.named.required()
    sampler, drawn = _draw(given, specification)
    if given.text:
        output.echo(drawn[0].text, nl=False)
        return framework.OK
    statistics = sampler.statistics()
    if given.as_json:
        listed = [costed_summary(operator) for operator in drawn]
        value = {"operators": listed, "statistics": statistics}
        if given.stats:
            value["rejections"] = rejection_tree(statistics["rejections"])
        output.print_json(value)
    else:
        enumeration.print_operators(drawn)
        output.console().print(
            f"\n{len(drawn)} of {statistics['operators']:,} operators "
            f"from {statistics['nodes']:,} partial graphs; complete up to depth "
            f"{statistics['complete_depth']}"
        )
        if given.stats:
            enumeration.print_rejections(statistics["rejections"])
    if len(drawn) < given.count:
        output.say(f"only {len(drawn)} of {given.count}: --max-nodes or larger limits reach more")
        return framework.NEGATIVE
    return framework.OK


def _draw(given: _Arguments, specification: Specification) -> tuple[Sampler, list[Operator]]:
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
        sampler.sample()  # says why there is none
        raise UserError("no operator connects the shapes")
    return sampler, [sampler.sample() for _ in range(min(given.count, found))]
