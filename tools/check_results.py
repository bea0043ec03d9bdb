"""Checks that every file of results says which sources it comes from.

A file of bench/results has the commit of the sources that ran, as syno.store.environment has it:
with a "+" where they were changed. A result of changed sources, or without a commit of this
history, cannot be repeated. Its file says so in `provenance`, and so does each page that quotes it:

    "provenance": {"tree": "changed", "commit": "unknown", "note": "what else is to be known"}

The first line of a .jsonl file has this field; a text file has lines such as
`# provenance commit: unknown`.

Usage: check_results.py [ROOT]    prints each file that says nothing; exit code 1 if there is any
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from project_files import ROOT

FOLDER = Path("bench/results")
CHANGED = "changed"
MARKS = {
    "tree": {CHANGED: "from changed sources"},
    "commit": {
        "unknown": "its commit is not recorded",
        "written afterwards": "its commit was written afterwards",
    },
}
NOTE = "note"
_COMMIT = re.compile(r"[0-9a-f]{40}\+?")
_LINE = re.compile(r"^# provenance (\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Provenance:
    """What a file says of its sources: commits, in their order, and marks by what they are of."""

    commits: tuple[str, ...]
    marks: dict[str, str]

    def remarks(self) -> list[str]:
        """The marks in words."""
        found = []
        for kind, words in MARKS.items():
            if kind in self.marks:
                of = [each[:8] for each in self.commits if kind == "tree" and each.endswith("+")]
                where = f" on `{'`, `'.join(of)}`" if of else ""
                found.append(words[self.marks[kind]] + where)
        return [*found, *([self.marks[NOTE]] if NOTE in self.marks else [])]


def read(path: Path) -> Provenance:
    """The provenance of a file. ValueError if it is not readable."""
    text = path.read_text(encoding="utf-8")
    if path.suffix not in (".json", ".jsonl"):
        return Provenance((), dict(_LINE.findall(text)))
    content = json.loads(text if path.suffix == ".json" else text.splitlines()[0])
    marks = content.get("provenance", {})
    if not isinstance(marks, dict):
        raise ValueError("its provenance is no object")
    return Provenance(tuple(dict.fromkeys(_commits(content))), marks)


def _commits(content: Any) -> Iterator[str]:
    if isinstance(content, list):
        for each in content:
            yield from _commits(each)
    elif isinstance(content, dict):
        for key, value in content.items():
            if key == "commit" and isinstance(value, str):
                yield value
            elif key != "provenance":
                yield from _commits(value)


def problems(found: Provenance, history: set[str] | None) -> list[str]:
    """What the file does not say. history: all commits, None where they are not known."""
    marks = found.marks
    wrong = [
        f"its provenance has {kind}: {value!r}\n"
        f"  expected: {', '.join([*(f'{k}: {v}' for k in MARKS for v in MARKS[k]), 'note: TEXT'])}"
        for kind, value in marks.items()
        if kind != NOTE and value not in MARKS.get(kind, {})
    ]
    commits = [each for each in found.commits if each]
    for each in commits:
        if not _COMMIT.fullmatch(each):
            wrong.append(f"'{each}' is no commit")
        elif history is not None and each.rstrip("+") not in history and "commit" not in marks:
            wrong.append(f"its commit {each[:8]} is not in the history")
    if not commits and "commit" not in marks:
        wrong.append("it has no commit")
    changed = any(each.endswith("+") for each in commits)
    if changed and "tree" not in marks:
        wrong.append("it was measured with changed sources")
    if "tree" in marks and commits and not changed and "commit" not in marks:
        wrong.append("its sources are those of the commit, but it is marked as if they were not")
    return wrong


def violations(root: Path) -> list[str]:
    """One line for each file that does not say where it comes from."""
    history = _history(root)
    found = []
    for path in sorted((root / FOLDER).glob("*")):
        try:
            wrong = problems(read(path), history)
        except (ValueError, AttributeError) as error:
            wrong = [f"it cannot be read: {error}"]
        found += [f"{path.relative_to(root)}: {each}" for each in wrong]
    return found


def _history(root: Path) -> set[str] | None:
    """All commits before this one; None outside of a complete clone."""

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    if not (root / ".git").exists() or git("rev-parse", "--is-shallow-repository") != "false\n":
        return None
    commits = git("rev-list", "HEAD")
    return None if commits is None else set(commits.split())


def main(arguments: list[str]) -> int:
    """Prints every violation; 1 if there is any."""
    found = violations(Path(arguments[0]) if arguments else ROOT)
    advice = (
        "  what to do: commit everything and run its command again, or mark the file "
        "(tools/check_results.py says how)"
    )
    print("\n".join([*found, advice]) if found else "results: every file says where it is from")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
