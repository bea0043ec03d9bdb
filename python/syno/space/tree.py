"""Trees: the space step by step, for searches that move from partial graph to partial graph."""

from __future__ import annotations

from collections.abc import Iterable

from syno import _core
from syno._util import checks
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.rules import PartialGraph, Rule, added_rules, rule_set
from syno.space.space import Space, check_layers


class TreeNode:
    """A partial graph in a tree; nodes with equal graphs are equal, whatever their path."""

    __slots__ = ("_core", "_tree")

    def __init__(self, core: _core.TreeNode, tree: Tree) -> None:
        self._core = core
        self._tree = tree

    @property
    def step(self) -> str:
        """The last step, as a line of the text format; empty for the root."""
        return self._core.step

    @property
    def graph(self) -> PartialGraph:
        """The partial graph of the node."""
        return PartialGraph(self._core.graph)

    @property
    def depth(self) -> int:
        """The number of primitives of the partial graph."""
        return self._core.depth

    @property
    def fingerprint(self) -> str:
        """The same for graphs that differ in the order of steps or the names of reductions."""
        return self._core.fingerprint

    @property
    def least_steps(self) -> int:
        """The completion bound: a lower bound for the number of further steps."""
        return self._core.least_steps

    @property
    def count(self) -> int | None:
        """The number of operators at or below the node; None if the space is not enumerated."""
        return self._core.count if self._core.exact else None

    @property
    def at_least(self) -> int:
        """The number of known operators at or below the node."""
        return self._core.count

    @property
    def operators(self) -> list[Operator]:
        """The operators that are complete at the node."""
        return self._tree.operators(self)

    @property
    def complete(self) -> bool:
        """Whether operators are complete at the node."""
        return bool(self.operators)

    @property
    def children(self) -> list[TreeNode]:
        """The partial graphs with one more step from which an operator may be reached."""
        return self._tree.children(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeNode) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        below = f"{self.count:,} operators" if self.count is not None else "not counted"
        return f"<TreeNode of {self.depth} steps, {below}: {self.step or 'the root'}>"


class Tree:
    """The operators of a specification as a tree of partial graphs.

    If the space is enumerated completely, each node has one parent and an exact count, which is the
    number of its own operators plus the counts of its children. Otherwise, the children are all
    steps that specification, rules and completion bound allow: a graph may be reached on several
    paths (with the same `fingerprint`), counts include only the operators found so far, and an
    operator may repeat another one (with the same key).

    Args:
        specification: the specification.
        space: an enumeration of the same specification, whose rules the tree uses.
    """

    def __init__(
        self,
        specification: Specification,
        space: Space | None = None,
        *,
        depth: int = 0,
        rules_off: Iterable[str] = (),
        rules: Iterable[Rule] = (),
        bound: str = "full",
    ) -> None:
        """Create a tree.

        Args:
            depth: maximum number of primitives; 0 uses that of the space or the specification.
            rules_off, rules, bound: as in `Space.enumerate`; not allowed together with a space.
        """
        check_layers(specification)
        checks.whole("'depth'", depth, least=0)
        off, added = checks.names("rules_off", rules_off), added_rules(rules)
        checks.text("'bound'", bound)
        if space is not None:
            if not isinstance(space, Space):
                raise UserError(f"expected a Space, got {type(space).__name__}")
            if space.specification.key != specification.key:
                raise UserError(
                    "the space belongs to another specification\n"
                    f"  expected: {specification!r}      got: {space.specification!r}"
                )
            if off or added:
                raise UserError(
                    "both a space and rules are given\n"
                    "  expected: either a space, which defines the rules, or rules"
                )
            off, added = space.rules_off, space.custom_rules
            if depth == 0 and space.exhausted:
                depth = space.depth_limit
        self._specification = specification
        self._space = space
        self._core = _core.Tree(
            specification._core,
            rule_set(off, added),
            depth,
            None if space is None else space._core,
            bound,
        )

    @property
    def exact(self) -> bool:
        """Whether the space is enumerated completely, so that counts are exact."""
        return self._core.exact

    @property
    def root(self) -> TreeNode:
        """The empty graph, which holds only the coordinates of the output."""
        return TreeNode(self._core.root(), self)

    def children(self, node: TreeNode) -> list[TreeNode]:
        """Return the partial graphs with one more step, in a fixed order."""
        self._check(node)
        return [TreeNode(child, self) for child in self._core.children(node._core)]

    def operators(self, node: TreeNode) -> list[Operator]:
        """Return the operators that are complete at the node."""
        self._check(node)
        return [
            Operator(found.op, self._specification, key=found.key)
            for found in self._core.operators(node._core)
        ]

    def _check(self, node: object) -> None:
        if not isinstance(node, TreeNode) or node._tree is not self:
            raise UserError(
                "the node does not belong to this tree\n"
                f"  expected: a TreeNode of this tree      got: {node!r}"
            )
