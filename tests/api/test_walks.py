"""walk: operators of spaces that are too large to list, weights and estimates."""

import pytest

import syno
from syno import Space, Specification, UserError

SQUARE = Specification(
    "[I: unordered, H, W]",
    "[O: unordered, H, W]",
    ["I: 2", "O: 2", "H: 0", "W: 0"],
    ["k=3: 3"],
    bindings=["I=8, O=8, H=16, W=16"],
    max_depth=7,
)


@pytest.fixture(scope="module")
def space():
    return Space.enumerate(SQUARE)


def test_walks_find_operators_of_the_space(space):
    assert space.exhausted
    walks = syno.walk(SQUARE, count=600, width=8, seed=1)
    known = {o.key for o in space}
    found = [o.key for o in walks]
    assert len(found) == len(set(found)) == len(walks) > 100
    assert set(found) <= known
    fresh = walks[0].with_specification(SQUARE)
    assert fresh.key == walks[0].key
    assert fresh.refusals() == []


def test_every_operator_is_reached_in_the_end(space):
    walks = syno.walk(SQUARE, count=40_000, width=100)
    assert {o.key for o in walks} == {o.key for o in space}
    assert walks.coverage > 0.99
    assert len(space) <= walks.at_least <= len(space) + 5


def test_the_size_of_the_space_is_estimated(space):
    walks = syno.walk(SQUARE, count=4000, width=20)
    exact = space.counts()["structures"]
    estimate, error = walks.structures
    assert abs(estimate - exact) < 4 * error
    assert error < 0.05 * exact
    assert sum(walks.weights) == pytest.approx(estimate)
    statistics = walks.statistics()
    assert statistics["operators"] == len(walks)
    assert (statistics["structures"], statistics["structures_error"]) == walks.structures
    assert statistics["walks"] == 4000
    assert statistics["flocks"] == 200


def test_a_seed_decides_and_threads_do_not():
    first, again, other = (
        syno.walk(SQUARE, count=200, width=10, seed=seed, threads=threads)
        for seed, threads in ((3, 1), (3, 3), (4, 1))
    )
    assert [o.text for o in first] == [o.text for o in again]
    assert first.weights == again.weights
    assert [o.key for o in first] != [o.key for o in other]


def test_walks_end_where_they_are_told():
    assert all(sum(o.primitives().values()) <= 5 for o in syno.walk(SQUARE, count=200, depth=5))
    few = syno.walk(SQUARE, max_operators=5, width=5)
    assert len(few) >= 5
    assert few.walks < 100
    assert syno.walk(SQUARE, seconds=1e-6).walks < 1000
    seen = []
    stopped = syno.walk(SQUARE, width=5, progress=lambda *args: seen.append(args) or len(seen) < 2)
    assert len(seen) == 2
    assert seen[-1] == (stopped.walks, len(stopped), stopped.coverage)
    assert "coverage" in repr(stopped)


def test_mistakes_are_named():
    with pytest.raises(UserError, match="'count' is an integer of at least 1, got 0"):
        syno.walk(SQUARE, count=0)
    with pytest.raises(UserError, match="'seed' is an integer of at least 0, got -1"):
        syno.walk(SQUARE, seed=-1)
    with pytest.raises(UserError, match="unknown bound 'tight'"):
        syno.walk(SQUARE, bound="tight")
    with pytest.raises(UserError, match="no layer to enumerate operators for"):
        syno.walk(Specification("[H]", "[H]", ["H: 1"]))
    with pytest.raises(UserError, match="expected a Specification, got str"):
        syno.walk("[H] -> [H]")


def test_rules_of_ones_own_are_asked():
    @syno.rule("U1", "no-window", kind="restriction", steps=["unfold"])
    def no_window(graph, step):
        """no Unfold"""
        return True

    walks = syno.walk(SQUARE, count=200, width=10, rules=[no_window], threads=2)
    assert len(walks) > 10
    assert all("unfold" not in o.primitives() for o in walks)
    tree = syno.Tree(SQUARE, rules=[no_window], depth=4)
    assert not any(child.step.startswith("unfold") for child in _below(tree.root))


def _below(node):
    yield node
    for child in node.children:
        yield from _below(child)
