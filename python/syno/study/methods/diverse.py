"""Sampling that spreads its draws over kinds of operators."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from syno._util import checks
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.store.records import REJECTED
from syno.study.candidates import Candidate, Candidates
from syno.study.methods.history import History
from syno.study.methods.method import choose


@dataclass(frozen=True)
class Quota:
    """At least `share` of the operators that were not rejected have the feature `has`."""

    name: str
    share: float
    has: Callable[[Candidate], bool]

    def is_short(self, kept: Sequence[Candidate]) -> bool:
        """Whether the next operator must have the feature."""
        return sum(map(self.has, kept)) < math.ceil(self.share * (len(kept) + 1))


class DiverseSampling:
    """Draws without replacement and spreads them: 1. quotas, 2. strata, 3. a uniform draw.

    A stratum is (multiset of primitives, MACs within a factor of two). The draw comes from a
    stratum that was used least so far. `window` and `two_weights` are the shares of operators that
    look at neighbours and that have two weights. At most `pool` operators, drawn uniformly, are
    looked at: their plans cost time.
    """

    def __init__(
        self,
        candidates: Candidates,
        seed: int,
        *,
        window: float = 0.5,
        two_weights: float = 0.25,
        pool: int = 2000,
    ) -> None:
        for name, share in (("window", window), ("two_weights", two_weights)):
            if not 0 <= share <= 1:
                raise UserError(f"{name} is a share of the operators, from 0 to 1, got {share:g}")
        checks.whole("'pool'", pool, least=1)
        self._seed = seed
        self._quotas = (
            Quota("window", window, lambda c: c.has_window),
            Quota("two_weights", two_weights, lambda c: c.has_two_weights),
        )
        shuffled = sorted(candidates, key=lambda c: _rank(seed, c.key))
        self._pool = {c.key: c for c in shuffled[:pool]}
        self._rest = {c.key: c for c in shuffled[pool:]}

    def propose(self, history: History) -> Operator | None:
        """The next operator of the pool; when the pool is used up, any of the others."""
        used = history.keys
        left = [c for key, c in self._pool.items() if key not in used]
        if not left:
            rest = [c for key, c in self._rest.items() if key not in used]
            return choose(rest, self._seed, history.ask, "rest").operator if rest else None
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

    def _within_quotas(self, left: list[Candidate], kept: list[Candidate]) -> list[Candidate]:
        """Keeps what serves each quota that is short, as long as anything does."""
        for quota in self._quotas:
            if quota.is_short(kept):
                left = [c for c in left if quota.has(c)] or left
        return left


def _rank(seed: int, key: str) -> bytes:
    return hashlib.blake2b(f"{seed}:pool:{key}".encode(), digest_size=16).digest()


def _stratum(candidate: Candidate) -> tuple[tuple[tuple[str, int], ...], int]:
    return candidate.multiset, int(math.log2(max(candidate.macs, 1)))
