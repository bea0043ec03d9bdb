"""Samplers: they enumerate the operators of a specification and sample from them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from syno import _core
from syno._util import checks
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.operators.specification import NO_TOTALS, Binding, Specification
from syno.space.options import MAX_NODES
from syno.space.rules import Rule, added_rules, rule_set
from syno.space.space import Space
from syno.space.tree import Tree, TreeNode

if TYPE_CHECKING:
    from torch import nn

    from syno.network.layers import LayerReport
    from syno.operators.layer import Layer

Progress = Callable[[int, int, int], bool]


class Statistics(TypedDict):
    """The statistics of an enumeration."""

    operators: int
    structures: int
    graphs: int
    nodes: int
    complete_depth: int
    exhausted: bool
    rules: str
    rejections: dict[str, int]
    orbits: NotRequired[int]


class Sampler:
    """Samples operators that map `input` to `output`, without repetition.

    The operators are enumerated at the first use, under growing depth limits: all operators up to
    the last depth limit that `max_nodes` covers, one for each semantic key.

    Args:
        input, output, primary, coefficient, limits: as in `Specification`.
        net: a network whose slots define the bindings; equal bindings get a multiplicity.
        seed: seed of the samples. The same arguments give the same operators.
        bindings: sizes of layers, if there is no network.
        max_nodes: number of partial graphs that the enumeration visits, over all depth limits.
        rules_off: rules to switch off, by id or name (`syno rules list`).
        rules: custom rules (`syno.rule`), applied after those of the catalogue.
        progress: called regularly with (depth, nodes, operators); the enumeration stops if it
            returns False.

    Raises:
        UserError: the network has no slots, or the specification is malformed.
    """

    def __init__(
        self,
        input: str,
        output: str,
        primary: Sequence[str],
        coefficient: Sequence[str] = (),
        *,
        net: nn.Module | None = None,
        seed: int = 0,
        bindings: Iterable[Binding | str] | None = None,
        max_nodes: int = MAX_NODES,
        rules_off: Iterable[str] = (),
        rules: Iterable[Rule] = (),
        progress: Progress | None = None,
        **limits: Any,
    ) -> None:
        if bindings is not None:
            limits["bindings"] = bindings
        specification = Specification(input, output, primary, coefficient, **limits)
        self._start(specification, net, seed, max_nodes, rules_off, rules, progress)

    @classmethod
    def from_specification(
        cls,
        specification: Specification,
        *,
        net: nn.Module | None = None,
        seed: int = 0,
        max_nodes: int = MAX_NODES,
        rules_off: Iterable[str] = (),
        rules: Iterable[Rule] = (),
        progress: Progress | None = None,
    ) -> Sampler:
        """Create a sampler of a specification.

        If `net` is given, its slots replace the bindings of the specification, and constraints on
        the MACs and parameters of the former bindings are removed.
        """
        if not isinstance(specification, Specification):
            raise UserError(f"expected a Specification, got {type(specification).__name__}")
        sampler = cls.__new__(cls)
        sampler._start(specification, net, seed, max_nodes, rules_off, rules, progress)
        return sampler

    def _start(
        self,
        specification: Specification,
        net: nn.Module | None,
        seed: int,
        max_nodes: int,
        rules_off: Iterable[str],
        rules: Iterable[Rule],
        progress: Progress | None,
    ) -> None:
        for name, value, least in (("seed", seed, 0), ("max_nodes", max_nodes, 1)):
            checks.whole(f"'{name}'", value, least)
        if net is not None:
            from syno.network.surgery import slot_bindings

            dropped = NO_TOTALS if specification.full_bindings else {}
            specification = specification.with_changes(
                **slot_bindings(net, specification), **dropped
            )
        if not specification.full_bindings:
            raise UserError(
                "the sampler has no layer to find operators for\n"
                "  expected: a network with slots, or bindings      got: neither\n"
                "  what to do: use Sampler(..., net=net), or bindings=[{...}] with values of "
                + ", ".join(v for v in specification.variables if v not in specification.defaults)
            )
        self._specification = specification
        self._seed = seed
        self._max_nodes = max_nodes
        self._progress = progress
        off = checks.names("rules_off", rules_off)
        self._added = added_rules(rules)
        self._rules = rule_set(off, self._added)
        self._rules_off = tuple(off)
        # Protects the state below; reentrant, because `progress` may use the sampler.
        self._turn = threading.RLock()
        self._space: Space | None = None
        self._tree: Tree | None = None
        self._operators: list[Operator] | None = None
        self._sampled = 0
        self._order: _core.UniformSamples | None = None

    @property
    def specification(self) -> Specification:
        """The specification of the operators, with the bindings of the network."""
        return self._specification

    @property
    def rules(self) -> str:
        """The version of the rule set."""
        return self._rules.version

    @property
    def space(self) -> Space:
        """The enumerated operators."""
        with self._turn:
            return self._enumerated()

    def _enumerated(self) -> Space:
        if self._space is None:
            progress = self._progress

            def watch(status: _core.EnumerateStatus) -> bool:
                if progress is None:
                    return True
                return progress(status.depth_limit, status.nodes, status.operators)

            core = _core.enumerate_space(
                self._specification._core, self._rules, 0, self._max_nodes, progress=watch
            )
            self._space = Space(
                core, self._specification, rules_off=self._rules_off, rules=self._added
            )
        return self._space

    @property
    def operators(self) -> list[Operator]:
        """The enumerated operators, one for each semantic key, sorted by depth and key.

        If the specification names symmetries, they are one for each orbit.
        """
        with self._turn:
            if self._operators is None:
                space = self._enumerated()
                if self._specification.symmetries:
                    self._operators = [space[orbit[0]] for orbit in space.orbits()]
                else:
                    self._operators = list(space)
            return self._operators

    def sample(self) -> Operator:
        """Return the next operator, which is uniform among those not yet sampled.

        Several threads may sample; each operator is returned once.

        Raises:
            UserError: no operator is left.
        """
        with self._turn:
            operators = self.operators
            if self._order is None:
                self._order = _core.UniformSamples(len(operators), self._seed)
            if self._sampled >= len(operators):
                raise UserError(self._exhausted())
            self._sampled += 1
            return operators[self._order.at(self._sampled - 1)]

    @property
    def root(self) -> TreeNode:
        """The empty graph from which all operators are built, for custom searches."""
        return self._rooted().root

    def children(self, node: TreeNode) -> list[TreeNode]:
        """Return the partial graphs with one more step from which an operator may be reached.

        Each has its step, the operators that are complete there, a lower bound for the number of
        further steps, and the number of operators below, which is exact if the enumeration is
        complete.
        """
        return self._rooted().children(node)

    def statistics(self) -> Statistics:
        """Return the statistics of the enumeration: operators, nodes, depth and rejections."""
        counts = self.space.counts()
        found: Statistics = {
            "operators": counts["operators"],
            "structures": counts["structures"],
            "graphs": counts["graphs"],
            "nodes": self._nodes(),
            "complete_depth": self.space.complete_depth,
            "exhausted": self.space.exhausted,
            "rules": self.rules,
            "rejections": self.space.rejections(),
        }
        if self._specification.symmetries:
            found["orbits"] = counts["orbits"]
        return found

    def replace(self, net: nn.Module, kernel_packs: Sequence[Layer]) -> LayerReport:
        """Put kernel packs into the slots of a network with the same bindings.

        A slot without a pack of its binding keeps its original layer.

        Returns:
            The report on the layers.

        Raises:
            UserError: the network has no slots, or packs are left over.
        """
        from syno.network.surgery import replace_with_packs

        return replace_with_packs(net, kernel_packs, self._specification)

    def _rooted(self) -> Tree:
        with self._turn:
            if self._tree is None:
                self._tree = Tree(self.specification, self.space)
            return self._tree

    def _nodes(self) -> int:
        return min(self.space.counts()["visited"], self._max_nodes)

    def _exhausted(self) -> str:
        reasons: Mapping[str, int] = self.space.rejections()
        most = ", ".join(f"{name} {count:,}" for name, count in list(reasons.items())[:5])
        if self._sampled:
            what = f"all {self._sampled} operators have been sampled"
            remedy = "increase budgets of variables, max_depth or max_nodes to get more operators"
        else:
            what = "no operator connects the shapes"
            remedy = self._remedy()
        return (
            f"{what}\n"
            f"  in {self._specification!r}, {self._nodes():,} partial graphs up to depth "
            f"{self.space.complete_depth}\n"
            f"  most frequent rejections: {most or 'none'}\n"
            f"  what to do: {remedy}"
        )

    def _remedy(self) -> str:
        """Find a change that gives operators by trying several."""
        wanted = self._specification
        fixed = wanted.defaults  # such as a batch that is passed through
        primary = [
            v if v.partition(":")[0].strip() in fixed else _at_least(_BUDGET, v)
            for v in wanted.primary
        ]
        larger: dict[str, object] = {"primary": primary}
        deeper: dict[str, object] = {"max_depth": wanted.limits["max_depth"] + _DEEPER}
        in_words: dict[str, Mapping[str, object]] = {
            f"max_depth={deeper['max_depth']}": deeper,
            f"primary variables with budgets such as {', '.join(primary)}": larger,
            "other constraints on MACs and parameters": NO_TOTALS,
            "larger budgets of the primary variables and a larger max_depth": larger | deeper,
            "larger budgets, a larger max_depth, no constraints on MACs and parameters": (
                larger | deeper | NO_TOTALS
            ),
        }
        nodes = min(self._max_nodes, _TRIAL_NODES)
        for words, changes in in_words.items():
            trial = wanted.with_changes(**changes)
            if _core.enumerate(trial._core, self._rules, 0, nodes).operators:
                return f"use {words}: this gives operators"
        if not self.space.exhausted:
            return f"increase max_nodes={self._max_nodes}: the enumeration ended before its depth"
        return "change the shapes or the sizes: larger budgets and max_depth do not suffice"


# Changes that are tried if a specification has no operators.
_BUDGET = 2
_DEEPER = 4
_TRIAL_NODES = 3000


def _at_least(budget: int, variable: str) -> str:
    name, _, given = variable.partition(":")
    return f"{name.strip()}: {max(budget, int(given))}"
