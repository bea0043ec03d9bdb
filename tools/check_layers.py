"""Checks every #include and every import against layers.toml.

Usage: check_layers.py [ROOT]    prints file:line: what is not allowed; exit code 1 if any

A layer may use the layers it names and what those may use. Imports inside functions and under
TYPE_CHECKING count as well: the order of the layers is about what code knows, not about when it is
loaded.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from project_files import ROOT, project_files

# What an emitter writes is text, not code of this file.
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def closure(uses: dict[str, list[str]]) -> dict[str, set[str]]:
    """All layers each layer may use, itself included. Exits on an unknown name or a cycle."""
    result: dict[str, set[str]] = {}

    def visit(layer: str, path: list[str]) -> set[str]:
        if layer in path:
            raise SystemExit(f"layers.toml: a cycle: {' -> '.join([*path, layer])}")
        if layer not in uses:
            raise SystemExit(f"layers.toml: '{path[-1]}' uses '{layer}', which is not a layer")
        if layer not in result:
            if "*" in uses[layer]:
                result[layer] = set(uses)
            else:
                below = [visit(used, [*path, layer]) for used in uses[layer]]
                result[layer] = {layer}.union(*below)
        return result[layer]

    for name in uses:
        visit(name, [])
    return result


def refusal(place: str, layer: str, target: str, allowed: set[str]) -> str:
    """The message for a use that the layers do not allow."""
    others = ", ".join(sorted(allowed - {layer})) or "nothing else"
    return f"{place}: layer '{layer}' may not use layer '{target}'; it may use: {others}"


def _lines_alone(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


class CppLayers:
    """The C++ half of layers.toml."""

    def __init__(self, root: Path, table: dict[str, Any]) -> None:
        self.root = root
        self.paths = {name: Path(entry["path"]) for name, entry in table["layers"].items()}
        self.may_use = closure({name: entry["uses"] for name, entry in table["layers"].items()})
        self.tests_may_use = {
            name: self.may_use[name].union(*(self.may_use[t] for t in entry.get("test_uses", [])))
            for name, entry in table["layers"].items()
        }
        self.third_party: dict[str, list[str]] = table.get("third_party", {})
        self.test_headers: list[str] = table.get("test_headers", {}).get("allowed", [])

    def layer_of(self, path: Path) -> str | None:
        """The layer whose folder holds `path`."""
        return next((n for n, folder in self.paths.items() if path.is_relative_to(folder)), None)

    def check(self, name: Path) -> Iterator[str]:
        """The violations of one file below src/."""
        layer = self.layer_of(name)
        if layer is None:
            yield f"{name}:1: belongs to no layer of layers.toml"
            return
        text = RAW_STRING.sub(_lines_alone, (self.root / name).read_text(encoding="utf-8"))
        for number, line in enumerate(text.splitlines(), start=1):
            match = INCLUDE.match(line)
            if match is None:
                continue
            place = f"{name}:{number}"
            if match[1] is not None:
                yield from self.check_quoted(place, name, layer, match[1])
            else:
                yield from self.check_angled(place, name, layer, match[2])

    def check_quoted(self, place: str, name: Path, layer: str, header: str) -> Iterator[str]:
        """A header of the project: named from src/, or from the including file's folder."""
        candidates = [Path("src") / header, name.parent / header]
        target = next((c for c in candidates if (self.root / c).is_file()), candidates[0])
        used = self.layer_of(target)
        if used is None:
            yield f'{place}: #include "{header}" is in no layer of layers.toml'
        else:
            is_test = name.stem.endswith("_test")
            allowed = self.tests_may_use[layer] if is_test else self.may_use[layer]
            if used not in allowed:
                yield refusal(place, layer, used, allowed)

    def check_angled(self, place: str, name: Path, layer: str, header: str) -> Iterator[str]:
        """A header of the standard library, or one of the few others that layers.toml names."""
        if "/" not in header and not header.endswith(".h"):
            return
        if name.stem.endswith("_test") and any(map(header.startswith, self.test_headers)):
            return
        for prefix, layers in self.third_party.items():
            if header.startswith(prefix):
                if layer not in layers:
                    yield f"{place}: layer '{layer}' may not include <{header}>; only {layers} may"
                return
        yield f"{place}: <{header}> is not the standard library's (see layers.toml)"


class PythonLayers:
    """The layers of a Python package. others: the other packages of the project."""

    def __init__(self, root: Path, package: str, table: dict[str, Any], others: set[str]) -> None:
        self.root = root
        self.package = package
        self.path = Path(table["path"])
        self.refused = others - set(table["uses"])
        self.may_use = closure(table["layers"])
        self.third_party: dict[str, list[str]] = table.get("third_party", {})

    def check(self, name: Path) -> Iterator[str]:
        """The violations of one file of the package."""
        inside = name.relative_to(self.path)
        layer = self.layer_of(".".join(inside.with_suffix("").parts))
        if layer is None:
            yield f"{name}:1: '{inside.with_suffix('').parts[0]}' is no layer of layers.toml"
            return
        tree = ast.parse((self.root / name).read_text(encoding="utf-8"), str(name))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = self.modules_of(inside, node)
            else:
                continue
            for module in dict.fromkeys(modules):
                yield from self.check_module(f"{name}:{node.lineno}", inside, layer, module)

    def layer_of(self, module: str) -> str | None:
        """The layer of `module`, a dotted name inside of the package: the longest that fits."""
        while module:
            if module in self.may_use:
                return module
            module = module.rpartition(".")[0]
        return None

    def modules_of(self, inside: Path, node: ast.ImportFrom) -> list[str]:
        """What `from ... import a, b` names: `a` may be a module only in the package or a layer."""
        base = node.module or ""
        if node.level:
            package = [self.package, *inside.parts[:-1]]
            parts = package[: len(package) - node.level + 1]
            base = ".".join([*parts, *([node.module] if node.module else [])])
        if base == self.package:
            return [f"{base}.{alias.name}" for alias in node.names]
        inner = [f"{base}.{alias.name}" for alias in node.names]
        return [m if m.partition(".")[2] in self.may_use else base for m in inner]

    def check_module(self, place: str, inside: Path, layer: str, module: str) -> Iterator[str]:
        """One module: a layer of the package, or another package that few files may import."""
        first, _, rest = module.partition(".")
        if first == self.package:
            # Without a layer: the package's own namespace, or a public name of it.
            used = self.layer_of(rest) or "__init__"
            if used not in self.may_use[layer]:
                yield refusal(place, layer, used, self.may_use[layer])
        elif first in self.refused:
            yield f"{place}: package '{self.package}' may not use package '{first}'"
        elif first in self.third_party:
            allowed = self.third_party[first]
            if layer not in allowed and not any(fnmatch(inside.as_posix(), p) for p in allowed):
                yield f"{place}: '{first}' may not be imported here; only in {', '.join(allowed)}"


def violations(root: Path) -> list[str]:
    """One line `file:line: ...` for each use below `root` that its layers.toml does not allow."""
    table = tomllib.loads((root / "layers.toml").read_text(encoding="utf-8"))
    cpp = CppLayers(root, table["cpp"])
    packages = [
        PythonLayers(root, name, each, set(table["python"]) - {name})
        for name, each in table["python"].items()
    ]
    found: list[str] = []
    for name in project_files(root):
        if name.parts[0] == "src" and name.suffix in {".h", ".cpp"}:
            found += cpp.check(name)
        for python in packages:
            if name.is_relative_to(python.path) and name.suffix == ".py":
                found += python.check(name)
    return found


def main(arguments: list[str]) -> int:
    """Prints every violation; 1 when there is one."""
    found = violations(Path(arguments[0]) if arguments else ROOT)
    print("\n".join(found) or "layers: every include and import is allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
