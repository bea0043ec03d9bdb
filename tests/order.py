"""A random order of the tests, so that none counts on what another has left behind.

The head of a run names its number; SYNO_TEST_ORDER=NUMBER repeats the order, and SYNO_TEST_ORDER=0
is the order of the files.
"""

import os
import random
from collections.abc import Hashable

import pytest

VARIABLE = "SYNO_TEST_ORDER"


class Order:
    """Mixes the files, the classes of a file, and the tests of a class."""

    def __init__(self, number: int) -> None:
        self._number = number

    def pytest_report_header(self) -> str:
        return f"order of the tests: {VARIABLE}={self._number}"

    @pytest.hookimpl(tryfirst=True)  # fixtures of a class or a file are gathered after it
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._number:
            items[:] = mixed(items, self._number)


def mixed(items: list[pytest.Item], number: int) -> list[pytest.Item]:
    """The same tests in another order: those of a file, and those of a class, stay together."""
    draw = random.Random(number)
    places: dict[Hashable, float] = {}

    def place(*group: Hashable) -> float:
        if group not in places:
            places[group] = draw.random()
        return places[group]

    def key(item: pytest.Item) -> tuple[float, ...]:
        group = getattr(item, "cls", None)
        return place(item.path), place(item.path, group), draw.random()

    return sorted(items, key=key)


def register(config: pytest.Config) -> None:
    """Mix the tests of this run, in all of its processes alike."""
    # Processes of xdist inherit what the first one has drawn.
    number = os.environ.setdefault(VARIABLE, str(random.randrange(1, 10**6)))
    config.pluginmanager.register(Order(int(number)), "syno-order")
