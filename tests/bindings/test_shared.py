"""Objects of syno._core that several threads of Python use at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from syno import Specification, Tree, TreeNode, UserError, rule

SPECIFICATION = Specification(
    "[C_in: unordered, H]",
    "[C_out: unordered, H]",
    ["C_in: 2", "C_out: 2", "H: 1"],
    ["k=3: 2"],
    bindings=["C_in=4, C_out=8, H=6"],
    max_depth=5,
)


@contextmanager
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def below(tree: Tree, node: TreeNode, steps: int) -> list[str]:
    found = [node.fingerprint, *(operator.structure for operator in tree.operators(node))]
    if steps > 0:
        for child in tree.children(node):
            found += below(tree, child, steps - 1)
    return found


def in_threads(call: Callable[[int], None], threads: int) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            call(number)
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("own", [False, True], ids=["rules of Syno", "a rule of Python"])
def test_threads_of_python_ask_one_tree(own: bool) -> None:
    # A rule of Python lets other threads in while the tree waits for its answer.
    nothing = rule("X1", "nothing", kind="restriction", doc="What: nothing")
    rules = [nothing(lambda graph, step: False)] if own else []
    steps = 2 if own else 3
    alone = Tree(SPECIFICATION, rules=rules)
    expected = below(alone, alone.root, steps)
    assert len(expected) > 10
    shared = Tree(SPECIFICATION, rules=rules)
    found: list[list[str]] = [[] for _ in range(4)]

    def ask(number: int) -> None:
        found[number] = below(shared, shared.root, steps)

    with switching_often():
        in_threads(ask, 4)
    assert all(one == expected for one in found)


def test_a_rule_that_asks_the_tree_which_asks_it_is_refused() -> None:
    trees: list[Tree] = []

    def asks(graph: object, step: object) -> bool:
        return bool(trees) and not trees[0].children(trees[0].root)

    own = rule("X1", "asks", kind="restriction", doc="What: asks")(asks)
    tree = Tree(SPECIFICATION, rules=[own])
    node = tree.root
    trees.append(tree)
    with pytest.raises(UserError, match="a rule calls the tree that is evaluating this rule"):
        tree.children(node)
    trees.clear()
    assert tree.children(node)
