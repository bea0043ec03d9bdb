"""Numbers beyond 64 bits, and what is no number, to every argument that the extension takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syno import Space, Specification, Tree, UserError, check_rule, walk
from syno_lab.experiments.ablation import distance_ablation
from syno_lab.experiments.canonical import canonical_rate

SMALL = Specification(
    "[C_in: unordered, H]",
    "[C_out: unordered, H]",
    ["C_in: 2", "C_out: 2", "H: 1"],
    ["k=3: 2"],
    bindings=["C_in=4, C_out=8, H=6"],
    max_depth=4,
)
SPACE = Space.enumerate(SMALL)

CALLS: dict[str, Callable[[Any], object]] = {
    "depth of a listing": lambda v: Space.enumerate(SMALL, depth=v),
    "threads of a listing": lambda v: Space.enumerate(SMALL, threads=v),
    "max_nodes of a listing": lambda v: Space.enumerate(SMALL, max_nodes=v),
    "index of an operator": lambda v: SPACE.key(v),
    "index of a depth": lambda v: SPACE.depth_of(v),
    "count of a draw": lambda v: SPACE.sample(v),
    "seed of a draw": lambda v: SPACE.sample(1, seed=v),
    "threads of a draw": lambda v: SPACE.sample(1, threads=v),
    "count of walks": lambda v: walk(SMALL, count=v),
    "seed of walks": lambda v: walk(SMALL, count=1, seed=v),
    "width of walks": lambda v: walk(SMALL, count=1, width=v),
    "threads of walks": lambda v: walk(SMALL, count=1, threads=v),
    "trials of a rule": lambda v: check_rule("R10a", SMALL, trials=v),
    "seed of a rule": lambda v: check_rule("R10a", SMALL, trials=1, seed=v),
    "trials": lambda v: distance_ablation(SMALL, trials=v),
    "seed of trials": lambda v: distance_ablation(SMALL, trials=1, seed=v),
    "depth of trials": lambda v: distance_ablation(SMALL, trials=1, depth=v),
    "threads of trials": lambda v: distance_ablation(SMALL, trials=1, threads=v),
    "samples": lambda v: canonical_rate(SMALL, samples=v),
    "seed of samples": lambda v: canonical_rate(SMALL, samples=1, seed=v),
    "threads of samples": lambda v: canonical_rate(SMALL, samples=1, threads=v),
    "depth of a tree": lambda v: Tree(SMALL, depth=v),
}
VALUES = (10**400, -(10**400), 10**5000, 2**64, -1, 1.5, float("nan"), "7", None, True)


@pytest.mark.parametrize("name", CALLS)
def test_what_does_not_fit_is_a_mistake_of_the_user(name: str) -> None:
    for value in VALUES:
        with pytest.raises(UserError, match=r"is an integer of at (least|most)") as refused:
            CALLS[name](value)
        assert "expected: an integer from" in str(refused.value)
        assert len(str(refused.value)) < 1000
