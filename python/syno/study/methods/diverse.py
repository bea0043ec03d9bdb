"""Stratified sampling: samples are spread over kinds of operators."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from syno._util import checks
from syno.operators.operator import Operator
from syno.store.records import REJECTED
from syno.study.members import Member, Members
from syno.study.methods.history import History
from syno.study.methods.method import choose, share
from syno.study.methods.proposed import Proposed


@dataclass(frozen=True)
class Quota:
    """At least `share` of the operators that were not rejected have the feature `has`."""

    name: str
    share: float
    has: Callable[[Member], bool]

    def is_short(self, kept: Sequence[Member]) -> bool:
        """Return whether the next operator must have the feature."""
        return sum(map(self.has, kept)) < math.ceil(self.share * (len(kept) + 1))


class DiverseSampling:
    """Samples without replacement, by quotas first, then by strata, and then uniformly.

    A stratum is a multiset of primitives and a range of MACs within a factor of two. The next
    operator comes from a stratum that was used least.

    Args:
        members: the operators of the space.
        seed: of the random numbers.
        window: the least share of operators that read neighboring positions.
        two_weights: the least share of operators with two weights.
        pool: the number of operators, sampled uniformly, that are considered first. It is limited,
            because planning each of them takes time.
    """

    foresees = True

    def __init__(
        self,
        members: Members,
        seed: int,
        *,
        window: float = 0.5,
        two_weights: float = 0.25,
        pool: int = 2000,
    ) -> None:
        share("window", window, of="operators")
        share("two_weights", two_weights, of="operators")
        checks.whole("'pool'", pool, least=1)
        self._seed = seed
        self._quotas = (
            Quota("window", window, lambda c: c.has_window),
            Quota("two_weights", two_weights, lambda c: c.has_two_weights),
        )
        shuffled = sorted(members, key=lambda c: _rank(seed, c.key))
        self._pool = {c.key: c for c in shuffled[:pool]}
        self._rest = shuffled[pool:]
        self._proposed = Proposed([c.key for c in self._rest])

    def propose(self, history: History) -> Operator | None:
        """Select the next operator of the pool; after the pool, any of the other operators."""
        self._proposed.follow(history)
        left = [c for key, c in self._pool.items() if key not in self._proposed.keys]
        if not left:
            if not self._proposed.left:
                return None
            number = choose(range(self._proposed.left), self._seed, history.ask, "rest")
            return self._rest[self._proposed.unused(number)].operator
        kept = [
            self._pool[entry.key]
            for entry in history.entries
            if entry.status != REJECTED and entry.key in self._pool
        ]
        left = self._within_quotas(left, kept)
        uses = Counter(map(_stratum, kept))
        least = min(uses[_stratum(c)] for c in left)
        strata = sorted({s for c in left if uses[s := _stratum(c)] == least})
        stratum = choose(strata, self._seed, history.ask, "stratum")
        inside = [c for c in left if _stratum(c) == stratum]
        return choose(inside, self._seed, history.ask, "draw").operator

    def _within_quotas(self, left: list[Member], kept: list[Member]) -> list[Member]:
        """Keep the operators that satisfy each unsatisfied quota, if there are any."""
        for quota in self._quotas:
            if quota.is_short(kept):
                left = [c for c in left if quota.has(c)] or left
        return left


def _rank(seed: int, key: str) -> bytes:
    return hashlib.blake2b(f"{seed}:pool:{key}".encode(), digest_size=16).digest()


def _stratum(member: Member) -> tuple[tuple[tuple[str, int], ...], int]:
    return member.multiset, int(math.log2(max(member.macs, 1)))
