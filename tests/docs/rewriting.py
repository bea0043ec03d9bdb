"""Printed numbers replaced by those of their files: for results that were measured again.

`SYNO_UPDATE_GOLDEN=1 pytest tests/docs -k every_figure` rewrites every page whose numbers differ.
A number keeps its decimals and its unit. What it cannot write, such as a row for another network,
stays as it is, and the test names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import figures
from .figures import Block, Printed, Reader, Source, blocks, numbers, parsed, read


def rewrite(page: Path) -> None:
    """Write the numbers of a page anew."""
    text = page.read_text(encoding="utf-8")
    place = 0
    for block in list(blocks(text)):
        place = text.index(block.text, place)
        new = rewritten(block)
        text = text[:place] + new + text[place + len(block.text) :]
        place += len(new)
    page.write_text(text, encoding="utf-8")


def rewritten(block: Block, reader: Reader = read) -> str:
    """The text of a block with the numbers of its files."""
    if block.comment is None:
        return block.text
    source = parsed(block.comment)
    names = figures.helpers()
    names |= {Path(file).stem.replace("-", "_"): reader(file) for file in source.files}
    return (_table if block.is_table else _paragraph)(block, source, names)


def shown(like: Printed, value: float) -> str:
    """A value as another number is printed: its sign, commas, decimals and unit."""
    match = figures._NUMBER.fullmatch(like.text)
    assert match is not None
    unit = match["unit"] or ""
    scaled = value / figures._SCALES[unit.strip()]
    sign = "+" if match["sign"] == "+" and scaled >= 0 else ""
    return f"{sign}{scaled:,.{max(0, len(match['decimals'] or '') - 1)}f}{unit}"


def _replaced(text: str, printed: list[Printed], wanted: list[Any]) -> str:
    """The text with those of its printed numbers replaced that are wrong."""
    for number, value in reversed(list(zip(printed, wanted, strict=True))):
        if not number.shows(float(value)):
            end = number.start + len(number.text)
            text = text[: number.start] + shown(number, float(value)) + text[end:]
    return text


def _paragraph(block: Block, source: Source, names: dict[str, Any]) -> str:
    text = block.text
    if figures._define(source, names):
        return text
    for phrase, expression in source.phrases:
        pattern = figures._PRINTED.join(
            r"\s+".join(map(re.escape, part.split(" "))) for part in phrase.split("#")
        )
        matches = list(re.finditer(pattern, text))
        wanted = _values(expression, names)
        if len(matches) != 1 or wanted is None:
            continue
        start, end = matches[0].span()
        spelled = figures._spelled(phrase)
        inside = [
            each
            for each in numbers(text)
            if start <= each.start and each.end <= end + 1 and each.text not in spelled
        ]
        if len(inside) == len(wanted):
            text = _replaced(text, inside, wanted)
    return text


def _table(block: Block, source: Source, names: dict[str, Any]) -> str:
    head, rows = block.rows()
    lines = block.text.splitlines()
    columns = [
        source.columns.get(name, "given" if place == 0 else "") for place, name in enumerate(head)
    ]
    for number, row in enumerate(rows):
        names["row"] = dict(zip(head, row, strict=True))
        if figures._define(source, names):
            continue
        cells = list(row)
        for place, (cell, expression) in enumerate(zip(row, columns, strict=True)):
            names["label"] = row[place - 1] if place else ""
            wanted = _values(expression, names) if expression not in ("", "given") else None
            if wanted is not None:
                cells[place] = _cell(cell, wanted, (other[place] for other in rows))
        if cells != row:
            lines[number + 2] = f"| {' | '.join(cells)} |"
    return "\n".join(lines)


def _cell(cell: str, wanted: list[Any], others: Iterator[str]) -> str:
    """The cell with these values; one that had others before looks like another cell."""
    if any(isinstance(value, str) for value in wanted):
        return cell if [each.strip("`") for each in wanted] == [cell.strip("`")] else str(wanted[0])
    if not wanted:
        return ""
    fits: Callable[[str], bool] = lambda text: len(numbers(text)) == len(wanted)  # noqa: E731
    like = cell if fits(cell) else next(filter(fits, others), None)
    return cell if like is None else _replaced(like, numbers(like), wanted)


def _values(expression: str, names: dict[str, Any]) -> list[Any] | None:
    """The values of an expression; None where it has none, which the test names."""
    try:
        return [value for value in figures._evaluated(expression, names) if value is not None]
    except Exception:  # whatever a wrong expression raises, as in figures.py
        return None
