"""Prints the requirements that pyproject.toml lists, one a line: those of the package and of `dev`.

Usage: requirements.py [EXTRA ...]
"""

import sys
import tomllib
from pathlib import Path


def requirements(pyproject: Path, extras: list[str]) -> list[str]:
    """The package's own requirements, then those of each extra, in the order of the file."""
    project = tomllib.loads(pyproject.read_text())["project"]
    known = project.get("optional-dependencies", {})
    lines = list(project["dependencies"])
    for extra in extras:
        if extra not in known:
            raise SystemExit(f"error: no extra '{extra}' in {pyproject}; there are {sorted(known)}")
        lines += known[extra]
    return lines


if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    print("\n".join(requirements(root / "pyproject.toml", sys.argv[1:])))
