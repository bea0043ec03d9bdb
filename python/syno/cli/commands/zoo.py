"""`syno zoo`: well-known operators by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util.options import Options, option, required
from syno._util.tables import Table
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.codegen.verify import Verification


@framework.group("zoo")
def command() -> None:
    """List, show, verify and time well-known operators.

    The zoo holds convolutions, projections and the operators of the paper, each with a small
    binding for a first test. The baselines of NAS-PTE are not operators but PyTorch modules;
    `syno.zoo.module` creates them.
    """


@dataclass(frozen=True, kw_only=True)
class _ListArguments(Options):
    as_json: bool = output.as_json()


@framework.command("zoo list", _ListArguments)
def list_command(given: _ListArguments) -> None:
    """List the operators: their names, definitions, and MACs under a small binding.

    Operators of the paper's artifact stand at the end, by the numbers that they have there.
    """
    from syno.operators import zoo

    entries = [zoo.entry(name) for name in zoo.names()]
    published = [zoo.entry(name) for name in zoo.published_names() if name not in zoo.names()]
    modules = [{"name": name, "doc": zoo.module_doc(name)} for name in zoo.module_names()]
    if given.as_json:
        output.print_json({"operators": entries, "published": published, "modules": modules})
        return
    rows = [
        [e["name"], e["doc"].split("\n")[-1], _sizes(e["binding"]), f"{e['macs']:,}"]
        for e in (*entries, *published)
    ]
    rows += [[m["name"], f"a module: {m['doc']}", "", ""] for m in modules]
    headings = ("name", "computes~", "small binding~", "MACs>")
    output.show(Table(headings, tuple(map(tuple, rows))))


@dataclass(frozen=True, kw_only=True)
class _ShowArguments(Options):
    name: str = required("", names="NAME")
    as_text: bool = option("Print only the text of the operator.", False, names="--text")
    as_json: bool = output.as_json()


@framework.command("zoo show", _ShowArguments)
def show_command(given: _ShowArguments) -> None:
    """Print an operator: its definition, stages, text, and cost under a small binding."""
    from syno.operators import zoo

    operator = zoo.load(given.name)
    if given.as_text:
        output.echo(operator.text, nl=False)
        return
    entry = zoo.entry(given.name)
    if given.as_json:
        output.print_json(entry | {"operator": operator.to_json()})
        return
    screen = output.console()
    screen.print(output.heading(f"{given.name}"))
    for title, text in (
        ("Definition", entry["doc"]),
        ("Formula", operator.formula(stages=True)),
        ("Text", operator.text),
    ):
        screen.print()
        output.paragraph(title, text)
    screen.print()
    cost = [["under", _sizes(entry["binding"])], ["MACs", f"{entry['macs']:,}"]]
    screen.print(output.facts([*cost, ["parameters", f"{entry['params']:,}"]]))


@dataclass(frozen=True, kw_only=True)
class _VerifyArguments(Options):
    names: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[NAME]...")
    emitters: str = option(
        "Emitters to verify, such as pytorch,cpp; `all` is every emitter that can run here.",
        "pytorch",
        metavar="NAMES",
    )
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("zoo verify", _VerifyArguments)
def verify_command(given: _VerifyArguments) -> int:
    """Verify the generated code of operators against the reference interpreter.

    Each operator runs under its small binding. The exit code is 1 if any value differs.
    """
    from syno.codegen import emitters
    from syno.codegen.verify import verify
    from syno.operators import zoo

    operators = [(name, zoo.load(name)) for name in given.names or zoo.names()]
    wanted = emitters.named(given.emitters)
    results: list[tuple[str, Verification]] = []
    with output.progress("verifying", len(operators) * len(wanted)) as move:
        for emitter in wanted:
            for name, operator in operators:
                found = verify(operator, zoo.binding(name), emitter=emitter, seed=given.seed)
                results.append((name, found))
                move(len(results), name)
    passed = all(result.passed for _, result in results)
    if given.as_json:
        output.print_json({"passed": passed, "results": [_result(*pair) for pair in results]})
    else:
        _print(results)
    return framework.OK if passed else framework.NEGATIVE


def _sizes(binding: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in binding.items())


def _result(name: str, found: Verification) -> dict[str, object]:
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
    from syno.codegen.verify.tables import zoo_checks_table

    output.show(zoo_checks_table(results))
    for name, found in results:
        if not found.passed:
            output.paragraph(f"{name} by {found.emitter}:", found.failure)
