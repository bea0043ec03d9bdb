"""The interface of search methods, which select the next operator.

The selection is a function of (members, options, seed, history). Random numbers depend on (seed,
proposal number) only, so a method has no state, and a resumed study proposes the same operators.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from syno._util import checks
from syno._util.errors import UserError, nearest
from syno.operators.operator import Operator
from syno.study.methods.history import History

T = TypeVar("T")


class Method(Protocol):
    """A search method.

    foresees: whether proposals hardly depend on results, so that the next one is known before.
    """

    foresees: bool

    def propose(self, history: History) -> Operator | None:
        """Return the next operator, or None if there is none left.

        The same history gives the same operator.
        """


def random_bytes(seed: int, ask: int, purpose: str) -> bytes:
    """Return 16 random bytes, which depend on the arguments only."""
    return hashlib.blake2b(f"{seed}:{ask}:{purpose}".encode(), digest_size=16).digest()


def choose(items: Sequence[T], seed: int, ask: int, purpose: str) -> T:
    """Select an item uniformly, by a random number that depends on the other arguments only."""
    return items[int.from_bytes(random_bytes(seed, ask, purpose), "big") % len(items)]


def share(name: str, value: float, of: str = "proposals") -> float:
    """Check an option that is a share of the proposals, or of something else."""
    if not 0 <= checks.number(f"'{name}'", value) <= 1:
        raise UserError(f"{name} is a share of the {of}, from 0 to 1, got {value:g}")
    return value


def make_with_options(
    what: str, make: Callable[..., T], *arguments: object, options: Mapping[str, object]
) -> T:
    """Call a function with options, which are its keyword-only parameters.

    Raises:
        UserError: for an option that the function does not have; `what` names the function.
    """
    parameters = inspect.signature(make).parameters.values()
    known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise UserError(
                f"{what} has no such option: '{checks.short(name)}'\n"
                f"  expected: {', '.join(known) or 'no options'}{nearest(name, known)}"
            )
    return make(*arguments, **options)
