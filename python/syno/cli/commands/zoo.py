"""`syno zoo`: operators that everybody knows, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output
from syno.cli.commands import bench_kernels

if TYPE_CHECKING:
    from syno.codegen.verify import Verification


@framework.group(
    name="zoo",
    examples=[
        ("what there is, for programs", "syno zoo list --json"),
        ("one of them", "syno zoo show operator-1"),
        ("whether the generated code computes them", "syno zoo verify"),
        ("how fast it is", "syno zoo bench"),
    ],
)
def command() -> None:
    """List, show, verify and time well-known operators: convolutions, projections, the paper's.

    Each has a small binding for a first try. The baselines of NAS-PTE are no operators: they are
    torch modules, which `syno.zoo.module` makes.
    """


@framework.command(
    name="list",
    examples=[("as a table", "syno zoo list"), ("for programs", "syno zoo list --json")],
)
@output.json_option
def list_command(as_json: bool) -> None:
    """List the operators: name, what each computes, multiply-adds under its small binding."""
    from syno.operators import zoo

    entries = [_entry(name) for name in zoo.names()]
    modules = [{"name": name, "doc": zoo.module_doc(name)} for name in zoo.module_names()]
    if as_json:
        output.print_json({"operators": entries, "modules": modules})
        return
    rows = [
        [e["name"], e["doc"].split("\n")[-1], _sizes(e["binding"]), f"{e['macs']:,}"]
        for e in entries
    ]
    rows += [[m["name"], f"a module: {m['doc']}", "", ""] for m in modules]
    columns = [("name", "left"), ("computes", "fold"), ("small sizes", "fold"), ("MACs", "right")]
    output.console().print(output.table(columns, rows))


@framework.command(
    name="show",
    examples=[
        ("by name", "syno zoo show operator-2"),
        (
            "its text, for other commands",
            "syno zoo show conv1x1 --text | syno show - --binding C_in=64,C_out=64,H=28,W=28",
        ),
    ],
)
@click.argument("name")
@click.option("--text", "as_text", is_flag=True, help="Print the operator's text only.")
@output.json_option
def show_command(name: str, as_text: bool, as_json: bool) -> None:
    """Print one operator: what it computes, its stages, its text, its cost under small sizes."""
    from syno.operators import zoo

    operator = zoo.load(name)
    if as_text:
        output.echo(operator.text, nl=False)
        return
    entry = _entry(name)
    if as_json:
        output.print_json(entry | {"operator": operator.to_json()})
        return
    screen = output.console()
    screen.print(output.heading(f"{name}"))
    for heading, text in (
        ("Definition", entry["doc"]),
        ("Formula", operator.formula(stages=True)),
        ("Text", operator.text),
    ):
        screen.print()
        screen.print(output.heading(f"{heading}"))
        screen.print(output.indented(text, 2), soft_wrap=True)
    screen.print()
    cost = [["under", _sizes(entry["binding"])], ["MACs", f"{entry['macs']:,}"]]
    screen.print(output.facts([*cost, ["parameters", f"{entry['params']:,}"]]))


@framework.command(
    name="verify",
    examples=[
        ("all of them", "syno zoo verify"),
        (
            "two of them, by two emitters",
            "syno zoo verify conv2d operator-2 --emitters pytorch,cpp",
        ),
    ],
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--emitters",
    metavar="NAMES",
    default="pytorch",
    show_default=True,
    help="Whose code is checked, as pytorch,...; `all` is every emitter that can run here.",
)
@options.seed_option
@output.json_option
def verify_command(names: tuple[str, ...], emitters: str, seed: int, as_json: bool) -> int:
    """Check the code generated for the operators against the reference interpreter.

    Each runs under its small binding. The exit code is 1 when any differs.
    """
    from syno.cli.commands.verify import chosen_emitters
    from syno.codegen.verify import verify
    from syno.operators import zoo

    operators = [(name, zoo.load(name)) for name in names or zoo.names()]
    chosen = chosen_emitters(emitters)
    results: list[tuple[str, Verification]] = []
    with output.progress("verifying", len(operators) * len(chosen)) as move:
        for emitter in chosen:
            for name, operator in operators:
                found = verify(operator, zoo.binding(name), emitter=emitter, seed=seed)
                results.append((name, found))
                move(len(results), name)
    passed = all(result.passed for _, result in results)
    if as_json:
        output.print_json({"passed": passed, "results": [_result(*pair) for pair in results]})
    else:
        _print(results)
    return framework.OK if passed else framework.NEGATIVE


def _entry(name: str) -> dict[str, Any]:
    from syno.operators import zoo

    operator, binding = zoo.load(name), zoo.binding(name)
    return {
        "name": name,
        "doc": zoo.doc(name),
        "formula": operator.formula(),
        "binding": binding,
        "macs": operator.macs(binding),
        "params": operator.params(binding),
        "text": operator.text,
    }


def _sizes(binding: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in binding.items())


def _result(name: str, found: Verification) -> dict[str, Any]:
    return {
        "name": name,
        "emitter": found.emitter,
        "passed": found.passed,
        "outputs": found.outputs,
        "max_error": found.max_error,
        "source_hash": found.source_hash,
        "failure": found.failure,
    }


def _print(results: Sequence[tuple[str, Verification]]) -> None:
    rows = [
        [
            name,
            found.emitter,
            "passed" if found.passed else "FAILED",
            f"{found.outputs:,}",
            f"{found.max_error:.1e}",
        ]
        for name, found in results
    ]
    columns = [("operator", "left"), ("emitter", "left"), ("result", "left")]
    screen = output.console()
    screen.print(
        output.table([*columns, ("outputs compared", "right"), ("largest error", "right")], rows)
    )
    for name, found in results:
        if not found.passed:
            screen.print(f"{name} by {found.emitter}:")
            screen.print(output.indented(found.failure, 2), soft_wrap=True)


command.add_command(list_command)
command.add_command(show_command)
command.add_command(verify_command)
command.add_command(bench_kernels.zoo_command)
