"""Figures as files: PDF, PNG and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from syno._util.errors import UserError, nearest
from syno.runs.files import write_whole
from syno_lab.figures.catalogue import FIGURES, Plan
from syno_lab.figures.drawing import Drawing, Row
from syno_lab.figures.sources import Sources

_DPI = 200


@dataclass(frozen=True)
class Written:
    """A figure that was drawn, and its files.

    published_only: nothing of one's own is in it; `plan.command` makes the data.
    """

    plan: Plan
    files: tuple[Path, ...]
    published_only: bool = False


@dataclass(frozen=True)
class Missing:
    """A figure without data; `plan.command` makes them."""

    plan: Plan


def write_figures(
    sources: Sources, folder: Path, only: Collection[str] = ()
) -> list[Written | Missing]:
    """Draw every figure that the sources have data of, and write it as PDF, PNG and CSV.

    Figures of published networks are drawn without data, too.

    Args:
        sources: what `read_sources` found.
        folder: where the files are written; it is made if it is not there.
        only: names of figures; empty for all.

    Returns:
        A `Written` or a `Missing` for each figure, in the order of the paper.

    Raises:
        UserError: a figure is unknown, or a file cannot be written.
    """
    for name in only:
        if name not in FIGURES:
            raise UserError(
                f"there is no figure '{name}'{nearest(name, list(FIGURES))}\n"
                f"  expected: {', '.join(FIGURES)}"
            )
    found: list[Written | Missing] = []
    for name, plan in FIGURES.items():
        if only and name not in only:
            continue
        drawing = plan.draw(sources)
        found.append(Missing(plan) if drawing is None else _written(plan, drawing, folder))
    return found


def _written(plan: Plan, drawing: Drawing, folder: Path) -> Written:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot write figures to '{folder}': {error.strerror or error}\n"
            "  what to do: name another folder with --figures"
        ) from error
    paths = []
    for suffix, save in (
        ("pdf", _picture(drawing, creation=True)),
        ("png", _picture(drawing, creation=False)),
        ("csv", lambda path: path.write_text(as_csv(drawing.rows), encoding="utf-8")),
    ):
        path = folder / f"{plan.name}.{suffix}"
        write_whole(path, save)
        paths.append(path)
    return Written(plan, tuple(paths), drawing.published_only)


def _picture(drawing: Drawing, *, creation: bool) -> Callable[[Path], object]:
    """Saves the figure; without the date, so that the same results give the same file."""
    metadata = {"CreationDate": None} if creation else {"Software": None}

    def save(path: Path) -> None:
        import matplotlib

        # Text stays text in a PDF.
        with matplotlib.rc_context({"pdf.fonttype": 42}):
            drawing.figure.savefig(path, dpi=_DPI, metadata=metadata)

    return save


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as a CSV file with a line of names; None is an empty cell."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value
