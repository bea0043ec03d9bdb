"""The files that pages take numbers from, as values.

Attributes and keys lead into objects. A list that is called with keywords gives the one entry with
these values (`times(layer="64@56")`), and `.where(...)` gives all of them; an attribute of a list
is the list of this attribute of its entries.
"""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from project_files import ROOT
from syno.engines.engine import RIVALS, missing_rivals


class Node:
    """An object of a file."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._content[key])

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return self[key]

    def plain(self) -> dict[str, Any]:
        """The object itself."""
        return self._content

    def items(self) -> list[tuple[str, Any]]:
        """Its fields."""
        return [(key, self[key]) for key in self._content]

    def values(self) -> list[Any]:
        """The values of its fields."""
        return [self[key] for key in self._content]


class Entries(list[Any]):
    """A list of a file."""

    def where(self, **wanted: Any) -> Entries:
        """The entries with these values."""
        return Entries(each for each in self if all(each[k] == v for k, v in wanted.items()))

    def __call__(self, **wanted: Any) -> Any:
        """The one entry with these values."""
        found = self.where(**wanted)
        if len(found) != 1:
            raise LookupError(f"{len(found)} entries have {wanted}")
        return found[0]

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return Entries(entry[key] for entry in self)


class Text:
    """A text file."""

    def __init__(self, text: str) -> None:
        self.text = text

    def find(self, pattern: str) -> list[tuple[float, ...]]:
        """The numbers in the groups of every match."""
        found = re.finditer(pattern, self.text, re.MULTILINE)
        return [tuple(float(part.replace(",", "")) for part in each.groups()) for each in found]


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Node(value)
    return Entries(map(_wrapped, value)) if isinstance(value, list) else value


@lru_cache
def read(file: str) -> Any:
    """What a file of the project holds: JSON, the table of an experiment (.jsonl), names of a
    Python file, or a text.
    """
    path = ROOT / file
    if path.suffix == ".jsonl":
        from syno_lab.experiments.ranking import RankingFile

        return RankingFile.read(path)
    if path.suffix == ".py":
        return SimpleNamespace(**runpy.run_path(str(path)))
    text = path.read_text(encoding="utf-8")
    return _wrapped(json.loads(text)) if path.suffix == ".json" else Text(text)


def values_of(content: Any, key: str) -> Iterator[Any]:
    """All values of a key in plain content."""
    if isinstance(content, dict):
        yield from (value for name, value in content.items() if name == key)
        content = list(content.values())
    if isinstance(content, list):
        for each in content:
            yield from values_of(each, key)


def missing_engines(content: Any) -> tuple[str, ...]:
    """The float32 engines of others that a comparison lacks for the first network of a table."""
    measured: list[set[str]] = []
    for times in values_of(content, "times"):
        if isinstance(times, list) and times and "engine" in times[0]:
            name = "network" if "network" in times[0] else "subject"
            first = times[0][name]
            measured.append({each["engine"] for each in times if each[name] == first})
    return missing_rivals(set.intersection(*measured)) if measured else ()


def compared(found: Node) -> str | None:
    """The engines that a comparison lacks, for a column; None where there is none."""
    return ", ".join(RIVALS[each] for each in missing_engines(found.plain())) or None


@lru_cache
def _operator(text: str) -> Any:
    from syno import Operator

    return Operator.from_text(text)


def macs(text: str, sizes: dict[str, int]) -> int:
    """The multiply-accumulate operations of an operator, given by its text."""
    return int(_operator(text).macs(sizes))


def params(text: str, sizes: dict[str, int]) -> int:
    """The number of weights of an operator, given by its text."""
    return int(_operator(text).params(sizes))


@lru_cache
def agreement(file: str) -> Any:
    """What the table of a ranking says of short and long trainings."""
    from syno_lab.experiments.agreement import agreement as computed

    return computed(read(file))
