"""Command lines as messages name them: quoted, so that a shell reads them as they are meant."""

from __future__ import annotations

import shlex

# The store of commands and functions that are not given one.
DEFAULT_STORE = "runs.db"


def command_line(*words: str, **options: str | None) -> str:
    """A command of `syno` with the options that are given: "syno show op.txt --store s.db"."""
    given = [part for name, value in options.items() if value for part in (_flag(name), value)]
    return shlex.join(["syno", *words, *given])


def report_line(store: str, study: str) -> str:
    """The command that writes the report of a study."""
    return command_line("report", store=store, study=study, o="report.html")


def _flag(name: str) -> str:
    return f"--{name}" if len(name) > 1 else f"-{name}"
