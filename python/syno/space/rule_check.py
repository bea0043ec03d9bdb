"""Checks of a rule: what it rejects on random graphs, compared with what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from syno import _core
from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.operators.specification import Specification
from syno.space.options import CHECK_GRAPHS, CHECK_TRIALS
from syno.space.rules import Rule, added_rules, describe_rule, rule_set

# Called with (compared rejections, random graphs); the check stops if it returns False.
Progress = Callable[[int, int], bool]


@dataclass(frozen=True)
class RuleCheck:
    """The result of the check of a rule.

    graphs: number of random graphs; asked: steps that the rule checked; refused: steps that it
    rejected; compared: rejections of distinct graphs that were compared. Of these, equal_keys have
    the semantic key of the kept operator, equal_values have the same values for random data and
    weights, and different ones have other values; undecided ones are too large, or equal up to an
    order of the weights that the key does not see. mean_share, most_share: fraction of the output
    elements that differ, on average and at most. refused_graph, kept_graph: the rejection with the
    largest fraction, as text.
    """

    rule: str
    kind: str
    graphs: int
    asked: int
    refused: int
    compared: int
    equal_keys: int
    equal_values: int
    different: int
    undecided: int
    mean_share: float
    most_share: float
    refused_graph: str
    kept_graph: str

    @property
    def sound(self) -> bool:
        """Whether the rule is sound: an exact rule must not keep a different operator.

        Restrictions and approximate rules may change operators.
        """
        return self.kind != "exact" or self.different == 0

    @property
    def verdict(self) -> str:
        """The result in words."""
        if self.compared == 0:
            return "rejected nothing: try other shapes or sizes, or more graphs"
        if self.kind == "restriction":
            return "excludes the operators that it rejects"
        if self.kind == "approximate":
            return f"keeps operators that differ in {self.mean_share:.1%} of the elements"
        if self.different:
            return f"is not exact: {self.different:,} of {self.compared:,} operators differ"
        return f"no difference in {self.compared:,} operators"

    def as_json(self) -> JsonObject:
        """Return the result as plain values."""
        return asdict(self) | {"sound": self.sound}


def check_rule(
    rule: Rule | str,
    specification: Specification,
    *,
    trials: int = CHECK_TRIALS,
    max_graphs: int = CHECK_GRAPHS,
    seed: int = 0,
    rules: Iterable[Rule] = (),
    progress: Progress | None = None,
) -> RuleCheck:
    """Compare rejections of a rule on random graphs with what the rule keeps.

    Both graphs are interpreted as operators on their frontiers and computed exactly by the
    reference interpreter under the smallest binding. With ordered dimensions and small bindings,
    the fewest comparisons are undecided.

    Args:
        rule: a custom rule, or the id or name of a rule of the catalogue.
        specification: the specification of the random graphs.
        trials: number of rejections to compare.
        max_graphs: maximum number of random graphs.
        seed: seed of the random graphs.
        rules: other custom rules; restrictions apply as in a search.
        progress: called regularly; the check stops if it returns False.
    """
    if not isinstance(specification, Specification) or not specification.full_bindings:
        raise UserError(
            "a rule is checked on the layers of a specification\n"
            f"  expected: a Specification with a binding      got: {specification!r}"
        )
    for name, value in (("trials", trials), ("max_graphs", max_graphs)):
        checks.whole(f"'{name}'", value, least=1)
    checks.whole("'seed'", seed, least=0)
    own = [*added_rules(rules), *([rule] if isinstance(rule, Rule) else [])]
    info = rule if isinstance(rule, Rule) else describe_rule(rule)
    known = rule_set((), dict.fromkeys(own))
    found: dict[str, Any] = {
        **_core.check_rule(specification._core, known, info.id, trials, max_graphs, seed, progress)
    }
    example = found.pop("example")
    return RuleCheck(
        rule=f"{info.id} {info.name}",
        kind=info.kind,
        refused_graph="" if example is None else example["refused"],
        kept_graph="" if example is None else example["kept"],
        **found,
    )


def small_specification(limits: Mapping[str, Any]) -> Specification:
    """Return a small specification with two dimensions, in which most rules apply.

    limits: constraints that replace the defaults.
    """
    wide: dict[str, float] = {
        "max_merges": 2,
        "max_strides": 2,
        "max_repeat": 4,
        "element_wise_weights": True,
    }
    try:
        return Specification(
            "[C, H]",
            "[C, H]",
            ["C: 2", "H: 2"],
            ["k=3: 2", "s=2: 2"],
            bindings=["C=4, H=12"],
            **{**wide, **limits},
        )
    except UserError as error:
        raise UserError(f"{error}\n  in the small specification of `syno rules check`") from error
