"""The figures that pages print, and the comments that name the file behind each of them.

A comment right above a table, a paragraph or a list says where its figures come from:

    <!-- figures: bench/results/kernels.json
    time = lambda name: kernels.batches(batch=row["batch"]).times(layer=row["layer"], kernel=name)
    | batch | given
    | conv2d | time("conv2d cpp").best_ms, time("conv2d cpp").roofline
    -->

- Each file is a value under the stem of its name: attributes and keys lead into objects, keywords
  choose the one entry of a list (`times(layer="64@56")`), `.where(...)` several. The table of
  `syno experiment ranking` is a `Table`, a text has `.find(regex)`, a test is its module.
- `name = expression` defines what later lines use.
- `| column | expression` belongs to a table. `row` has the cells of the row by column, `label` is
  the cell on the left. The numbers of a cell are the values of the expression in their order;
  `given` marks a column of settings, None an empty cell. The first column is a label as long as no
  line names it.
- `text with # for numbers => expression` belongs to a paragraph or a list, and its text stands
  there once. `given: 5,000; 0.1` are numbers of the paragraph that are settings and not results.
- `figures: none` holds `given` lines alone: definitions and numbers of others, such as the paper's.

A block that compares with the fastest other engine (`over_rival`, `over_best`, `speedup` of a
layer) by a file that lacks one of them names it; `missing(file)` gives their names for a column.

A printed number is right when the value, rounded as printed, is that number: `1.14x` has two
decimals, `84 %` is a share of 0.84, `25.2 M` is 25,200,000.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from syno.engines.engine import RIVALS, missing_rivals

from .pages import ROOT, name

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"<!-- (\w+) -->\n.*?<!-- end of \1 -->", re.DOTALL)
_HEAD = re.compile(r"<!-- figures: *([^\n]*?)(?: *-->|\n)")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\]\([^)]*\)")
# Numbers that name something: versions, sections, dates, publications.
_NAMES = re.compile(
    r"\b(?:Python|PyTorch|torch|torchao|torchvision|Syno|Pillow|TVM|Triton|Debian|g\+\+|[Ss]ections?|Table|capability)"
    r" \d[\d.]*(?: and \d[\d.]*)?|\bdoi:\S+|\(\w+ '\d\d\), \d{4}"
)
_NUMBER = re.compile(
    r"(?<![\w.^/+-])(?P<sign>[+-]?)(?P<digits>\d+(?:,\d{3})*)(?P<decimals>\.\d+)?"
    r"(?P<unit> ?%| [kMG]\b|x\b)?(?![\w^])(?!-\w)"
)
# A number of a text that stands where a phrase has a #.
_PRINTED = r"[+-]?[\d,]*\.?\d+(?: ?%| [kMG]\b|x\b)?"
_SCALES = {"%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9, "x": 1.0, "": 1.0}
# What follows the number of a measurement. Whole seconds and minutes are most often settings.
_MEASURED = re.compile(
    r" ?(?:ms|GB/s|GFLOP/s|times|points|nats)\b"
    r"|[\w ]{0,12} a second\b"
)


@dataclass(frozen=True)
class Printed:
    """A number as a text prints it, at text[start:end]."""

    text: str
    value: float
    error: float
    start: int
    end: int
    measured: bool

    def shows(self, value: float) -> bool:
        """Whether this is what rounding `value` gives."""
        return math.isfinite(value) and abs(value - self.value) <= self.error * (1 + 1e-6)


def numbers(text: str) -> list[Printed]:
    """The numbers of a text, but for those in code and in addresses of links.

    measured: it looks like the result of something: a fraction, a percentage, a thousand and more
    with its comma, or a number with a unit.
    """
    bare = _NAMES.sub(_blank, _LINK.sub(_blank, _CODE.sub(_blank, text)))
    found = []
    for match in _NUMBER.finditer(bare):
        unit = (match["unit"] or "").strip()
        decimals = match["decimals"] or ""
        digits = match["digits"].replace(",", "") + decimals
        scale = _SCALES[unit]
        sign = -1.0 if match["sign"] == "-" else 1.0
        error = 0.5 * 10.0 ** -max(0, len(decimals) - 1)
        measured = bool(decimals or unit or "," in match["digits"]) or bool(
            _MEASURED.match(bare, match.end())
        )
        found.append(
            Printed(
                bare[match.start() : match.end()].strip(),
                sign * float(digits) * scale,
                error * scale,
                match.start(),
                match.end(),
                measured,
            )
        )
    return found


def _blank(match: re.Match[str]) -> str:
    """As many characters that are no part of a number."""
    return "\x00" * len(match[0])


@dataclass
class Source:
    """What a comment says."""

    files: list[str]
    definitions: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    phrases: list[tuple[str, str]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)


def parsed(comment: str) -> Source:
    """The parts of a comment. ValueError for a line that is none of them."""
    head = _HEAD.match(comment)
    assert head is not None
    files = [] if head[1] == "none" else [each.strip() for each in head[1].split(",")]
    source = Source(files)
    body = comment[head.end() :].rsplit("-->", 1)[0] if "\n" in comment.rstrip() else ""
    lines: list[str] = []
    for line in body.splitlines():
        if line.startswith(("  ", "\t")) and lines:
            lines[-1] += " " + line.strip()
        elif line.strip():
            lines.append(line.strip())
    for line in lines:
        if line.startswith("given:"):
            source.given += [each.strip() for each in line.removeprefix("given:").split(";")]
        elif line.startswith("|"):
            column, _, expression = line[1:].partition("|")
            source.columns[column.strip()] = expression.strip()
        elif " => " in line:
            phrase, _, expression = line.rpartition(" => ")
            source.phrases.append((phrase.strip(), expression.strip()))
        elif re.match(r"\w+ = ", line):
            source.definitions.append(line)
        else:
            raise ValueError(f"a line of a figures comment is nothing of what it may be: {line}")
    return source


@dataclass(frozen=True)
class Block:
    """A table, a paragraph or a list, with the comment above it."""

    text: str
    line: int
    comment: str | None

    @property
    def is_table(self) -> bool:
        return self.text.startswith("|")

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The head and the rows of a table."""
        head, _, *rows = [
            [cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in self.text.splitlines()
        ]
        return head, rows


def _empty_lines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page but for code, headings and tables that are made from the code."""
    text = _GENERATED.sub(_empty_lines, _FENCE.sub(_empty_lines, text))
    comment: str | None = None
    line = 1
    for part in re.split(r"(\n\s*\n|<!--.*?-->\n?)", text, flags=re.DOTALL):
        stripped = part.strip()
        if stripped.startswith("<!--"):
            comment = stripped if stripped.startswith("<!-- figures:") else comment
        elif stripped and not stripped.startswith("#"):
            yield Block(
                stripped, line + part[: len(part) - len(part.lstrip())].count("\n"), comment
            )
            comment = None
        line += part.count("\n")
    assert comment is None, f"nothing stands below the comment {comment}"


class Node:
    """An object of a file."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def __getitem__(self, key: str) -> Any:
        return wrapped(self._content[key])

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return self[key]

    def plain(self) -> dict[str, Any]:
        """The object itself."""
        return self._content

    def items(self) -> list[tuple[str, Any]]:
        return [(key, self[key]) for key in self._content]

    def values(self) -> list[Any]:
        return [self[key] for key in self._content]


class Entries(list[Any]):
    """A list of a file; called with keywords it gives the one entry that has these values."""

    def where(self, **wanted: Any) -> Entries:
        return Entries(
            entry
            for entry in self
            if all(_plain(entry[key]) == _plain(value) for key, value in wanted.items())
        )

    def __call__(self, **wanted: Any) -> Any:
        found = self.where(**wanted)
        if len(found) != 1:
            raise LookupError(f"{len(found)} entries have {wanted}")
        return found[0]

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return Entries(entry[key] for entry in self)


def values(content: Any, key: str) -> Iterator[Any]:
    """All values of a key in plain content."""
    if isinstance(content, dict):
        yield from (value for name, value in content.items() if name == key)
        content = list(content.values())
    if isinstance(content, list):
        for each in content:
            yield from values(each, key)


def missing_engines(content: Any) -> tuple[str, ...]:
    """The float32 engines of others that a comparison of engines lacks for its first network."""
    measured: list[set[str]] = []
    for times in values(content, "times"):
        if isinstance(times, list) and times and "engine" in times[0]:
            name = "network" if "network" in times[0] else "subject"
            first = times[0][name]
            measured.append({each["engine"] for each in times if each[name] == first})
    return missing_rivals(set.intersection(*measured)) if measured else ()


def _plain(value: Any) -> str:
    return str(value).replace(",", "").replace("`", "")


def wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Node(value)
    return Entries(wrapped(each) for each in value) if isinstance(value, list) else value


class Text:
    """A text file."""

    def __init__(self, text: str) -> None:
        self.text = text

    def find(self, pattern: str) -> list[Any]:
        """What the groups of every match hold, as numbers."""
        found = re.findall(pattern, self.text, re.MULTILINE)
        return [
            tuple(float(part.replace(",", "")) for part in each)
            if isinstance(each, tuple)
            else float(each.replace(",", ""))
            for each in found
        ]


@lru_cache
def read(file: str) -> Any:
    """What a file holds; see the head of this module."""
    path = ROOT / file
    if path.suffix == ".jsonl":
        from syno_lab.experiments.ranking import Table

        return Table.read(path)
    if path.suffix == ".py":
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    text = path.read_text(encoding="utf-8")
    return wrapped(json.loads(text)) if path.suffix == ".json" else Text(text)


@lru_cache
def _operator(text: str) -> Any:
    from syno import Operator

    return Operator.from_text(text)


_AGREEMENTS: dict[int, tuple[Any, Any]] = {}


def _agreement(table: Any) -> Any:
    """That of a table, computed once."""
    from syno_lab.experiments.agreement import agreement

    if id(table) not in _AGREEMENTS:
        _AGREEMENTS[id(table)] = table, agreement(table)
    return _AGREEMENTS[id(table)][1]


def helpers() -> dict[str, Any]:
    """What expressions may call."""
    return {
        "__builtins__": {},
        "abs": abs,
        "agreement": _agreement,
        "all": all,
        "dict": dict,
        "enumerate": enumerate,
        "exp": math.exp,
        "float": float,
        "geomean": lambda values: statistics.geometric_mean(list(values)),
        "int": lambda text: int(str(text).replace(",", "")),
        "len": len,
        "macs": lambda text, sizes: _operator(text).macs(sizes),
        "max": max,
        "mean": lambda values: statistics.mean(list(values)),
        "median": lambda values: statistics.median(list(values)),
        "min": min,
        "missing": lambda node: ", ".join(RIVALS[e] for e in missing_engines(node.plain())) or None,
        "params": lambda text, sizes: _operator(text).params(sizes),
        "range": range,
        "round": round,
        "set": set,
        "sorted": sorted,
        "stdev": lambda values: statistics.stdev(list(values)),
        "str": str,
        "sum": sum,
        "tuple": tuple,
        "zip": zip,
    }


Reader = Callable[[str], Any]


def problems(block: Block, reader: Reader = read) -> list[str]:
    """What is wrong with the figures of a block."""
    if block.comment is None:
        found = [n.text for n in numbers(block.text) if n.measured]
        if block.is_table and found:
            found = [n.text for row in block.rows()[1] for cell in row[1:] for n in numbers(cell)]
        return [f"no figures comment says where {', '.join(found)} comes from"] if found else []
    source = parsed(block.comment)
    if missing := [file for file in source.files if not (ROOT / file).is_file()]:
        return [f"there is no file {file}" for file in missing]
    if unnamed := _unnamed_engines(block, source):
        return unnamed
    names = helpers() | {Path(file).stem.replace("-", "_"): reader(file) for file in source.files}
    if block.is_table:
        return list(_table_problems(block, source, names))
    return list(_text_problems(" ".join(block.text.split()), source, names))


# What is a ratio to the fastest engine that is not part of Syno, or of all.
_COMPARES = re.compile(r"\.(over_rival|over_best|speedup)\b")


def _unnamed_engines(block: Block, source: Source) -> list[str]:
    """For each file, the engines that a comparison lacks and does not name."""
    lines = [*source.definitions, *source.columns.values(), *(each for _, each in source.phrases)]
    if not any(map(_COMPARES.search, lines)):
        return []
    found = []
    for file in source.files:
        if not file.endswith(".json"):
            continue
        lacking = missing_engines(json.loads((ROOT / file).read_text(encoding="utf-8")))
        unnamed = [RIVALS[each] for each in lacking if RIVALS[each] not in block.text]
        if unnamed:
            found.append(
                f"it compares by {file} and does not name {', '.join(unnamed)}, which it lacks"
            )
    return found


def _evaluated(expression: str, names: dict[str, Any]) -> list[Any]:
    """The values of an expression in order."""
    value = eval(expression, names)
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _define(source: Source, names: dict[str, Any]) -> list[str]:
    """Evaluates the definitions; what is wrong with one, as a list."""
    for line in source.definitions:
        try:
            exec(line, names)
        except Exception as error:  # whatever a wrong definition raises makes its figures wrong
            return [f"{line}: {type(error).__name__}: {error}"]
    return []


def _table_problems(block: Block, source: Source, names: dict[str, Any]) -> Iterator[str]:
    head, rows = block.rows()
    if source.phrases:
        yield "a table has columns, not phrases"
    if unknown := sorted(set(source.columns) - set(head)):
        yield f"the table has no column {unknown}"
    used = False
    for row in rows:
        names["row"] = dict(zip(head, row, strict=True))
        if wrong := _define(source, names):
            yield from (f"row {row[0]!r}: {each}" for each in wrong)
            return
        for place, (column, cell) in enumerate(zip(head, row, strict=True)):
            names["label"] = row[place - 1] if place else ""
            expression = source.columns.get(column, "given" if place == 0 else "")
            if expression == "given" or not (expression or numbers(cell)):
                continue
            if not expression:
                yield f"row {row[0]!r}: no line of the comment says what {column!r} {cell!r} is"
                continue
            used = True
            yield from _cell_problems(f"row {row[0]!r}, {column!r}", cell, expression, names)
    if source.files and not used:
        yield "the comment names a file and takes nothing from it"


def _cell_problems(where: str, cell: str, expression: str, names: dict[str, Any]) -> Iterator[str]:
    try:
        wanted = [value for value in _evaluated(expression, names) if value is not None]
    except Exception as error:  # whatever a wrong expression raises is a wrong figure
        yield f"{where}: {expression}: {type(error).__name__}: {error}"
        return
    if any(isinstance(value, str) for value in wanted):
        if [value.strip("`") for value in map(str, wanted)] != [cell.strip("`")]:
            yield f"{where}: {cell!r} is printed where the file gives {wanted}"
        return
    yield from _mismatches(where, numbers(cell), wanted)


def _mismatches(where: str, printed: list[Printed], wanted: list[Any]) -> Iterator[str]:
    shown = [number.text for number in printed]
    if len(printed) != len(wanted):
        yield f"{where}: {shown} are printed where the file gives {wanted}"
        return
    for number, value in zip(printed, wanted, strict=True):
        if not number.shows(float(value)):
            yield f"{where}: {number.text} is printed where the file gives {value:.6g}"


def _text_problems(text: str, source: Source, names: dict[str, Any]) -> Iterator[str]:
    found = numbers(text)
    open_ = dict.fromkeys(number.start for number in found if number.measured)
    if wrong := _define(source, names):
        yield from wrong
        return
    if source.columns:
        yield "a paragraph has phrases, not columns"
    for phrase, expression in source.phrases:
        # The regular expression of the phrase, with the numbers of the text for each #.
        pattern = _PRINTED.join(re.escape(part) for part in phrase.split("#"))
        matches = list(re.finditer(pattern, text))
        if len(matches) != 1:
            yield f"{phrase!r} stands {len(matches)} times in the text"
            continue
        start, end = matches[0].span()
        inside = [n for n in found if start <= n.start and n.end <= end + 1]
        # Numbers that the phrase spells out are part of its words.
        own = len(numbers(phrase.replace("#", "\x00")))
        if own:
            inside = [n for n in inside if n.text not in _spelled(phrase)]
        for number in inside:
            open_.pop(number.start, None)
        try:
            wanted = _evaluated(expression, names)
        except Exception as error:  # as above
            yield f"{phrase!r}: {expression}: {type(error).__name__}: {error}"
            continue
        yield from _mismatches(repr(phrase), inside, wanted)
    for number in found:
        if number.text in source.given:
            open_.pop(number.start, None)
    printed = {number.text for number in found}
    for missing in [each for each in source.given if each not in printed]:
        yield f"given {missing} is not in the text"
    for start in open_:
        number = next(each for each in found if each.start == start)
        yield f"no line of the comment says where {number.text} comes from"
    if source.files and not source.phrases:
        yield "the comment names a file and takes nothing from it"


def _spelled(phrase: str) -> set[str]:
    return {number.text for number in numbers(phrase)}


def page_problems(page: Path, reader: Reader = read) -> list[str]:
    """What is wrong with the figures of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        f"{name(page)}:{block.line}: {problem}"
        for block in blocks(text)
        for problem in problems(block, reader)
    ]
