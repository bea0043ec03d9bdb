"""`syno sample`: operators of a specification, without training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from syno._errors import UserError
from syno.cli import framework, options, output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno import Operator, Sampler, Specification


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
@click.option("--text", is_flag=True, help="Print the text of the first one only.")
@click.option("--rejections", is_flag=True, help="Also print what was rejected, by reason.")
@output.json_option
@options.limit_options
def command(
    count: int,
    seed: int,
    max_nodes: int,
    text: bool,
    rejections: bool,
    as_json: bool,
    **named: Any,
) -> int:
    """Draw distinct operators of a specification and print formula, MACs and parameters.

    MACs and parameters are of all layers of the specification together, at batch size 1. The exit
    code is 1 when there are fewer operators than asked for.
    """
    sampler, drawn = _draw(options.required_specification(**named), count, seed, max_nodes)
    if text:
        click.echo(drawn[0].text, nl=False)
        return framework.OK
    if as_json:
        listed = [_as_json(operator) for operator in drawn]
        output.print_json({"operators": listed, "statistics": sampler.statistics()})
    else:
        _print(drawn, sampler.statistics(), rejections=rejections)
    if len(drawn) < count:
        output.say(f"only {len(drawn)} of {count}: --max-nodes or larger limits reach more")
        return framework.NEGATIVE
    return framework.OK


def _draw(
    specification: Specification, count: int, seed: int, max_nodes: int
) -> tuple[Sampler, list[Operator]]:
    from syno import Sampler

    with output.progress("composing operators", max_nodes) as move:

        def watch(depth: int, nodes: int, operators: int) -> bool:
            move(nodes, f"depth {depth}, {operators:,} operators")
            return True

        sampler = Sampler.from_specification(
            specification, seed=seed, max_nodes=max_nodes, progress=watch
        )
        found = len(sampler.operators)
    if found == 0:
        sampler.sample()  # says why there is none
        raise UserError("no operator connects the shapes")
    return sampler, [sampler.sample() for _ in range(min(count, found))]


def _as_json(operator: Operator) -> dict[str, Any]:
    from syno.cli.show import described

    return described(operator) | {"macs": operator.macs(), "params": operator.params()}


def _print(drawn: list[Operator], statistics: dict[str, Any], *, rejections: bool) -> None:
    screen = output.console()
    for number, operator in enumerate(drawn, start=1):
        facts = (
            f"{number:>4}  [bold]{operator.key[:8]}[/bold]  {fmt.count(operator.macs()):>7} MACs"
            f"  {fmt.count(operator.params()):>7} params  {fmt.primitives(operator.primitives())}"
        )
        screen.print(facts)
        screen.print(output.indented(operator.formula(), 6), soft_wrap=True)
    screen.print(
        f"\n{len(drawn)} of {statistics['operators']:,} operators "
        f"from {statistics['nodes']:,} partial graphs; complete up to depth "
        f"{statistics['complete_depth']}"
    )
    if rejections:
        counts = [[reason, f"{n:,}"] for reason, n in statistics["rejections"].items()]
        screen.print(output.table([("rejected because", "left"), ("times", "right")], counts))
