"""Checks that the project names nothing that its readers do not have.

Its readers see only the repository: folders beside the checkout, paths of the machine it was
written on, hosts of package registries and talk about how the text came to be mean nothing to them.

Usage: check_words.py [ROOT]    prints file:line: what was found; exit code 1 if any
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from project_files import ROOT, project_files, read_text


class Rule(NamedTuple):
    """A pattern no file may contain; `why` completes "... found:"."""

    pattern: str
    why: str
    exempt: tuple[str, ...] = ()


# The character classes of one letter keep this file from matching its own patterns.
RULES = [
    Rule(r"\.\./[s]hared", "a folder beside the checkout", exempt=(".ci/run",)),
    Rule(r"(?<![\w.])/[w]ork/", "a path of one machine"),
    Rule(r"(?<![\w.])/[r]oot/|(?<![\w.])/[h]ome/\w", "a path of one account"),
    Rule(r"/[t]mp/syno\b|/[o]pt/wheels", "a path of one machine"),
    Rule(r"\b[p]ypi\.org|\b[p]ythonhosted\.|\bdownload\.[p]ytorch\.", "a registry's host"),
    Rule(
        r"\b(deb|security|ftp)\.[d]ebian\.|\b[n]pmjs\.|\b[c]rates\.io|\bproxy\.[g]olang\.",
        "a registry's host",
    ),
    Rule(
        r"(?i)\bthis [s]ession\b|\b[w]orkplace\b|\bbefore-[s]top\b",
        "talk about how the text was made",
    ),
    Rule(
        r"(?i)\bthe [C]EO\b|\bthe [f]ounders?\b|\bthe lead [e]ngineer\b",
        "talk about who made the text",
    ),
    Rule(
        r"(?i)\b[C]laude\b|\b[A]nthropic\b|\b[C]hatGPT\b|\bAI [a]ssistant\b",
        "talk about how the text was made",
    ),
]


def violations(root: Path) -> list[str]:
    """One line `file:line: ...` for each forbidden word below `root`."""
    rules = [(re.compile(rule.pattern), rule) for rule in RULES]
    found = []
    for name in project_files(root):
        text = read_text(root / name)
        if text is None:
            continue
        for pattern, rule in rules:
            if name.as_posix() in rule.exempt:
                continue
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{line}: {rule.why} found: '{match.group()}'")
    return found


def main(arguments: list[str]) -> int:
    """Prints every violation; 1 when there is one."""
    root = Path(arguments[0]) if arguments else ROOT
    found = violations(root)
    print("\n".join(found) or "words: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
