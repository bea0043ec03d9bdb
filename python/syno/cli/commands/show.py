"""`syno show`: one operator in the terminal."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output
from syno.cli.operand import command_line
from syno.operands import operand
from syno.operands.sizes import checked_sizes, example_sizes

if TYPE_CHECKING:
    from syno import Operator


@framework.command(
    name="show",
    examples=[
        ("an operator that a search has found", "syno show 8e296a06 --store runs.db"),
        (
            "the costs of an operator in a file, under sizes of one's own",
            "syno show op.txt --preset paper/resnet18 --binding C_in=64,C_out=64,H=28",
        ),
        (
            "the three cheapest ways to compute it",
            "syno show op.txt --preset paper/resnet18 --plans 3 --binding C_in=64,C_out=64,H=28",
        ),
        (
            "and how long they take as compiled C++",
            "syno show op.txt --preset paper/resnet18 --plans 4 --measure \\\n"
            "      --binding C_in=64,C_out=64,H=28",
        ),
        ("from a pipe", "syno sample --preset paper/resnet18 --text | syno show -"),
    ],
)
@click.argument("op")
@options.operand_options
@click.option("--binding", "bindings", multiple=True, metavar="SIZES", help="As C_in=64,H=28.")
@click.option("--plans", type=click.IntRange(1, 1000), help="Print the cheapest plans, so many.")
@click.option("--fold-weights", is_flag=True, help="Plans may multiply weights beforehand.")
@click.option("--measure", is_flag=True, help="Time the plans, and say which is the fastest.")
@click.option("--emitter", metavar="NAME", help="Whose code --measure times: cpp, pytorch.")
@click.option(
    "--threads", type=click.IntRange(1, MOST_THREADS), help="That --measure uses. Default: 1."
)
@click.option("--again", is_flag=True, help="Time plans that were timed before, too.")
@click.option("--dot", is_flag=True, help="Print the Graphviz source only.")
@output.json_option
def command(
    op: str,
    store: str | None,
    study: str | None,
    preset: str | None,
    bindings: tuple[str, ...],
    plans: int | None,
    fold_weights: bool,
    measure: bool,
    emitter: str | None,
    threads: int | None,
    again: bool,
    dot: bool,
    as_json: bool,
) -> None:
    """Print one operator: formula, drawing, steps and cost.

    OP is a file with an operator's text, JSON or index notation, - for standard input, one of these
    itself, or the start of a key with --store.
    """
    wanted = operand.specification_of(op, preset=preset, store=store, study=study)
    operator = operand.load_operator(op, store=store, study=study, specification=wanted)
    line = command_line("show", op, preset=preset, store=store, study=study)
    layers = _layers(operator, [checked_sizes(operator, b, line) for b in bindings])
    if fold_weights and plans is None:
        raise UserError("--fold-weights is about plans: add --plans")
    if measure and plans is None:
        raise UserError("--measure is about plans: add --plans")
    if not measure and (emitter is not None or threads is not None or again):
        raise UserError("--emitter, --threads and --again are about --measure: add it")
    if plans is not None:
        _add_plans(operator, layers, plans, fold_weights)
    if measure:
        _add_times(
            operator, layers, plans or 1, fold_weights, emitter or "cpp", threads or 1, again
        )
    if dot:
        output.echo(operator.dot())
    elif as_json:
        output.print_json(described(operator) | {"layers": layers})
    else:
        _print(operator, layers)


def described(operator: Operator) -> dict[str, Any]:
    """An operator as plain values, the same for every command's JSON."""
    return {
        "key": operator.key,
        "structure": operator.structure,
        "formula": operator.formula(),
        "primitives": operator.primitives(),
        "text": operator.text,
        "operator": operator.to_json(),
    }


def _layers(operator: Operator, given: list[dict[str, int]]) -> list[dict[str, Any]]:
    """Cost under each binding: the given ones, else those of the operator's specification."""
    specification = operator.specification
    if given or specification is None:
        pairs = [(binding, 1) for binding in given]
    else:
        pairs = list(zip(specification.bindings, specification.multiplicities, strict=True))
    layers: list[dict[str, Any]] = []
    for binding, count in pairs:
        entry: dict[str, Any] = {"binding": binding, "multiplicity": count}
        try:
            entry |= {"macs": operator.macs(binding), "params": operator.params(binding)}
            entry["weights"] = [list(shape) for shape in operator.weight_shapes(binding)]
        except UserError as error:
            if given:
                raise
            # One layer of a specification that the operator does not fit is a fact, no mistake.
            entry["does_not_fit"] = str(error)
        layers.append(entry)
    return layers


def _add_plans(
    operator: Operator, layers: list[dict[str, Any]], limit: int, fold_weights: bool
) -> None:
    """The cheapest plans of each layer that the operator fits."""
    if not layers:
        example = example_sizes(operator)
        named = f", such as --binding {example}" if example else ""
        raise UserError(f"a plan is of one layer: name one with --binding{named}")
    for layer in layers:
        if "does_not_fit" in layer:
            continue
        layer["plans"] = [
            {
                "macs": plan.macs,
                "bytes_moved": plan.bytes_moved,
                "peak_bytes": plan.peak_bytes,
                "fold_macs": plan.fold_macs,
                "stages": plan.text,
            }
            for plan in operator.plans(layer["binding"], limit, fold_weights=fold_weights)
        ]


def _add_times(
    operator: Operator,
    layers: list[dict[str, Any]],
    limit: int,
    fold_weights: bool,
    emitter: str,
    threads: int,
    again: bool,
) -> None:
    """What the plans of each layer take, and which of them is the fastest."""
    from syno.measure import choose_plan

    for layer in layers:
        if "plans" not in layer:
            continue
        with output.progress("plans", None, remaining=False) as move:

            def progress(remark: str, move: output.Move = move) -> None:
                move(0, remark)

            choice = choose_plan(
                operator,
                layer["binding"],
                emitter=emitter,
                limit=limit,
                threads=threads,
                fold_weights=fold_weights,
                again=again,
                progress=progress,
            )
        described = dataclasses.asdict(choice)
        times = {row.pop("number"): row for row in described.pop("times")}
        layer["measured"] = described | {"speedup": choice.speedup, "noisy": choice.noisy}
        for number, plan in enumerate(layer["plans"], 1):
            plan["measured"] = times.get(number)


def _print(operator: Operator, layers: list[dict[str, Any]]) -> None:
    from syno.report import format as fmt
    from syno.report.tree import tree

    screen = output.console()
    screen.print(output.heading(f"operator {operator.key}"))
    screen.print(f"primitives  {fmt.primitives(operator.primitives())}\n")
    formula, stages = operator.formula(), operator.formula(stages=True)
    for heading, text in (
        ("Formula", formula),
        *([("Stages", stages)] if stages != formula else []),
        ("Drawing", tree(operator.to_json())),
        ("Text", operator.text),
    ):
        screen.print(output.heading(f"{heading}"))
        screen.print(output.indented(text, 2), soft_wrap=True)
        screen.print()
    if not layers:
        example = example_sizes(operator)
        named = f", such as --binding {example}" if example else ""
        screen.print(f"Cost is per layer: name one with --binding{named}", soft_wrap=True)
        return
    rows = [_row(layer) for layer in layers]
    kinds = [("layer", "fold"), ("times", "right"), ("MACs", "right"), ("params", "right")]
    screen.print(output.table([*kinds, ("weights", "fold")], rows))
    for layer in layers:
        for number, plan in enumerate(layer.get("plans", []), 1):
            sizes = ", ".join(f"{k}={v}" for k, v in layer["binding"].items())
            screen.print()
            screen.print(output.heading(f"Plan {number}", f" of {sizes}"), highlight=False)
            screen.print(output.indented(plan["stages"], 2), soft_wrap=True, highlight=False)
        if "measured" in layer:
            _print_times(layer)


def _print_times(layer: dict[str, Any]) -> None:
    from syno.report import format as fmt

    screen = output.console()
    measured = layer["measured"]
    rows = []
    for number, plan in enumerate(layer["plans"], 1):
        costs = [str(number), fmt.count(plan["macs"]), fmt.count(plan["bytes_moved"])]
        times = plan["measured"]
        if times is None:
            rows.append([*costs, "", "", "", "holds too much memory to be timed"])
            continue
        remark = "chosen" if number == measured["number"] else ""
        if times["same_as"] is not None:
            remark = f"the code of plan {times['same_as']}"
        shown = [f"{times['median_ms']:.3f}", f"{times['best_ms']:.3f}", f"{times['speedup']:.2f}x"]
        rows.append([*costs, *shown, remark])
    kinds = [("plan", "right"), ("MACs", "right"), ("bytes moved", "right")]
    kinds += [("median ms", "right"), ("best ms", "right"), ("over plan 1", "right"), ("", "left")]
    screen.print()
    screen.print(output.table(kinds, rows))
    count = measured["threads"]
    screen.print(
        f"Plan {measured['number']} is chosen: {measured['emitter']}, {count} "
        f"thread{'' if count == 1 else 's'}"
        + (", measured earlier" if measured["from_cache"] else "")
        + (" (noisy: something else used the machine)" if measured["noisy"] else ""),
        highlight=False,
        soft_wrap=True,
    )


def _row(layer: dict[str, Any]) -> list[str]:
    from syno.report import format as fmt

    name = " ".join(f"{k}={v}" for k, v in layer["binding"].items())
    if "does_not_fit" in layer:
        return [name, str(layer["multiplicity"]), "does not fit", "", ""]
    shapes = "  ".join("x".join(map(str, shape)) for shape in layer["weights"])
    cost = [fmt.count(layer["macs"]), fmt.count(layer["params"])]
    return [name, str(layer["multiplicity"]), *cost, shapes]
