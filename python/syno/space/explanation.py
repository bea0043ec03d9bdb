"""Explanations: how a search builds an operator, or why a specification rejects it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from syno import _core
from syno._util import checks
from syno._util.arguments import checked, instance, optional
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
    """The result of `why_not`."""

    admitted: bool
    explanation: Explanation
    kept: KeptOperator | None
    relaxations: list[Relaxation]
    no_relaxation: str


@checked(operator=instance(Operator), specification=optional(instance(Specification)))
def explain(
    operator: Operator,
    specification: Specification | None = None,
    *,
    rules_off: Iterable[str] = (),
    rules: Iterable[Rule] = (),
) -> Explanation:
    """Explain how a search of the specification builds an operator.

    Returns:
        Plain values. listed: whether the search finds the operator; steps: the path from the output
        to the input, each step with the number of possible steps, the rejections by reason, and the
        other steps of the operator that were not possible there; usage: budgets, constraints,
        layers that the operator does not fit, and costs; refusals, refused_match, obstacle: the
        rejection reasons.

    Raises:
        UserError: the operator has other shapes or variables than the specification.
    """
    wanted = _specification(operator, specification)
    return _core.explain(operator._core, wanted._core, rule_set(rules_off, rules))


@checked(operator=instance(Operator), specification=optional(instance(Specification)))
def why_not(
    operator: Operator,
    specification: Specification | None = None,
    *,
    rules_off: Iterable[str] = (),
    rules: Iterable[Rule] = (),
    max_nodes: int = MAX_NODES,
    max_seconds: float = EXPLANATION_SECONDS,
) -> WhyNot:
    """Explain why the space of the specification does not contain an operator.

    Args:
        operator: the operator.
        specification: the specification; default: that of the operator.
        rules_off, rules: as in `Space.enumerate`.
        max_nodes: maximum number of partial graphs to enumerate to find an equal operator.
        max_seconds: time limit of this enumeration in seconds, and of the search for changes.

    Returns:
        Plain values. admitted: whether the space contains the operator or an equal one;
        explanation: as in `explain`; kept: the equal operator (`operator`, `key`, and the `rules`
        that lead to it, none if the enumeration found it), a nearly equal one of an approximate
        rule (`near`), or None; relaxations: the smallest change that admits the operator itself,
        as (`kind`, `name`, `from`, `to`); no_relaxation: without a change, the remaining reason.
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
            "the operator cannot be explained without a specification\n"
            "  expected: a specification, or an operator with a specification      got: neither"
        )
    if not wanted.full_bindings:
        raise UserError(
            "the operator cannot be explained by a specification without layers\n"
            f"  in {wanted!r}\n"
            "  expected: at least one binding      got: none"
        )
    return wanted


def rules_along(found: Explanation) -> list[RuleUse]:
    """Return the rules that rejected steps along the path of an explanation.

    Each has its kind, the number of rejected steps (`steps_refused`), and that of rejected steps of
    the operator itself (`own_steps_refused`). The most frequent rule is first.
    """
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
