"""Names the files of tests that a change concerns, the nearest first, as many as fit into a time.

Usage: changed_tests.py [SINCE]    the files, one a line; what was left out on the standard error

What changed is what differs from the commit SINCE (HEAD), and what git does not know yet. A test is
nearer, the fewer imports lead from it to a file that changed. A file takes as long as its last run
did (tests/durations.py).
"""

import ast
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from project_files import ROOT, project_files

# Seconds of all processes together: two and a half minutes in two of them.
MOST_SECONDS = 300.0
UNKNOWN_SECONDS = 3.0  # of a file that never ran here
PACKAGES = ("syno", "syno_lab")


class Imports:
    """Which project file uses which: by imports, names of modules in strings, and commands."""

    def __init__(self, root: Path) -> None:
        self.files = [
            path
            for path in project_files(root)
            if path.suffix == ".py" and path.parts[0] in ("python", "tests", "tools")
        ]
        # Modules of tests are named from tests/, those of tools from tools/.
        self._modules = {".".join(_dotted(path)): path for path in self.files}
        self._texts = {path: (root / path).read_text(encoding="utf-8") for path in self.files}
        self._trees = {path: ast.parse(text) for path, text in self._texts.items()}
        self._exports = {
            name: dict(_reexports(name, self._trees[path]))
            for name, path in self._modules.items()
            if path.name == "__init__.py"
        }

    def users(self) -> dict[Path, set[Path]]:
        """The files that use each file."""
        result: dict[Path, set[Path]] = defaultdict(set)
        for path in self.files:
            for used in self.uses(path):
                result[used].add(path)
        return result

    def uses(self, path: Path) -> set[Path]:
        """The files that `path` uses directly."""
        module = ".".join(_dotted(path))
        is_package = path.name == "__init__.py"
        if is_package and module in PACKAGES:
            return set()  # everything is a name of it
        tree = self._trees[path]
        # What a package passes on is used by those who ask the package for it.
        passed_on = set(tree.body) if is_package else set()
        found: set[Path | None] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found.update(self._file(alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node not in passed_on:
                base = _base(module, is_package, node)
                found.update(self._file(base, alias.name) for alias in node.names)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id in PACKAGES:
                    found.add(self._file(node.value.id, node.attr))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(self._named(path, node.value))
        return {each for each in found if each is not None and each != path}

    def _file(self, module: str, name: str = "") -> Path | None:
        """The file of a module, or of a name that a package has from one of its modules."""
        if not name:
            return self._modules.get(module)
        inner = f"{module}.{name}"
        if inner in self._modules:
            return self._modules[inner]
        source = self._exports.get(module, {}).get(name)
        if source is not None and source != module:
            return self._file(source, name)
        return self._modules.get(module)

    def _named(self, path: Path, text: str) -> Path | None:
        """What a string names: a module, a script beside the file, or a command of the tests."""
        if text in self._modules and "." in text:
            return self._modules[text]
        if text.endswith(".py") and path.parent / text in self._trees:
            return path.parent / text
        if path.parts[0] == "tests" and "syno.cli" in self._texts[path]:
            for package in ("syno.cli", "syno_lab"):
                command = f"{package}.commands.{text.replace('-', '_')}"
                if command in self._modules:
                    return self._modules[command]
        return None


def _dotted(path: Path) -> list[str]:
    parts = list(path.with_suffix("").parts[1:])
    return parts[:-1] if parts[-1] == "__init__" else parts


def _base(module: str, is_package: bool, node: ast.ImportFrom) -> str:
    """The module that `from ... import` names."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _reexports(module: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a package has from other modules: its imports, and tables of late ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = _base(module, True, node)
            yield from ((alias.asname or alias.name, base) for alias in node.names)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    yield str(key.value), str(value.value)


def distances(users: dict[Path, set[Path]], changed: set[Path]) -> dict[Path, int]:
    """How many uses lead from each file to one that changed."""
    found = dict.fromkeys(changed, 0)
    edge = changed
    while edge:
        edge = {user for path in edge for user in users.get(path, ())} - found.keys()
        found |= dict.fromkeys(edge, 1 + max(found.values(), default=0))
    return found


def is_test(path: Path) -> bool:
    """Whether pytest finds tests in it."""
    return path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py"


def nearest(root: Path, changed: set[Path]) -> list[Path]:
    """All files of tests that the change concerns, the nearest first."""
    imports = Imports(root)
    found = distances(imports.users(), changed)
    # What is not a module belongs to the tests beside it, and a page to those of pages.
    folders = {each.parent for each in changed if each.suffix != ".py" or each.stem == "conftest"}
    if any(each.suffix == ".md" for each in changed):
        folders.add(Path("tests/docs"))
    for path in imports.files:
        if any(path.is_relative_to(folder) for folder in folders if folder.parts[:1] == ("tests",)):
            found.setdefault(path, 1)
    seconds = durations(root)
    tests = [path for path in found if is_test(path)]
    return sorted(tests, key=lambda path: (found[path], seconds.get(path, UNKNOWN_SECONDS), path))


def durations(root: Path) -> dict[Path, float]:
    """The seconds of each file of tests when it last ran."""
    kept = root / ".pytest_cache/v/syno/seconds"
    result: dict[Path, float] = defaultdict(float)
    if kept.exists():
        for test, seconds in json.loads(kept.read_text()).items():
            result[Path(test.partition("::")[0])] += seconds
    return dict(result)


def changed_since(root: Path, commit: str) -> set[Path]:
    """The files that differ from the commit, new ones too."""
    git = ["git", "-C", str(root)]
    names: list[str] = []
    for words in (["diff", "--name-only", commit], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run([*git, *words], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"error: git cannot compare with '{commit}': {done.stderr.strip()}")
        names += done.stdout.splitlines()
    return {Path(name) for name in names}


def fitting(root: Path, tests: list[Path], most: float) -> list[Path]:
    """The first of the tests, as many as take so many seconds; one at least."""
    seconds, total = durations(root), 0.0
    for count, path in enumerate(tests):
        total += seconds.get(path, UNKNOWN_SECONDS)
        if total > most and count:
            return tests[:count]
    return tests


def main(arguments: list[str]) -> int:
    """Prints the files of tests; what they leave out goes to the standard error."""
    changed = changed_since(ROOT, arguments[0] if arguments else "HEAD")
    tests = nearest(ROOT, changed)
    chosen = fitting(ROOT, tests, MOST_SECONDS)
    print("\n".join(map(str, chosen)))
    print(
        f"{len(changed)} changed files concern {len(tests)} files of tests; the {len(chosen)} "
        "nearest run" + ("" if chosen == tests else " (`make test` runs all)"),
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
