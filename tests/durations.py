"""Keeps how long each test took, for `make test-changed`, in pytest's cache."""

import pytest

KEY = "syno/seconds"


class Durations:
    """Sums what the phases of a test took; slow tests, which few runs have, do not count."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache = getattr(config, "cache", None)  # none with -p no:cacheprovider
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if "slow" not in report.keywords:
            before = self._seconds.get(report.nodeid, 0.0)
            self._seconds[report.nodeid] = round(before + report.duration, 3)

    def pytest_sessionfinish(self) -> None:
        if self._cache is not None and self._seconds:
            self._cache.set(KEY, self._cache.get(KEY, {}) | self._seconds)


def register(config: pytest.Config) -> None:
    """Keep the durations of this run, in the process that reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config), "syno-durations")
