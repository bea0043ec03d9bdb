"""Results as JSON: whole enough to be committed as they are printed."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from syno.cli import framework, output


def print_results(found: Mapping[str, object], *, threads: int | None = None) -> None:
    """Print results with the command, the machine and the commit of the sources.

    Args:
        found: the results; an `environment` of their own is kept.
        threads: number of threads; None or 0: one for each core.
    """
    # Imported when the work is done, so that the database library does not count as its memory.
    from syno.space.rules import rule_set
    from syno.store.environment import capture_environment

    here = capture_environment(threads=threads or os.cpu_count() or 1, rules=rule_set(()).version)
    output.print_json(
        {
            "command": framework.this_command(),
            "environment": dataclasses.asdict(here),
            **found,
        }
    )
