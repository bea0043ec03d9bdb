"""Tree: the space step by step, for searches that go down from partial graph to partial graph."""

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
    """A partial graph in a tree. Nodes are equal when their graphs are, whatever the way there."""

    __slots__ = ("_core", "_tree")

    def __init__(self, core: _core.TreeNode, tree: Tree) -> None:
        self._core = core
        self._tree = tree

    @property
    def step(self) -> str:
        """The step that led here, as a line of the text format; empty for the root."""
        return self._core.step

    @property
    def graph(self) -> PartialGraph:
        """The partial graph itself."""
        return PartialGraph(self._core.graph)

    @property
    def depth(self) -> int:
        """Primitives so far."""
        return self._core.depth

    @property
    def mark(self) -> str:
        """The same for graphs that differ in the order of steps or the names of reductions."""
        return self._core.mark

    @property
    def least_steps(self) -> int:
        """No operator is complete before so many more steps: the completion bound."""
        return self._core.least_steps

    @property
    def count(self) -> int | None:
        """How many operators lie at or below; None where the space is not listed."""
        return self._core.count if self._core.exact else None

    @property
    def at_least(self) -> int:
        """How many operators at or below are known."""
        return self._core.count

    @property
    def operators(self) -> list[Operator]:
        """The operators that are complete here."""
        return self._tree.operators(self)

    @property
    def complete(self) -> bool:
        """Whether there are any."""
        return bool(self.operators)

    @property
    def children(self) -> list[TreeNode]:
        """The partial graphs one step further from which an operator may be reached."""
        return self._tree.children(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeNode) and self.mark == other.mark

    def __hash__(self) -> int:
        return hash(self.mark)

    def __repr__(self) -> str:
        below = f"{self.count:,} operators" if self.count is not None else "not counted"
        return f"<TreeNode of {self.depth} steps, {below}: {self.step or 'the root'}>"


class Tree:
    """The operators of a specification, reached step by step.

    space: what is listed of the same specification; the tree has its rules then. Where that is all
    of it, every node has one parent and an exact count: its own operators and the counts of its
    children add up to it. Otherwise children are all steps that specification, rules and completion
    bound let pass; a graph may be reached in several ways then (`mark` tells), counts are what is
    listed so far, and an operator may be a repeat of one elsewhere (its key tells).
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
        """depth: primitives in an operator; 0 takes the space's, or the specification's.

        rules_off, rules, bound: as in Space.enumerate; a space brings its rules.
        """
        check_layers(specification)
        checks.whole("'depth'", depth, least=0)
        off, added = tuple(rules_off), added_rules(rules)
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
                    "  expected: rules where there is no space; a space brings its own"
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
        """Whether the space is listed completely, and counts are exact."""
        return self._core.exact

    @property
    def root(self) -> TreeNode:
        """The empty graph: the output's iterators."""
        return TreeNode(self._core.root(), self)

    def children(self, node: TreeNode) -> list[TreeNode]:
        """The partial graphs one step further, in a fixed order."""
        self._check(node)
        return [TreeNode(child, self) for child in self._core.children(node._core)]

    def operators(self, node: TreeNode) -> list[Operator]:
        """The operators that are complete at the node itself."""
        self._check(node)
        return [
            Operator(found.op, self._specification, key=found.key)
            for found in self._core.operators(node._core)
        ]

    def _check(self, node: object) -> None:
        if not isinstance(node, TreeNode) or node._tree is not self:
            raise UserError(
                "a node of this tree is needed: its root, or a child of one\n"
                f"  expected: a TreeNode of this tree      got: {node!r}"
            )
