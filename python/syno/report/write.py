"""The files of a report."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from syno.report import images, page
from syno.report.model import Report
from syno.runs.files import write_text, write_whole


def write_page(report: Report, path: Path) -> Path:
    """Write the page to `path` and return the path.

    Raises:
        UserError: the file cannot be written.
    """
    write_text(path, page.render(report), "the report", "-o")
    return path


def write_pictures(report: Report, folder: Path) -> list[Path]:
    """Write `front.png` and `progress.png` into `folder` and return their paths."""
    files = [folder / "front.png", folder / "progress.png"]
    for file, save in zip(files, (images.save_front, images.save_progress), strict=True):
        write_whole(file, partial(save, report), "the plots", "-o")
    return files
