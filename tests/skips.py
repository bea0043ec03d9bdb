"""Which tests may be skipped where everything is installed, as in continuous integration.

With SYNO_SKIPS=strict, a skip for another reason than these fails the run: a missing package must
not pass as success.
"""

import os
import re

import pytest

# What the set-up cannot install on every machine, each as a pattern of the reason for the skip. The
# Python packages that tests need are in locks/: a test that misses one is an unexpected skip.
EXPECTED = (
    r"needs a GPU",
    r"no PostgreSQL here",
    r"Graphviz is not installed",
    r"the processor has other vectors",
    r"no GCC with sanitizers",
    r"no cross compiler or emulator for",
)
_expected = re.compile("|".join(EXPECTED))


class Skips:
    """Gathers the skips of a run that EXPECTED does not name, and fails the run for them."""

    def __init__(self) -> None:
        self.unexpected: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._gather(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._gather(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.unexpected:
            terminalreporter.section("unexpected skips (SYNO_SKIPS=strict)")
            for line in self.unexpected:
                terminalreporter.write_line(line)

    def _gather(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        # An expected failure is reported as a skip, too; pytest sees to it.
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not _expected.search(reason):
            self.unexpected.append(f"{report.nodeid}: {reason}")


def register(config: pytest.Config) -> None:
    """Watch the skips of this run, if SYNO_SKIPS asks for it, in the process that reports."""
    if os.environ.get("SYNO_SKIPS") == "strict" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skips(), "syno-skips")
