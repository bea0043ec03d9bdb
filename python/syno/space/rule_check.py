"""Trying out a rule: what it refuses on random graphs, compared with what it keeps instead."""

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
from syno.space.rules import Rule, describe_rule, rule_set

# (refusals that were compared, graphs that were grown); False ends the check.
Progress = Callable[[int, int], bool]


@dataclass(frozen=True)
class RuleCheck:
    """What was found.

    graphs: random graphs that were grown; asked: steps that the rule was asked about; refused: of
    them, refused; compared: refused on graphs that differ, which were compared. Of those,
    equal_keys have the semantic key of what is kept, equal_values the same values for random data
    and weights, different ones other values; undecided are too large, or equal up to a numbering
    of weights that no key sees. mean_share, most_share: of the output elements, the part that
    differs. refused_graph and kept_graph: the refusal with the largest share, as texts.
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
        """Whether nothing speaks against the rule: an exact one may keep no other operator.

        A restriction loses what it refuses, and an approximate rule says what share differs.
        """
        return self.kind != "exact" or self.different == 0

    @property
    def verdict(self) -> str:
        """What was found, in words."""
        if self.compared == 0:
            return "refused nothing: other shapes, sizes or more graphs may meet its pattern"
        if self.kind == "restriction":
            return "leaves out what it refuses"
        if self.kind == "approximate":
            return f"keeps operators that differ on {self.mean_share:.1%} of the elements"
        if self.different:
            return f"is not exact: {self.different:,} operators of {self.compared:,} are others"
        return f"no difference in {self.compared:,} operators"

    def as_json(self) -> JsonObject:
        """As plain values."""
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
    """Compares `trials` refusals of a rule on random graphs with what the rule keeps.

    rule: one of one's own, or the id or name of one of the catalogue. Both graphs are read as
    operators of their own frontier and computed by the reference interpreter under the smallest
    binding, exactly. Shapes with ordered dimensions and small bindings leave least undecided.
    rules: other rules of one's own; restrictions among them count as they do in a search.
    """
    if not isinstance(specification, Specification) or not specification.full_bindings:
        raise UserError(
            "a rule is tried out on the layers of a specification\n"
            f"  expected: a Specification with a binding      got: {specification!r}"
        )
    for name, value in (("trials", trials), ("max_graphs", max_graphs)):
        checks.whole(f"'{name}'", value, least=1)
    checks.whole("'seed'", seed, least=0)
    own = [*rules, rule] if isinstance(rule, Rule) else list(rules)
    info = rule if isinstance(rule, Rule) else describe_rule(rule)
    known = rule_set((), dict.fromkeys(own))
    found = _core.check_rule(
        specification._core, known, info.id, trials, max_graphs, seed, progress
    )
    example = found["example"]
    return RuleCheck(
        rule=f"{info.id} {info.name}",
        kind=info.kind,
        refused_graph="" if example is None else example["refused"],
        kept_graph="" if example is None else example["kept"],
        graphs=found["graphs"],
        asked=found["asked"],
        refused=found["refused"],
        compared=found["compared"],
        equal_keys=found["equal_keys"],
        equal_values=found["equal_values"],
        different=found["different"],
        undecided=found["undecided"],
        mean_share=found["mean_share"],
        most_share=found["most_share"],
    )


def small_specification(limits: Mapping[str, Any]) -> Specification:
    """A specification with two dimensions in which most rules meet their patterns, with `limits`
    in place of its own."""
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
