"""Tree and Sampler.children: the space step by step, with counts and bounds."""

import pytest

from syno import Operator, Sampler, Space, Specification, Tree, UserError

SPECIFICATION = Specification(
    "[I: unordered, H, W]",
    "[O: unordered, H, W]",
    ["I: 2", "O: 2", "H: 0", "W: 0"],
    ["k=3: 3"],
    bindings=["I=8, O=8, H=16, W=16"],
    max_depth=6,
)


@pytest.fixture(scope="module")
def space():
    return Space.enumerate(SPECIFICATION)


def walk(tree):
    """Every node graph below the root, each once."""
    todo, met = [tree.root], set()
    while todo:
        node = todo.pop()
        if node.fingerprint in met:
            continue
        met.add(node.fingerprint)
        yield node
        todo += node.children


def test_children_expand_to_the_listing_and_counts_add_up(space):
    tree = Tree(SPECIFICATION, space)
    assert tree.exact
    nodes = list(walk(tree))
    assert len(nodes) == space.counts()["nodes"]
    operators = [o for p in nodes for o in p.operators]
    assert sorted(o.key for o in operators) == sorted(o.key for o in space)
    assert tree.root.count == len(space)
    for node in nodes:
        below = sum(child.count for child in node.children)
        assert node.count == below + len(node.operators)
        assert node.complete == bool(node.operators)
        assert node.depth + node.least_steps <= 6 or not node.count
        assert not node.complete or node.least_steps == 0


def test_live_steps_reach_the_same_operators(space):
    tree = Tree(SPECIFICATION)
    assert not tree.exact
    assert tree.root.count is None
    assert tree.root.at_least == 0
    nodes = list(walk(tree))
    assert {o.key for p in nodes for o in p.operators} == {o.key for o in space}
    assert len(nodes) == space.counts()["nodes"]


def test_counts_are_lower_bounds_where_the_space_is_listed_in_part(space):
    part = Space.enumerate(SPECIFICATION, depth=4)
    tree = Tree(SPECIFICATION, part, depth=6)
    assert tree.root.count is None
    assert tree.root.at_least == len(part) < len(space)
    assert sum(c.at_least for c in tree.root.children) == len(part)


def test_a_sampler_leads_a_search_of_ones_own():
    sampler = Sampler.from_specification(SPECIFICATION)
    node = sampler.root
    while not node.complete:
        node = max(sampler.children(node), key=lambda child: child.count)
    operator = node.operators[0]
    assert isinstance(operator, Operator)
    assert operator.key in {o.key for o in sampler.operators}
    assert operator.refusals() == []
    assert node.step in node.graph.text
    assert node.graph.depth == node.depth
    assert node == next(p for p in walk(Tree(SPECIFICATION)) if p.fingerprint == node.fingerprint)
    assert "operators" in repr(node)
    assert len({node, node}) == 1


def test_mistakes_are_named(space):
    tree = Tree(SPECIFICATION, space)
    with pytest.raises(UserError, match="the node does not belong to this tree"):
        tree.children(Tree(SPECIFICATION).root)
    with pytest.raises(UserError, match="the node does not belong to this tree"):
        tree.operators("reduce k")
    with pytest.raises(UserError, match="both a space and rules are given"):
        Tree(SPECIFICATION, space, rules_off=["R6a"])
    with pytest.raises(UserError, match="belongs to another specification"):
        Tree(SPECIFICATION.with_changes(max_depth=7), space)
    with pytest.raises(UserError, match="expected a Space, got list"):
        Tree(SPECIFICATION, [])
