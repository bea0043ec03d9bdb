"""`syno verify`: generated code against the reference interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno.cli import framework, options, output
from syno.cli.operand import command_line
from syno.operands import operand, sizes

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
        ("the emitter itself, on random operators", "syno verify --random 300 --seed 1"),
    ],
)
@click.argument("op", required=False)
@options.operand_options
@click.option(
    "--binding",
    "bindings",
    multiple=True,
    metavar="SIZES",
    help="Sizes to check under, as C_in=64,H=28; repeat. Default: those of the specification.",
)
@click.option(
    "--random",
    type=click.IntRange(min=1),
    metavar="N",
    help="Instead of OP: N random operators under random bindings, with all gradients.",
)
@click.option(
    "--emitters",
    metavar="NAMES",
    default="pytorch",
    show_default=True,
    help="Whose code is checked, as pytorch,...; `all` is every emitter that can run here.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes for --random. Default: one a processor, for many operators.",
)
@options.seed_option
@output.json_option
def command(
    op: str | None,
    store: str | None,
    study: str | None,
    preset: str | None,
    bindings: tuple[str, ...],
    random: int | None,
    emitters: str,
    jobs: int | None,
    seed: int,
    as_json: bool,
) -> int:
    """Check the code generated from an operator against the reference interpreter.

    Input and weights are random; values are compared under each binding. With --random, operators
    and bindings are random too, and a failing case is made small. The exit code is 1 when any
    differs.
    """
    names = chosen_emitters(emitters)
    if random is not None:
        if op is not None or bindings:
            raise UserError("--random draws operators and bindings itself: leave OP and --binding")
        from syno.cli.commands import verify_random

        return verify_random.run(random, seed, names, jobs, as_json=as_json)
    if op is None:
        raise UserError("nothing to verify\n  expected: OP, or --random N      got: neither")
    wanted = operand.specification_of(op, preset=preset, store=store, study=study)
    operator = operand.load_operator(op, store=store, study=study, specification=wanted)
    line = command_line("verify", op, preset=preset, store=store, study=study)
    chosen = [sizes.checked_sizes(operator, b, line) for b in bindings]
    chosen = chosen or sizes.own_sizes(operator, line)
    results = _verify(operator, chosen, names, seed)
    passed = all(result["passed"] for result in results)
    if as_json:
        output.print_json({"key": operator.key, "passed": passed, "results": results})
    else:
        _print(operator, results)
    return framework.OK if passed else framework.NEGATIVE


def chosen_emitters(given: str) -> tuple[str, ...]:
    """The names in `--emitters`, each once."""
    from syno.codegen import emitters

    if given.strip() == "all":
        return tuple(name for name in emitters.names() if emitters.get(name).available() is None)
    names = tuple(dict.fromkeys(name.strip() for name in given.split(",")))
    for name in names:
        emitters.get(name)
    return names


def _verify(
    operator: Operator, bindings: list[dict[str, int]], names: tuple[str, ...], seed: int
) -> list[dict[str, Any]]:
    import dataclasses

    from syno.codegen.verify import verify

    results = []
    checks = [(name, binding) for name in names for binding in bindings]
    with output.progress("verifying", len(checks)) as move:
        for index, (name, binding) in enumerate(checks):
            result = verify(operator, binding, emitter=name, seed=seed)
            results.append(dataclasses.asdict(result))
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
    screen.print(output.heading(f"operator {operator.key}"))
    screen.print(output.table([*columns, ("largest error", "right"), ("code", "left")], rows))
    for result in results:
        if result["failure"]:
            screen.print(output.indented(result["failure"], 2), soft_wrap=True)
