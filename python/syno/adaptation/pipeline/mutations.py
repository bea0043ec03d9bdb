"""Operators one move away from others: the neighbors of good candidates.

`_core.moved_operators` knows the moves. Whether an operator is any good is for the fit to say.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from syno import _core
from syno.adaptation.pipeline.pool import Candidate, name_with_sizes


def mutations(
    parents: Sequence[Candidate], known: Sequence[Candidate], count: int, seed: int
) -> list[Candidate]:
    """So many neighbors of candidates, drawn at random, each parent's turn after the other's.

    A coefficient that a move adds has the value 2, and a window 3.

    Args:
        parents: the candidates, operators all of them.
        known: candidates that are not wanted again.
        count: the largest number of neighbors.
        seed: of the draw.
    """
    draw = random.Random(seed)
    done = {_identity(each) for each in known}
    lists = []
    for parent in parents:
        near = list(_neighbors(parent))
        draw.shuffle(near)
        lists.append(near)
    found: list[Candidate] = []
    for one in itertools.chain.from_iterable(itertools.zip_longest(*lists)):
        if len(found) == count:
            break
        if one is not None and _identity(one) not in done:
            done.add(_identity(one))
            found.append(one)
    return found


def _identity(candidate: Candidate) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Equal for the same operator with the same sizes."""
    return candidate.operator.canonical.structure, tuple(sorted(candidate.sizes.items()))


def _neighbors(parent: Candidate) -> Iterator[Candidate]:
    for operator, values in _core.moved_operators(
        parent.operator._core, list(parent.sizes.items())
    ):
        sizes = dict(values)
        name = name_with_sizes(f"near-{operator.structure[:8]}", sizes)
        yield Candidate(name, "mutation", operator.text, sizes)
