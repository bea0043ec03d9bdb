"""Checks that commits that touch the search say what they do to its results.

A commit that touches a file of SEARCH other than a test has a line `No functional change` in its
message, or a line `Signature: <16 hexadecimal digits>` with what `make signature` prints. The
newest such number is that of tests/golden/search/signature.txt. Older commits are exempt.

Usage: check_commits.py [ROOT]    prints the signature, or each commit with what is wrong
"""

import re
import subprocess
import sys
from pathlib import Path

from project_files import ROOT

SEARCH = tuple(f"src/syno/{name}" for name in ("graph", "spec", "key", "quality", "rules", "space"))
SIGNATURE = "tests/golden/search/signature.txt"
# The last commit that the rule does not ask.
FIRST = "c8471d632524fd6310ba2ec998d8551e928f70da"
_LINE = re.compile(r"^Signature: ([0-9a-f]{16})$", re.MULTILINE)
_UNCHANGED = re.compile(r"^No functional change\.?$", re.MULTILINE | re.IGNORECASE)


def violations(root: Path, first: str = FIRST) -> list[str]:
    """One line for each commit after `first` that does not say what it does, and for a signature
    that differs."""
    found = []
    newest = None
    # A copy without that commit (a shallow clone) has the newest commit alone.
    known = subprocess.run(
        ["git", "-C", str(root), "cat-file", "-e", f"{first}^{{commit}}"], capture_output=True
    )
    since = [f"{first}..HEAD"] if known.returncode == 0 else ["-1", "HEAD"]
    files = (*SEARCH, ":(exclude)*_test.cpp")
    log = _git(root, "log", "--no-merges", "-z", "--format=%h%n%B", *since, "--", *files)
    for entry in filter(None, log.split("\0")):
        name, _, message = entry.partition("\n")
        signature = _LINE.search(message)
        newest = newest or (signature and signature[1])
        if signature is None and not _UNCHANGED.search(message):
            title = message.split("\n")[0]
            found.append(
                f"{name} ({title}) touches the search and does not say what it changes\n"
                "  what to do: add a line `No functional change`, or `Signature: ...` with what "
                "`make signature` prints"
            )
    golden = _LINE.search((root / SIGNATURE).read_text())
    if golden is None:
        found.append(f"{SIGNATURE} has no signature\n  what to do: make signature")
    elif newest and newest != golden[1]:
        found.append(
            f"the newest commit that gives a signature says {newest}, {SIGNATURE} {golden[1]}"
        )
    return found


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
    ).stdout


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    if not (root / ".git").exists():
        print("no repository here: commits are not checked")
        return 0
    found = violations(root)
    print("\n".join(found) or (root / SIGNATURE).read_text().splitlines()[-1])
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
