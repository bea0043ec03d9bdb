"""Effects of rules: a space is enumerated again with one rule after the other switched off."""

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

# Called with (the present enumeration, the number of completed enumerations).
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Effect:
    """An enumeration with all rules on (`rule` is None) or with one rule off.

    nodes: partial graphs under the last depth limit. more, fewer: operators that are found only
    with the rule off, and only with the rule on, by their semantic keys. repeats: for exact rules,
    operators with a new key that compute the same as an operator that is found with the rule on,
    for random data and weights: the rule recognizes them, and the key does not. exhausted: whether
    the depth was reached; otherwise the row is that of a smaller depth. without: the kind of rules
    that is off both in this row and in the row that it is compared with.
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
        """Return the effect as plain values."""
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
    """Enumerate the space with all rules, without approximate rules, and with each rule off.

    Exact rules are measured with all approximate rules off: an approximate rule depends on the form
    of an operator, and an exact rule changes this form. An exact rule must not change the
    operators then.

    Args:
        specification: the specification to enumerate.
        depth: maximum number of primitives; 0 uses the `max_depth` of the specification.
        rules: ids or names of the rules to switch off; None for all.
        max_nodes: maximum number of partial graphs in each enumeration.
        threads: number of threads; 0 uses all cores.
        progress: called before each enumeration.
    """
    wanted = list_rules() if rules is None else [describe_rule(rule) for rule in rules]
    approximate = of_kind("approximate")
    done = 0

    def enumerated(what: str, off: list[str]) -> Space:
        nonlocal done
        if progress is not None:
            progress(what, done)
        space = Space.enumerate(
            specification, depth=depth, max_nodes=max_nodes, threads=threads, rules_off=off
        )
        done += 1
        return space

    everything = enumerated("all rules", [])
    yield _effect(None, "", everything, everything)
    exact = enumerated("approximate rules off", approximate)
    yield _effect(None, "approximate", exact, everything)
    for rule in wanted:
        alone = rule.kind == "exact"
        space = enumerated(f"{rule.id} off", [rule.id, *(approximate if alone else [])])
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


# The number of output elements that are computed under each of the smallest bindings, and the
# largest number of elements of a tensor.
_ELEMENTS = 24
_BINDINGS = 2
_MOST = 1 << 22


def _repeats(new: list[Operator], before: Space) -> int:
    """Count the operators that compute the same as an operator of the space, with equal weights."""
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
        """Compute some outputs with the weights permuted by `order`."""
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
