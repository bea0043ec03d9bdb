"""Search methods by name. A new method needs a file and an entry in `METHODS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from syno._util.errors import UserError
from syno.study.candidates import Candidates
from syno.study.methods.diverse import DiverseSampling
from syno.study.methods.evolution import Evolution
from syno.study.methods.history import Entry, History, Trial
from syno.study.methods.local import LocalSearch
from syno.study.methods.method import Method, choose
from syno.study.methods.surrogate import SurrogateSearch
from syno.study.methods.uniform import UniformSampling

__all__ = [
    "METHODS",
    "DiverseSampling",
    "Entry",
    "Evolution",
    "History",
    "LocalSearch",
    "Method",
    "SurrogateSearch",
    "Trial",
    "UniformSampling",
    "choose",
    "make_method",
]

METHODS: dict[str, Callable[..., Method]] = {
    "uniform": UniformSampling,
    "diverse": DiverseSampling,
    "local": LocalSearch,
    "evolution": Evolution,
    "surrogate": SurrogateSearch,
}


def make_method(
    name: str, candidates: Candidates, seed: int, options: Mapping[str, object]
) -> Method:
    """Make the search method of this name.

    Raises:
        UserError: for an unknown name, and for an unknown option.
    """
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise UserError(f"there is no search method '{name}'\n  expected: one of {known}")
    try:
        return METHODS[name](candidates, seed, **options)
    except TypeError as error:
        raise UserError(f"the search method '{name}' has no such option: {error}") from None
