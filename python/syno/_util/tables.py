"""Results as tables of text, for terminals and pages: columns are declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class Table:
    """Headings and cells. A heading that ends in ">" is of numbers, one in "~" of texts that may go
    over several lines; the others stay on one."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, items: Iterable[Row], *columns: tuple[str, Callable[[Row], str]]) -> Table:
        """A row for each item; a column is a heading, and what it shows of an item."""
        rows = tuple(tuple(cell(item) for _, cell in columns) for item in items)
        return cls(tuple(heading for heading, _ in columns), rows)

    def without_empty(self) -> Table:
        """The columns that have a text in some row; the first stays."""
        kept = [n for n in range(len(self.headings)) if n == 0 or any(row[n] for row in self.rows)]
        rows = tuple(tuple(row[n] for n in kept) for row in self.rows)
        return Table(tuple(self.headings[n] for n in kept), rows)

    def markdown(self) -> str:
        """The table in Markdown."""
        rule = " | ".join("---:" if h.endswith(">") else "---" for h in self.headings)
        names = " | ".join(heading.rstrip(">~") for heading in self.headings)
        lines = [names, rule, *(" | ".join(row) for row in self.rows)]
        return "\n".join(
            f"| {line} |".replace("|  |", "| |").replace("|  |", "| |") for line in lines
        )


@dataclass(frozen=True)
class Section:
    """A part of what is printed: a title, what follows it on the line, and below it a text, facts
    side by side, or a table."""

    title: str
    rest: str = ""
    text: str = ""
    facts: Sequence[Sequence[str]] = ()
    table: Table | None = None
