"""`syno sample`: operators of a specification, without training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno.cli import framework, listed, options, output, refused
from syno.space.rejections import rejection_tree

if TYPE_CHECKING:
    from syno import Operator, Rule, Sampler, Specification
    from syno.network.sampler import Statistics


@framework.command(
    name="sample",
    examples=[
        ("of a setting of the paper", "syno sample --preset paper/resnet18 --count 20 --seed 0"),
        (
            "of shapes of one's own",
            "syno sample --input '[C_in, H]' --output '[C_out, H]' --primary 'C_in: 2' \\\n"
            "      --primary 'C_out: 2' --primary 'H: 1' --coefficient 'k=3: 1' \\\n"
            "      --binding C_in=16,C_out=16,H=32",
        ),
        (
            "the text of one, for other commands",
            "syno sample --preset paper/resnet18 --text > op.txt",
        ),
    ],
)
@options.specification_options
@options.bindings_option
@click.option(
    "--count", type=click.IntRange(min=1), default=20, show_default=True, help="How many to draw."
)
@options.seed_option
@options.nodes_option
@options.rule_options
@click.option("--text", is_flag=True, help="Print the text of the first one only.")
@options.stats_option
@output.json_option
@options.limit_options
def command(
    count: int,
    seed: int,
    max_nodes: int,
    text: bool,
    rules_off: list[str],
    rules: list[Rule],
    stats: bool,
    as_json: bool,
    **named: Any,
) -> int:
    """Draw distinct operators of a specification and print formula, MACs and parameters.

    MACs and parameters are of all layers of the specification together, at batch size 1. The exit
    code is 1 when there are fewer operators than asked for.
    """
    specification = options.required_specification(**named)
    sampler, drawn = _draw(specification, count, seed, max_nodes, rules_off, rules)
    if text:
        output.echo(drawn[0].text, nl=False)
        return framework.OK
    if as_json:
        statistics = sampler.statistics()
        value = {"operators": listed.as_json(drawn), "statistics": statistics}
        if stats:
            value["rejections"] = rejection_tree(statistics["rejections"])
        output.print_json(value)
    else:
        _print(drawn, sampler.statistics(), stats=stats)
    if len(drawn) < count:
        output.say(f"only {len(drawn)} of {count}: --max-nodes or larger limits reach more")
        return framework.NEGATIVE
    return framework.OK


def _draw(
    specification: Specification,
    count: int,
    seed: int,
    max_nodes: int,
    rules_off: list[str],
    rules: list[Rule],
) -> tuple[Sampler, list[Operator]]:
    from syno import Sampler

    with output.progress("composing operators", max_nodes) as move:

        def watch(depth: int, nodes: int, operators: int) -> bool:
            move(nodes, f"depth {depth}, {operators:,} operators")
            return True

        sampler = Sampler.from_specification(
            specification,
            seed=seed,
            max_nodes=max_nodes,
            rules_off=rules_off,
            rules=rules,
            progress=watch,
        )
        found = len(sampler.operators)
    if found == 0:
        sampler.sample()  # says why there is none
        raise UserError("no operator connects the shapes")
    return sampler, [sampler.sample() for _ in range(min(count, found))]


def _print(drawn: list[Operator], statistics: Statistics, *, stats: bool) -> None:
    screen = output.console()
    listed.show(screen, drawn)
    screen.print(
        f"\n{len(drawn)} of {statistics['operators']:,} operators "
        f"from {statistics['nodes']:,} partial graphs; complete up to depth "
        f"{statistics['complete_depth']}"
    )
    if stats:
        screen.print(refused.drawn(statistics["rejections"]))
