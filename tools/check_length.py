"""Checks that no source file has more than 600 lines, unless its head says why.

The reason is a comment within the first 20 lines: `Over 600 lines: <reason>`.

Usage: check_length.py [ROOT]    prints the files that are too long; exit code 1 when there is any
"""

import re
import statistics
import sys
from pathlib import Path

from project_files import ROOT, project_files, read_text

LIMIT = 600
HEAD = 20
SOURCES = {".h", ".cpp", ".py", ".sh", ".cmake"}
REASON = re.compile(rf"Over {LIMIT} lines: \w+")


def lengths(root: Path) -> dict[Path, list[str]]:
    """The lines of every source file below `root`."""
    texts = {name: read_text(root / name) for name in project_files(root) if name.suffix in SOURCES}
    return {name: text.splitlines() for name, text in texts.items() if text is not None}


def violations(root: Path) -> list[str]:
    """One line for each source file that is too long and does not say why."""
    return [
        f"{name}: {len(lines)} lines, more than {LIMIT}: split it, or say in the first {HEAD} lines"
        f" 'Over {LIMIT} lines: <reason>'"
        for name, lines in lengths(root).items()
        if len(lines) > LIMIT and not REASON.search("\n".join(lines[:HEAD]))
    ]


def main(arguments: list[str]) -> int:
    """Prints every violation, or the median; 1 when there is a violation."""
    root = Path(arguments[0]) if arguments else ROOT
    found = violations(root)
    counts = [len(lines) for lines in lengths(root).values()]
    summary = f"length: {len(counts)} files, median {statistics.median(counts or [0]):.0f} lines"
    print("\n".join(found) or summary)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
