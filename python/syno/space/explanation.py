"""How a search comes to an operator, and what keeps one out of a specification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from syno import _core
from syno._util import checks
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.options import EXPLANATION_SECONDS, MAX_NODES
from syno.space.rules import Rule, list_rules, rule_set

if TYPE_CHECKING:
    from syno._core import Explanation, Relaxation


class KeptOperator(TypedDict):
    """The equal operator that a search keeps; near: it is nearly equal, by an approximate rule."""

    operator: Operator
    key: str
    rules: list[str]
    near: bool


class RuleUse(TypedDict):
    """How often a rule rejected steps along the path of an explanation; own: of the operator's."""

    rule: str
    kind: str
    steps_refused: int
    own_steps_refused: int


class WhyNot(TypedDict):
    """What `why_not` gives."""

    admitted: bool
    explanation: Explanation
    kept: KeptOperator | None
    relaxations: list[Relaxation]
    no_relaxation: str


def explain(
    operator: Operator,
    specification: Specification | None = None,
    *,
    rules_off: Iterable[str] = (),
    rules: Iterable[Rule] = (),
) -> Explanation:
    """How a search of the specification builds the operator, as plain values.

    listed: whether it does. steps: the path from the output to the input, each with the number of
    children there, what was refused beside it by reason, and the operator's own steps that could
    not come there. usage: budgets, limits, layers that the operator does not fit, cost. refusals,
    refused_match, obstacle: what speaks against it. UserError for other shapes or variables.
    """
    wanted = _specification(operator, specification)
    return _core.explain(operator._core, wanted._core, rule_set(rules_off, rules))


def why_not(
    operator: Operator,
    specification: Specification | None = None,
    *,
    rules_off: Iterable[str] = (),
    rules: Iterable[Rule] = (),
    max_nodes: int = MAX_NODES,
    max_seconds: float = EXPLANATION_SECONDS,
) -> WhyNot:
    """What keeps the operator out of the space of the specification, as plain values.

    admitted: whether nothing does, or an equal operator is in it. explanation: as in `explain`.
    kept: that equal operator (`operator`, `key`, and the `rules` that lead to it; none when a
    listing of at most `max_nodes` graphs had it), a near-equal one by an approximate rule (`near`),
    or None. relaxations: the smallest change that
    admits the operator as it is, each (`kind`, `name`, `from`, `to`); without any, `no_relaxation`
    says what no budget, limit or rule can change.
    """
    for name, value in (("max_nodes", max_nodes), ("max_seconds", max_seconds)):
        if not checks.is_number(value) or not 0 <= value < 2**63:
            raise UserError(f"'{name}' is a number of at least 0, got {value!r}")
    wanted = _specification(operator, specification)
    found = _core.why_not(
        operator._core, wanted._core, rule_set(rules_off, rules), int(max_nodes), float(max_seconds)
    )
    kept: KeptOperator | None = None
    if found["kept"] is not None:
        operator = Operator(found["kept"]["operator"], wanted, key=found["kept"]["key"])
        kept = {**found["kept"], "operator": operator}
    return {**found, "kept": kept}


def _specification(operator: Operator, specification: Specification | None) -> Specification:
    wanted = specification or operator.specification
    if wanted is None:
        raise UserError(
            "there is no specification to explain the operator by\n"
            "  expected: a specification, or an operator that comes with one      got: neither"
        )
    if not wanted.full_bindings:
        raise UserError(
            "the specification has no layer to explain the operator by\n"
            f"  in {wanted!r}\n"
            "  expected: at least one binding      got: none"
        )
    return wanted


def rules_along(found: Explanation) -> list[RuleUse]:
    """The rules that refused something along the path of an explanation, with their kinds and how
    often: `steps_refused`, and of the operator's own steps `own_steps_refused`; the most frequent
    first."""
    known = {rule.id: rule.kind for rule in list_rules()}
    steps, own = Counter[str](), Counter[str]()
    for step in found["steps"]:
        steps.update(step["refused"])
        own.update(other["reason"] for other in step["others"])
    return [
        RuleUse(rule=reason, kind=kind, steps_refused=steps[reason], own_steps_refused=own[reason])
        for reason in sorted({**steps, **own}, key=lambda reason: -steps[reason])
        if (kind := known.get(reason.partition(" ")[0]))
    ]
