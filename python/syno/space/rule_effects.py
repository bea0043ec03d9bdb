"""What each rule saves: a space listed again with one rule switched off after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from syno._util.json_types import JsonObject
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.options import EFFECT_NODES
from syno.space.rules import RuleInfo, describe_rule, list_rules, of_kind
from syno.space.space import Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Array = NDArray[np.int64]

# (what is listed now, how many listings are complete).
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Effect:
    """One listing: all rules on (`rule` is None), or one of them off.

    nodes: partial graphs under the last depth limit. more, fewer: operators that are listed with
    the rule off and not with it on, and the other way round, by their semantic keys. repeats: for
    exact rules, further keys of operators that are listed with the rule on, as random data and
    weights tell: what the rule catches and the key does not. exhausted: whether the depth was
    reached within the budget; otherwise the row is of a smaller depth. without: the kind of rules
    that is off in this row and in the one it is compared with.
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
    repeats: int
    exhausted: bool

    def as_json(self) -> JsonObject:
        """As plain values."""
        return asdict(self)


def rule_effects(
    specification: Specification,
    depth: int = 0,
    *,
    rules: Iterable[str] | None = None,
    max_nodes: int = EFFECT_NODES,
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

    def listed(what: str, off: list[str]) -> Space:
        nonlocal done
        if progress is not None:
            progress(what, done)
        space = Space.enumerate(
            specification, depth=depth, max_nodes=max_nodes, threads=threads, rules_off=off
        )
        done += 1
        return space

    everything = listed("all rules", [])
    yield _effect(None, "", everything, everything)
    exact = listed("approximate rules off", approximate)
    yield _effect(None, "approximate", exact, everything)
    for rule in wanted:
        alone = rule.kind == "exact"
        space = listed(f"{rule.id} off", [rule.id, *(approximate if alone else [])])
        yield _effect(rule, "approximate" if alone else "", space, exact if alone else everything)


def _effect(rule: RuleInfo | None, without: str, space: Space, before: Space) -> Effect:
    counts = space.counts()
    known = before.keys()
    new = [i for i in range(len(space)) if space.key(i) not in known]
    repeats = 0
    if new and rule is not None and rule.kind == "exact":
        repeats = _repeats([space[i] for i in new], before)
    return Effect(
        rule=None if rule is None else rule.id,
        name="" if rule is None else rule.name,
        kind="" if rule is None else rule.kind,
        without=without,
        graphs=counts["graphs"],
        structures=counts["structures"],
        operators=counts["operators"],
        nodes=counts["nodes"],
        more=len(new) - repeats,
        fewer=len(known - space.keys()),
        repeats=repeats,
        exhausted=space.exhausted,
    )


# Output elements that are computed of an operator under each of the smallest bindings, and the most
# elements of a tensor for that.
_ELEMENTS = 24
_BINDINGS = 2
_MOST = 1 << 22


def _repeats(new: list[Operator], before: Space) -> int:
    """How many of the operators compute what one of the space computes, with weights alike."""
    import numpy as np

    random = np.random.default_rng(0)
    sizes = sorted(before.specification.full_bindings, key=lambda one: sum(one.values()))
    layers: list[tuple[dict[str, int], _Array, list[int]]] = []
    for binding in sizes[:_BINDINGS]:
        both = new[0].shapes(binding)
        shape, output = both.input, both.output
        if math.prod(shape) <= _MOST:
            x = random.integers(1, 1000, size=shape)
            layers.append((binding, x, random.integers(0, math.prod(output), _ELEMENTS).tolist()))
    if not layers:
        return 0
    known: dict[tuple[int, ...], _Array] = {}

    def weight(shape: tuple[int, ...], place: int) -> _Array:
        if (place, *shape) not in known:
            known[(place, *shape)] = random.integers(1, 1000, size=shape)
        return known[(place, *shape)]

    def shapes(operator: Operator) -> list[list[tuple[int, ...]]]:
        return [[tuple(s) for s in operator.weight_shapes(binding)] for binding, _, _ in layers]

    def values(operator: Operator, order: Sequence[int]) -> tuple[int, ...]:
        """With the weight at each place as the weight of another place, as `order` says."""
        found: list[int] = []
        for (binding, x, elements), sizes in zip(layers, shapes(operator), strict=True):
            weights = [weight(size, order[place]) for place, size in enumerate(sizes)]
            found += operator.interpret_at(binding, x, weights, elements).tolist()
        return tuple(found)

    wanted = {tuple(sorted(shapes(operator)[0])) for operator in new}
    computed = {
        values(operator, range(len(shapes(operator)[0])))
        for operator in before
        if tuple(sorted(shapes(operator)[0])) in wanted
    }
    return sum(
        any(values(o, order) in computed for order in permutations(range(len(shapes(o)[0]))))
        for o in new
    )
