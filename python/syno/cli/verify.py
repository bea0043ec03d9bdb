"""`syno verify`: generated code against the reference interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, operand, options, output

if TYPE_CHECKING:
    from syno import Operator


@framework.command(
    name="verify",
    examples=[
        ("under the layers of the search that found it", "syno verify 8e296a06 --store runs.db"),
        (
            "under sizes of one's own",
            "syno verify op.txt --preset paper/resnet18 --binding C_in=64,C_out=64,H=28",
        ),
    ],
)
@click.argument("op")
@options.operand_options
@click.option(
    "--binding",
    "bindings",
    multiple=True,
    metavar="SIZES",
    help="Sizes to check under, as C_in=64,H=28; repeat. Default: those of the specification.",
)
@options.seed_option
@output.json_option
def command(
    op: str,
    store: str | None,
    study: str | None,
    preset: str | None,
    bindings: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> int:
    """Check the code generated from an operator against the reference interpreter.

    Input and weights are random; values are compared under each binding. The exit code is 1 when
    any differs.
    """
    wanted = operand.chosen_specification(op, preset=preset, store=store, study=study)
    operator = operand.load_operator(op, store=store, study=study, specification=wanted)
    line = operand.command_line(f"verify {op}", preset=preset, store=store, study=study)
    chosen = [operand.checked_sizes(operator, b, line) for b in bindings]
    chosen = chosen or operand.own_sizes(operator, line)
    results = _verify(operator, chosen, seed)
    passed = all(result["passed"] for result in results)
    if as_json:
        output.print_json({"key": operator.key, "passed": passed, "results": results})
    else:
        _print(operator, results)
    return framework.OK if passed else framework.NEGATIVE


def _verify(operator: Operator, bindings: list[dict[str, int]], seed: int) -> list[dict[str, Any]]:
    import dataclasses

    from syno.verify import verify

    results = []
    with output.progress("verifying", len(bindings)) as move:
        for index, binding in enumerate(bindings):
            results.append(dataclasses.asdict(verify(operator, binding, seed=seed)))
            move(index + 1)
    return results


def _print(operator: Operator, results: list[dict[str, Any]]) -> None:
    rows = [
        [
            " ".join(f"{name}={value}" for name, value in result["binding"].items()),
            "passed" if result["passed"] else "FAILED",
            f"{result['outputs']:,}",
            f"{result['max_error']:.1e}",
            f"{result['emitter']} {result['source_hash'][:12]}",
        ]
        for result in results
    ]
    columns = [("binding", "fold"), ("result", "left"), ("outputs compared", "right")]
    screen = output.console()
    screen.print(f"[bold]operator {operator.key}[/bold]")
    screen.print(output.table([*columns, ("largest error", "right"), ("code", "left")], rows))
    for result in results:
        if result["failure"]:
            screen.print(output.indented(result["failure"], 2), soft_wrap=True)
