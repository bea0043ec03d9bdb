"""`syno show`: print one operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util import numbers as fmt
from syno._util.errors import UserError
from syno._util.options import Options, group, option, required
from syno._util.threads import MOST_THREADS
from syno.cli import framework, output
from syno.measure.layer_costs import LayerCosts, add_plans, add_times, layer_costs
from syno.measure.tables import layers_table, plans_table, selection_in_words
from syno.operands.options import Operand
from syno.operands.sizes import checked_sizes, example_sizes
from syno.operators.summary import operator_summary
from syno.report.tree import tree

if TYPE_CHECKING:
    from syno import Operator


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    op: str = required("", names="OP")
    operand: Operand = group(Operand)
    bindings: tuple[str, ...] = option(
        "Sizes of a layer, such as C_in=64,H=28; can be repeated.",
        cast(tuple[str, ...], ()),
        names="--binding",
        metavar="SIZES",
    )
    plans: int | None = option(
        "Print the N cheapest plans.", None, minimum=1, maximum=1000, metavar="N", unset="off"
    )
    fold_weights: bool = option("Allow plans to multiply weights beforehand.", False)
    measure: bool = option("Measure the plans, and print the fastest.", False)
    emitter: str | None = option(
        "Emitter of the code that --measure times: cpp, pytorch.", None, metavar="NAME", unset="cpp"
    )
    threads: int | None = option(
        "Number of threads for --measure.", None, minimum=1, maximum=MOST_THREADS, unset="1"
    )
    again: bool = option("Repeat earlier measurements.", False)
    dot: bool = option("Print only the Graphviz source.", False)
    as_json: bool = output.as_json()


@framework.command("show", _Arguments)
def command(given: _Arguments) -> None:
    """Print an operator: its formula, drawing, text and cost.

    OP is a file with an operator's text, JSON or index notation, - for standard input, the text
    itself, or the start of a key with --store.
    """
    operator = given.operand.load(given.op)
    line = given.operand.line("show", given.op)
    layers = layer_costs(operator, [checked_sizes(operator, b, line) for b in given.bindings])
    if given.fold_weights and given.plans is None:
        raise UserError("--fold-weights requires --plans")
    if given.measure and given.plans is None:
        raise UserError("--measure requires --plans")
    if not given.measure and (
        given.emitter is not None or given.threads is not None or given.again
    ):
        raise UserError("--emitter, --threads and --again require --measure")
    if given.plans is not None:
        _add_plans(given, operator, layers)
    if given.dot:
        output.echo(operator.dot())
    elif given.as_json:
        output.print_json(operator_summary(operator) | {"layers": layers})
    else:
        _print(operator, layers)


def _add_plans(given: _Arguments, operator: Operator, layers: list[LayerCosts]) -> None:
    """Add the cheapest plans of each layer that the operator fits, and their times if requested."""
    if not layers:
        raise UserError(f"plans require the sizes of a layer: use --binding{_such_as(operator)}")
    count, fold = given.plans or 1, given.fold_weights
    add_plans(operator, layers, count, fold_weights=fold)
    if given.measure:
        with output.progress("plans", None, remaining=False) as move:
            add_times(
                operator,
                layers,
                count,
                fold_weights=fold,
                emitter=given.emitter or "cpp",
                threads=given.threads or 1,
                again=given.again,
                progress=lambda remark: move(0, remark),
            )


def _such_as(operator: Operator) -> str:
    example = example_sizes(operator)
    return f", such as --binding {example}" if example else ""


def _print(operator: Operator, layers: list[LayerCosts]) -> None:
    screen = output.console()
    screen.print(output.heading(f"operator {operator.structure}"))
    if operator.key != operator.structure:
        screen.print(f"key         {operator.key}")
    screen.print(f"primitives  {fmt.primitives(operator.primitives())}\n")
    formula, stages = operator.formula(), operator.formula(stages=True)
    for title, text in (
        ("Formula", formula),
        *([("Stages", stages)] if stages != formula else []),
        ("Drawing", tree(operator.to_json())),
        ("Text", operator.text),
    ):
        output.paragraph(title, text)
        screen.print()
    if not layers:
        words = f"The cost depends on the layer: use --binding{_such_as(operator)}"
        screen.print(words, soft_wrap=True)
        return
    output.show(layers_table(layers))
    for layer in layers:
        for number, plan in enumerate(layer.get("plans", []), 1):
            sizes = ", ".join(f"{k}={v}" for k, v in layer["binding"].items())
            screen.print()
            output.paragraph(f"Plan {number}", plan["stages"], f" of {sizes}")
        if "measured" in layer:
            screen.print()
            output.show(plans_table(layer))
            screen.print(selection_in_words(layer["measured"]), soft_wrap=True)
