"""What each rule saves: a space listed again with one rule switched off after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from syno.rules import RuleInfo, describe_rule, list_rules, of_kind
from syno.space import MOST_NODES, Space
from syno.spec import Specification

# (what is listed now, how many listings are complete).
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Effect:
    """One listing: all rules on (`rule` is None), or one of them off.

    nodes: partial graphs under the last depth limit. more, fewer: operators that are listed with
    the rule off and not with it on, and the other way round, by their semantic keys. exhausted:
    whether the depth was reached within the budget; otherwise the row is of a smaller depth.
    without: the kind of rules that is off in this row and in the one it is compared with.
    """

    rule: str | None
    name: str
    kind: str
    without: str
    graphs: int
    structures: int
    operators: int
    nodes: int
    more: int
    fewer: int
    exhausted: bool

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def rule_effects(
    specification: Specification,
    depth: int = 0,
    *,
    rules: Iterable[str] | None = None,
    max_nodes: int = MOST_NODES,
    threads: int = 0,
    progress: Progress | None = None,
) -> Iterator[Effect]:
    """Lists the space with all rules on, without approximate rules, and with each rule off in turn.

    rules: ids or names of those that are switched off; all when None. Exact rules are compared
    where the approximate ones are off: an approximate rule looks at the form of an operator, so
    with both off it may see another form. An exact rule must change no operator there.
    """
    wanted = list_rules() if rules is None else [describe_rule(rule) for rule in rules]
    approximate = of_kind("approximate")
    done = 0

    def listed(what: str, off: list[str]) -> tuple[Space, set[str]]:
        nonlocal done
        if progress is not None:
            progress(what, done)
        space = Space.listed(
            specification, depth=depth, max_nodes=max_nodes, threads=threads, rules_off=off
        )
        done += 1
        return space, space.keys()

    everything = listed("all rules", [])
    yield _effect(None, "", *everything, everything[1])
    exact = listed("approximate rules off", approximate)
    yield _effect(None, "approximate", *exact, everything[1])
    for rule in wanted:
        alone = rule.kind == "exact"
        off = [rule.id, *(approximate if alone else [])]
        space, keys = listed(f"{rule.id} off", off)
        before = exact if alone else everything
        yield _effect(rule, "approximate" if alone else "", space, keys, before[1])


def _effect(
    rule: RuleInfo | None, without: str, space: Space, keys: set[str], before: set[str]
) -> Effect:
    counts = space.counts()
    return Effect(
        rule=None if rule is None else rule.id,
        name="" if rule is None else rule.name,
        kind="" if rule is None else rule.kind,
        without=without,
        graphs=counts["graphs"],
        structures=counts["structures"],
        operators=counts["operators"],
        nodes=counts["nodes"],
        more=len(keys - before),
        fewer=len(before - keys),
        exhausted=space.exhausted,
    )
