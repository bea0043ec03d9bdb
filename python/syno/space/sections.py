"""Explanations and checks of rules as sections of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from syno._util import numbers
from syno._util.tables import Section
from syno.operators.operator import Operator
from syno.operators.summary import operator_summary
from syno.space.explanation import KeptOperator, WhyNot, rules_along
from syno.space.rule_check import RuleCheck
from syno.space.tables import rules_table
from syno.space.usage import amount, changed, obstacle_in_words, relaxing_option, says_something

if TYPE_CHECKING:
    from syno._core import Explanation, Usage


def explanation_sections(operator: Operator, found: Explanation) -> Iterator[Section]:
    """Return the result of `explain` as sections."""
    yield Section(f"operator {operator.key}", text=operator.formula())
    if found["listed"]:
        yield Section("Path", ", from the output to the input", facts=_path(found))
        rules = rules_along(found)
        if rules:
            yield Section("Rules along the path", table=rules_table(rules))
    else:
        yield _rejected(found)
        yield Section(
            "`syno why-not` prints which operator is kept instead, and what admits this one"
        )
    yield from _usage(found["usage"])


def obstacle_sections(operator: Operator, found: WhyNot) -> Iterator[Section]:
    """Return the result of `why_not` as sections."""
    explanation = found["explanation"]
    yield Section(f"operator {operator.key}", text=operator.formula())
    if explanation["listed"]:
        yield Section("The specification admits the operator: `syno explain` prints its path")
    else:
        yield _rejected(explanation)
        exceeded = _exceeded(explanation["usage"])
        if exceeded:
            yield Section("Beyond the specification", facts=exceeded)
    if found["kept"] is not None:
        yield _kept(found["kept"])
    if not explanation["listed"]:
        yield _changes(found)


def explanation_json(operator: Operator, found: WhyNot) -> dict[str, object]:
    """Return the result of `why_not` as plain values."""
    value: dict[str, object] = {**operator_summary(operator), **found}
    if found["kept"] is not None:
        kept = found["kept"]
        value["kept"] = operator_summary(kept["operator"]) | {
            "rules": kept["rules"],
            "near": kept["near"],
        }
    value["relaxations"] = [{**r, "option": relaxing_option(r)} for r in found["relaxations"]]
    return value


def check_section(check: RuleCheck) -> Section:
    """Return the result of the check of a rule as a section."""
    rows = [("  rejected", f"{check.refused:,} of {check.asked:,} steps, {check.graphs:,} graphs")]
    if check.kind != "restriction":
        shares = f"{check.mean_share:.1%} on average, {check.most_share:.1%} at most"
        rows += [
            ("  compared", f"{check.compared:,}"),
            ("  equal", f"{check.equal_keys:,} by key, {check.equal_values:,} by values"),
            ("  different", f"{check.different:,}"),
            ("  undecided", f"{check.undecided:,}"),
            ("  elements that differ", shares),
        ]
    if check.refused_graph and (check.different or check.kind == "restriction"):
        rows.append(("  rejects, for example", check.refused_graph))
        if check.kept_graph:
            rows.append(("  and keeps", check.kept_graph))
    return Section(check.rule, f", {check.kind}: {check.verdict}", facts=rows)


def _path(found: Explanation) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for number, step in enumerate(found["steps"], start=1):
        beside = f"one of {step['children']:,}" if step["children"] > 1 else "the only one"
        rows.append((f"{number:>4}", step["step"], beside))
        rows += [("", f"  not {o['step']}", o["reason"]) for o in step["others"]]
    return rows


def _rejected(found: Explanation) -> Section:
    """Return all rejection reasons of an operator."""
    rows = [[refusal["reason"], refusal["text"]] for refusal in found["refusals"]]
    if found["refused_match"]:
        rows.append([found["refused_match"], "another complete graph represents this one"])
    known = any(refusal["reason"] in found["obstacle"] for refusal in found["refusals"])
    if not found["reached"] and not known:
        rows.append([found["obstacle_reason"], obstacle_in_words(found)])
    rows += [
        [f"does not fit {m['binding']}", f"{m['size']} is not a positive integer there"]
        for m in found["usage"]["misfits"]
    ]
    return Section("Rejected", facts=[["  " + reason, text] for reason, text in rows])


def _usage(usage: Usage) -> Iterator[Section]:
    """Return the budgets and constraints that an operator uses, and its costs."""
    budgets = [
        [f"  {b['variable']}", f"{b['used']} of {b['budget']}", "" if b["within"] else "exceeded"]
        for b in usage["budgets"]
    ]
    yield Section("Budgets", facts=budgets)
    limits = [
        [f"  {u['limit']}", amount(u), "" if u["within"] else "not allowed"]
        for u in usage["limits"]
        if not u["within"] or says_something(u)
    ]
    yield Section("Constraints", facts=limits)
    costs = [("MACs", usage["macs"]), ("parameters", usage["params"])]
    rows = [[f"  {name}", f"{value:,}", f"({numbers.count(value)})"] for name, value in costs]
    rows.append(
        ["  pooling", f"{usage['pooling']:,}", "input elements are summed before any weight"]
    )
    yield Section("Costs", ", sum over all layers that it fits", facts=rows)


def _exceeded(usage: Usage) -> list[list[str]]:
    budgets = [b for b in usage["budgets"] if not b["within"]]
    limits = [u for u in usage["limits"] if not u["within"]]
    rows = [[f"  budget of {b['variable']}", f"{b['used']} of {b['budget']}"] for b in budgets]
    return rows + [[f"  {u['limit']}", amount(u)] for u in limits]


def _kept(kept: KeptOperator) -> Section:
    by = ", then ".join(kept["rules"]) if kept["rules"] else "found by an enumeration"
    # A nearly equal operator differs in some outputs: `syno rules show` prints in which.
    what = "a nearly equal operator" if kept["near"] else "the same operator"
    text = "\n".join(f"  {line}" for line in kept["operator"].text.splitlines())
    both = f"{kept['operator'].formula()}\n{text}"
    return Section("Kept instead", f", {what} ({by})", text=both)


def _changes(found: WhyNot) -> Section:
    if not found["relaxations"]:
        left = found["no_relaxation"]
        rest = " of budgets, constraints or rules was found that admits the operator"
        return Section("No change", rest, text=f"remaining reason: {left}" if left else "")
    rows = [
        [f"  {changed(r)}", f"from {r['from']} to {r['to']}", relaxing_option(r)]
        for r in found["relaxations"]
    ]
    return Section("Smallest change that admits the operator", facts=rows)
