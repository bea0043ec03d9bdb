"""The project's own files: what git tracks or would track. Used by the checks beside it.

Usage: project_files.py PATTERN [PATTERN ...]    prints matching paths, one a line
"""

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {".git", ".venv", "build", "dist", "__pycache__"}  # outside a git checkout


def project_files(root: Path) -> list[Path]:
    """The project's files, sorted, relative to `root`; new ones count, ignored ones do not."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = (
        subprocess.run(git, capture_output=True, text=True) if (root / ".git").exists() else None
    )
    if found is not None and found.returncode == 0:
        names = {Path(name) for name in found.stdout.split("\0") if name}
    else:
        names = {path.relative_to(root) for path in root.rglob("*")}
        names = {name for name in names if not SKIPPED & set(name.parts)}
    return sorted(name for name in names if (root / name).is_file())


def read_text(path: Path) -> str | None:
    """The text of a file, or None for a binary one."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


if __name__ == "__main__":
    for name in project_files(ROOT):
        if any(fnmatch(str(name), pattern) for pattern in sys.argv[1:]):
            print(name)
