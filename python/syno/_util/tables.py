"""Results as tables of text, for terminals and pages: columns are declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

Row = TypeVar("Row")
MARKS = ">~?"
_BESIDE = 3  # columns of a terminal between two columns of a table
_LEAST_TEXT = 16  # a text that goes over several lines stays readable in this width


@dataclass(frozen=True)
class Table:
    """Headings and cells. `print` shows the table as text, and a loop goes over its rows.

    Marks at the end of a heading: ">" for numbers, "~" for texts that may go over several lines
    (the others stay on one), "?" for a column that is left out where there is too little space.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, items: Iterable[Row], *columns: tuple[str, Callable[[Row], str]]) -> Table:
        """A row for each item; a column is a heading, and what it shows of an item."""
        rows = tuple(tuple(cell(item) for _, cell in columns) for item in items)
        return cls(tuple(heading for heading, _ in columns), rows)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.rows)

    def without_empty(self) -> Table:
        """The columns that have a text in some row; the first stays."""
        kept = [n for n in range(len(self.headings)) if n == 0 or any(row[n] for row in self.rows)]
        rows = tuple(tuple(row[n] for n in kept) for row in self.rows)
        return Table(tuple(self.headings[n] for n in kept), rows)

    def names(self) -> list[str]:
        """The headings without their marks."""
        return [heading.rstrip(MARKS) for heading in self.headings]

    def lines(self) -> list[str]:
        """The table as aligned text without borders: a line of headings, then one for each row."""
        columns = []
        for n, name in enumerate(self.names()):
            cells = [name, *(" ".join(row[n].split("\n")) for row in self.rows)]
            width = max(map(len, cells))
            to_right = ">" in _marks(self.headings[n])
            columns.append([c.rjust(width) if to_right else c.ljust(width) for c in cells])
        return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]

    def fitting(self, width: int) -> tuple[Table, list[str]]:
        """The table with as many columns as fit, and the names of those that are left out.

        The columns that are marked with "?" are left out, the last one first.
        """
        kept = list(range(len(self.headings)))
        marked = [n for n in kept if "?" in _marks(self.headings[n])]
        while marked and sum(self._space(n) for n in kept) > width:
            kept.remove(marked.pop())
        rows = tuple(tuple(row[n] for n in kept) for row in self.rows)
        left_out = [name for n, name in enumerate(self.names()) if n not in kept]
        return Table(tuple(self.headings[n] for n in kept), rows), left_out

    def _space(self, n: int) -> int:
        """The least width of a column with the space beside it."""
        cells = [self.names()[n], *(row[n] for row in self.rows)]
        widest = max(len(line) for cell in cells for line in cell.split("\n"))
        return _BESIDE + (min(widest, _LEAST_TEXT) if "~" in _marks(self.headings[n]) else widest)

    def markdown(self) -> str:
        """The table in Markdown."""
        rule = " | ".join("---:" if ">" in _marks(h) else "---" for h in self.headings)
        names = " | ".join(self.names())
        lines = [names, rule, *(" | ".join(row) for row in self.rows)]
        return "\n".join(
            f"| {line} |".replace("|  |", "| |").replace("|  |", "| |") for line in lines
        )


def _marks(heading: str) -> str:
    return heading[len(heading.rstrip(MARKS)) :]


@dataclass(frozen=True)
class Section:
    """A part of what is printed: a title, what follows it on the line, and below it a text, facts
    side by side, or a table; `after` is a text below the table."""

    title: str
    rest: str = ""
    text: str = ""
    facts: Sequence[Sequence[str]] = ()
    table: Table | None = None
    after: str = ""
