"""Tables and sentences with values in them, as pages print them.

A template is one of `str.format`, with formats of its own: `.1%` writes a share as `89.4 %`, and
`.1M` (or `k`, `G`) writes 78,500,000 as `78.5 M`.
"""

from __future__ import annotations

import string
from typing import Any

_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "%": 0.01}


class _Formatter(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        unit = format_spec[-1:]
        if unit not in _UNITS:
            return str(format(value, format_spec))
        sign, digits = ("+", format_spec[1:-1]) if format_spec[0] == "+" else ("", format_spec[:-1])
        return f"{format(value / _UNITS[unit], f'{sign},{digits}f')} {unit}"


def show(template: str, *values: Any) -> str:
    """The template with the values in it."""
    return _Formatter().format(template, *values)


def say(template: str, *values: Any) -> None:
    """Print a paragraph or a list."""
    print(show(template.strip(), *values))


def head(columns: str) -> None:
    """Print the head of a table, whose columns stand between `|`. Numbers stand right after `>`."""
    names = [name.strip() for name in columns.split("|")]
    _line([name.removesuffix(">").strip() for name in names])
    _line(["---:" if name.endswith(">") else "---" for name in names])


def row(template: str, *values: Any) -> None:
    """Print a row of a table, with a value for each cell that has places for one.

    A tuple or a list fills several places of its cell. A cell with None is empty.
    """
    left, cells = list(values), []
    for cell in template.split("|"):
        value = left.pop(0) if "{" in cell else ()
        several = isinstance(value, (tuple, list))
        cells.append("" if value is None else show(cell.strip(), *(value if several else [value])))
    assert not left, f"{len(left)} values too many for {template}"
    _line(cells)


def _line(cells: list[str]) -> None:
    print("|" + "".join(f" {cell} |" if cell else " |" for cell in cells))
