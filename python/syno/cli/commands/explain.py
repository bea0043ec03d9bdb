"""`syno explain`: how a search comes to an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output
from syno.cli.operand import explained_operator
from syno.report import format as fmt

if TYPE_CHECKING:
    from rich.console import Console

    from syno import Operator, Rule
    from syno._core import ExplainedStep, Explanation, LimitUse, Usage


@framework.command(
    name="explain",
    examples=[
        ("an operator from a file", "syno explain op.txt --preset paper/resnet18"),
        (
            "from a pipe, for programs",
            "syno sample --preset paper/resnet18 --text | \\\n"
            "      syno explain - --preset paper/resnet18 --json",
        ),
        ("one that a search has found", "syno explain 8e296a06 --store runs.db"),
    ],
)
@click.argument("op")
@options.specification_options
@options.bindings_option
@options.found_options
@options.rule_options
@output.json_option
@options.limit_options
def command(
    op: str,
    store: str | None,
    study: str | None,
    rules_off: list[str],
    rules: list[Rule],
    as_json: bool,
    **named: Any,
) -> int:
    """Print how a search builds an operator, and what it uses of its specification.

    The path goes from the output towards the input. Beside each step stands how many steps were
    possible there, and which of the operator's own steps could not come there and why: that is what
    gives the path its order. Then follow the rules that refused other steps along the path, the
    budgets and limits that the operator uses, its costs and its drawing.

    OP is a file with an operator's text, JSON or index notation, - for standard input, one of these
    itself, or the start of a key with --store. The exit code is 1 when no search lists the
    operator; `syno why-not` says what to do then.
    """
    from syno.space.explanation import explain, rules_along

    operator, wanted = explained_operator(op, store=store, study=study, **named)
    found = explain(operator, wanted, rules_off=rules_off, rules=rules)
    if as_json:
        from syno.cli.commands.show import described

        output.print_json(described(operator) | found | {"rules": rules_along(found)})
    else:
        _print(operator, found)
    return framework.OK if found["listed"] else framework.NEGATIVE


def _print(operator: Operator, found: Explanation) -> None:
    from syno.report.tree import tree
    from syno.space.explanation import rules_along

    screen = output.console()
    screen.print(output.heading(f"operator {operator.key}"))
    screen.print(output.indented(operator.formula(), 2), soft_wrap=True)
    if found["listed"]:
        _path(screen, found["steps"])
        _shaped(screen, rules_along(found))
    else:
        screen.print()
        against(screen, found)
        screen.print("`syno why-not` says which operator is kept instead, and what admits it")
    use(screen, found["usage"])
    screen.print()
    screen.print(output.heading("Drawing"))
    screen.print(output.indented(tree(operator.to_json()), 2), soft_wrap=True)


def against(screen: Console, found: Explanation) -> None:
    """Print everything that speaks against an operator."""
    rows = [[refusal["reason"], refusal["text"]] for refusal in found["refusals"]]
    if found["refused_match"]:
        rows.append([found["refused_match"], "another complete graph stands for this one"])
    if not found["reached"] and not any(
        r["reason"] in found["obstacle"] for r in found["refusals"]
    ):
        rows.append([found["obstacle_reason"], _words(found)])
    screen.print(output.heading("Refused"))
    screen.print(output.facts([["  " + reason, text] for reason, text in rows]))
    for misfit in found["usage"]["misfits"]:
        line = f"  does not fit {misfit['binding']}: {misfit['size']} is no positive integer there"
        screen.print(line, soft_wrap=True)
    screen.print()


def _words(found: Explanation) -> str:
    from syno import _core

    doc = _core.reason_info(found["obstacle_reason"])["doc"]
    return f"{found['obstacle']}: {doc}" if doc else found["obstacle"]


def _path(screen: Console, steps: Sequence[ExplainedStep]) -> None:
    rows = []
    for number, step in enumerate(steps, start=1):
        beside = f"one of {step['children']:,}" if step["children"] > 1 else "the only one"
        rows.append([f"{number:>4}", step["step"], beside])
        rows += [["", f"  not {o['step']}", o["reason"]] for o in step["others"]]
    screen.print()
    screen.print(output.heading("Path", ", from the output to the input"))
    screen.print(output.facts(rows))


def _shaped(screen: Console, rules: Sequence[Mapping[str, Any]]) -> None:
    if not rules:
        return
    screen.print()
    screen.print(output.heading("Rules along the path"))
    rows = [
        [
            r["rule"],
            r["kind"],
            f"{r['steps_refused']:,}",
            f"{r['own_steps_refused']:,}" if r["own_steps_refused"] else "",
        ]
        for r in rules
    ]
    kinds = [("rule", "left"), ("kind", "left"), ("steps refused", "right")]
    screen.print(output.table([*kinds, ("of its own", "right")], rows))


def use(screen: Console, usage: Usage) -> None:
    """Print what an operator uses of budgets and limits, and what it costs."""
    screen.print()
    screen.print(output.heading("Budgets"))
    budgets = [
        [f"  {b['variable']}", f"{b['used']} of {b['budget']}", "" if b["within"] else "too much"]
        for b in usage["budgets"]
    ]
    screen.print(output.facts(budgets))
    screen.print()
    screen.print(output.heading("Limits"))
    limits = [
        [f"  {u['limit']}", amount(u), "" if u["within"] else "not allowed"]
        for u in usage["limits"]
        if not u["within"] or _says_something(u)
    ]
    screen.print(output.facts(limits))
    screen.print()
    screen.print(output.heading("Costs", ", all layers that it fits together"))
    costs = [("MACs", usage["macs"]), ("parameters", usage["params"])]
    rows = [[f"  {name}", f"{value:,}", f"({fmt.count(value)})"] for name, value in costs]
    rows.append(["  pooling", f"{usage['pooling']:,}", "elements are summed before any weight"])
    screen.print(output.facts(rows))


def _says_something(use: LimitUse) -> bool:
    """Flags that are not used, and windows of costs that are open, say nothing."""
    if use["limit"] in _FLAGS:
        return bool(use["used"])
    return use["allowed"] != 0 or use["used"] != 0


_FLAGS = ("negative_shifts", "even_windows", "element_wise_weights")


def amount(use: LimitUse) -> str:
    """What is used of a limit, in words."""
    if use["limit"] in _FLAGS:
        allowed = "allowed" if use["allowed"] else "not allowed"
        return f"used, {allowed}"
    word = "of at least" if use["limit"].startswith("min_") else "of"
    if use["allowed"] == 0 and use["limit"].endswith(("_macs", "_params")):
        return f"{_number(use['used'])}, no limit"
    return f"{_number(use['used'])} {word} {_number(use['allowed'])}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
