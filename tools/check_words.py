"""Checks that the project names nothing that its readers do not have.

Its readers see only the repository: folders beside the checkout, paths of the machine it was
written on, hosts of package registries and talk about how the text came to be mean nothing to them.
Nor do files that a comment cites and that are gone.

Usage: check_words.py [ROOT]    prints file:line: what was found; exit code 1 if any
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
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


# A file in a comment, with or without its folders; FILE.py and NAME.toml stand for any.
CITED = re.compile(
    r"(?<![\w./<>{}*:$-])((?:[\w.-]+/)*[a-z0-9_.-]+\.(?:py|pyi|h|cpp|cmake|sh|toml|md|html))(?![\w/])"
)
# Files of users, of examples and of other projects.
ELSEWHERE = {
    *("both.cpp", "net.cpp", "first.h", "second-op.h", "op.py", "my_rules.py", "report.html"),
    *("ctypes.py", "kriz/cifar.html", "torchvision/csrc/ops/nms.cpp"),
    *("tests/x/test_y.py", "src/x_test.cpp"),
}


def comments(name: Path, text: str) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a source file, each with the line in which it begins."""
    if name.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_docstring = token.type == tokenize.STRING and token.string.endswith('"""')
            if token.type == tokenize.COMMENT or is_docstring:
                yield token.start[0], token.string
    elif name.suffix in (".cpp", ".h"):
        for number, line in enumerate(text.splitlines(), start=1):
            if found := re.search(r"(?<!:)//.*", line):
                yield number, found.group()


def missing_files(root: Path) -> list[str]:
    """One line `file:line: ...` for each file that a comment cites and that does not exist."""
    names = project_files(root)
    known = {"/".join(name.parts[at:]) for name in names for at in range(len(name.parts))}
    found = []
    for name in names:
        text = read_text(root / name) if name.suffix in (".py", ".cpp", ".h") else None
        missing = set(CITED.findall(text or "")) - known - ELSEWHERE
        if not missing:  # to look for comments takes longer
            continue
        for line, comment in comments(name, text or ""):
            found += [
                f"{name}:{line}: a file that does not exist is cited: '{cited}'"
                for cited in CITED.findall(comment)
                if cited in missing
            ]
    return found


def main(arguments: list[str]) -> int:
    """Prints every violation; 1 when there is one."""
    root = Path(arguments[0]) if arguments else ROOT
    found = violations(root) + missing_files(root)
    print("\n".join(found) or "words: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
