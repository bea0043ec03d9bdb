"""The operators that a study may propose."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from syno import _core
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.features import FeatureTable
from syno.network.sampler import Sampler
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.store.objectives import Objectives
from syno.store.records import digest


class EnumeratedSpace(Protocol):
    """An enumerated set of operators. Its order depends on specification and seed only.

    specification: (key, JSON content); rules: version of the rule set.
    """

    operators: Sequence[Operator]
    specification: tuple[str, Json]
    rules: str

    def rejections(self) -> dict[str, int]:
        """Count the rejected graphs of the enumeration by reason."""

    def parse(self, text: str) -> Operator:
        """Read an operator from its text."""


@dataclass(frozen=True)
class Member:
    """An operator of a space, with the properties that methods use, computed on first use."""

    operator: Operator
    key: str

    @cached_property
    def macs(self) -> int:
        """The MACs in all layers that the operator replaces, for one sample."""
        return int(self.operator.macs())

    @cached_property
    def params(self) -> int:
        """The parameters in all layers that the operator replaces."""
        return int(self.operator.params())

    @cached_property
    def primitives(self) -> dict[str, int]:
        """The number of each primitive."""
        return dict(self.operator.primitives())

    @cached_property
    def multiset(self) -> tuple[tuple[str, int], ...]:
        """The primitives as a value that can be compared and hashed."""
        return tuple(sorted((name, n) for name, n in self.primitives.items() if n))

    @property
    def has_window(self) -> bool:
        """Whether the operator reads neighboring positions."""
        return self.primitives.get("unfold", 0) > 0

    @property
    def has_two_weights(self) -> bool:
        """Whether the operator has at least two weight tensors, one for each contraction."""
        return self.primitives.get("contract", 0) >= 2


class Members:
    """The operators of a space with distinct semantic keys, the first of each key."""

    def __init__(self, space: EnumeratedSpace, objectives: Objectives | None = None) -> None:
        """List the operators of a space.

        Args:
            space: the space.
            objectives: their constraints on MACs and parameters exclude operators.

        Raises:
            UserError: if no operator satisfies these constraints.
        """
        first: dict[str, Operator] = {}
        for operator in space.operators:
            first.setdefault(operator.key, operator)
        self._items = [Member(operator, key) for key, operator in first.items()]
        if objectives is not None and objectives.limit_costs:
            self._exclude(objectives)

    def _exclude(self, objectives: Objectives) -> None:
        kept = [c for c in self._items if objectives.known_before_training(c.macs, c.params)]
        if not kept:
            given = ", ".join(map(str, objectives.constraints))
            least = min(c.macs for c in self._items)
            fewest = min(c.params for c in self._items)
            raise UserError(
                f"none of {len(self._items)} operators satisfies the constraints {given}\n"
                f"  the fewest MACs of an operator: {least:,}; parameters: {fewest:,}\n"
                "  what to do: relax the constraints, or enumerate more operators (--max-nodes)"
            )
        self._items = kept

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._items)

    def __getitem__(self, place: int) -> Member:
        return self._items[place]

    def place(self, key: str) -> int | None:
        """Return the place of an operator by its key; None if the space lacks it."""
        return self._places.get(key)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {member.key: place for place, member in enumerate(self._items)}

    @cached_property
    def search_space(self) -> _core.SearchSpace:
        """The operators as the search methods in C++ see them, by place."""
        return _core.SearchSpace([c.operator._core for c in self._items])

    def neighbors(self, key: str, count: int) -> list[Member]:
        """Return the nearest operators of an operator, and all others at the same distance.

        A move changes, adds, removes or replaces one step and completes the operator again. The
        distance of two operators counts the steps that they do not share.

        Raises:
            UserError: if the space lacks the operator.
        """
        place = self.place(key)
        if place is None:
            raise UserError(f"no operator of the space has the key '{key}'")
        return [self._items[found] for found in self.search_space.nearest(place, count)]

    def features(self, places: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the features of operators (`syno.features`), [places, features].

        Each operator is examined once. What cannot be computed is NaN.
        """
        return self._features.matrix(self._items[place].operator for place in places)

    @cached_property
    def _features(self) -> FeatureTable:
        return FeatureTable()

    @cached_property
    def digest(self) -> str:
        """A digest of the content: equal digests lead to equal proposals."""
        return digest("\n".join(c.key for c in self._items))


class SamplerSpace:
    """The space that a `syno.Sampler` enumerates.

    lower: the specification with the layers of each lower rung of a ladder, by its name. An
        operator has to satisfy these as well.

    Raises:
        UserError: if no operator satisfies all of them.
    """

    def __init__(self, sampler: Sampler, lower: Mapping[str, Specification] | None = None) -> None:
        self._sampler = sampler
        self._statistics = sampler.statistics()
        self.operators: Sequence[Operator] = sampler.operators
        if not self.operators:
            sampler.sample()  # a UserError: no operator connects the shapes, and why
        self._rejected: dict[str, int] = {}
        for name, specification in (lower or {}).items():
            self._filter(name, specification)
        self.layers = sampler.specification  # with the layers of the network
        self.specification = (
            sampler.specification.key,
            json.loads(sampler.specification.to_json()),
        )
        self.rules = sampler.rules

    def rejections(self) -> dict[str, int]:
        """Count the rejected graphs of the enumeration by reason."""
        return dict(self._statistics["rejections"]) | self._rejected

    def _filter(self, name: str, specification: Specification) -> None:
        reasons_of = [operator.refusals(specification) for operator in self.operators]
        kept = [o for o, found in zip(self.operators, reasons_of, strict=True) if not found]
        if not kept:
            reasons = Counter(text for found in reasons_of for _, text in found)
            raise UserError(
                f"none of {len(reasons_of)} operators is admitted at rung '{name}' of the ladder\n"
                f"  most frequent reason: {reasons.most_common(1)[0][0]}\n"
                f"  layers of the rung: {'; '.join(map(_sizes, specification.bindings))}\n"
                "  what to do: use a ladder with a higher resolution or width at that rung,\n"
                "              or relax the constraints"
            )
        if len(kept) < len(reasons_of):
            self._rejected[f"rung:{name}"] = len(reasons_of) - len(kept)
        self.operators = kept

    @property
    def structures(self) -> int:
        """The number of structures, before operators with equal semantic keys were merged."""
        return int(self._statistics["structures"])

    def parse(self, text: str) -> Operator:
        """Read an operator from its text, under the specification of the space."""
        return Operator.from_text(text, self._sampler.specification)


def _sizes(binding: Mapping[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in binding.items())
