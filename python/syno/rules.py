"""The catalogue of rules, and which of them are on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from syno import _core
from syno._errors import UserError


@dataclass(frozen=True)
class RuleInfo:
    """One rule as people read it.

    kind: exact, approximate or restriction. doc: what stands under What, Why, When, Soundness,
    Status and Example.
    """

    id: str
    name: str
    kind: str
    doc: dict[str, str]

    @property
    def status(self) -> str:
        """How settled the rule is, such as "stable since 0.1"."""
        return self.doc["Status"]


def list_rules() -> list[RuleInfo]:
    """Every rule of the catalogue, in the order in which rules are asked."""
    return [
        RuleInfo(rule["id"], rule["name"], rule["kind"], dict(_core.rule_doc_parts(rule["id"])))
        for rule in _core.rule_catalogue()
    ]


def describe_rule(rule: str) -> RuleInfo:
    """A rule by id or name. UserError that lists the rules."""
    if isinstance(rule, str):
        for known in list_rules():
            if rule in (known.id, known.name):
                return known
    rule_set([rule])
    raise AssertionError(f"a set of rules knows '{rule}', the catalogue does not")


def rule_set(off: Iterable[str] = ()) -> _core.RuleSet:
    """All rules but those of `off`, by id or name. UserError that lists the rules."""
    if isinstance(off, str):
        raise UserError(f"'rules_off' is one string\n  expected: a list of rules      got: {off!r}")
    rules = _core.RuleSet()
    for rule in off:
        if not isinstance(rule, str):
            raise UserError(f"a rule is named by its id or name, got {rule!r}")
        rules.set(rule, False)
    return rules
