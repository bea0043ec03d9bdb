"""Which values of a parameter run in `make check-all` alone."""

from collections.abc import Iterable
from typing import Any

import pytest


def with_slow(values: Iterable[Any], *slow: Any) -> list[Any]:
    """The values as parameters of a test, which is slow with those in `slow`."""
    return [pytest.param(v, marks=pytest.mark.slow if v in slow else ()) for v in values]


def slow_but(values: Iterable[Any], *quick: Any) -> list[Any]:
    """The values as parameters of a test, which is slow with all but those in `quick`."""
    every = list(values)
    return with_slow(every, *(v for v in every if v not in quick))
