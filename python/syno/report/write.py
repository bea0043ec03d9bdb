"""The files of a report."""

from __future__ import annotations

from pathlib import Path

from syno._util.written import writing
from syno.report import images, page
from syno.report.model import Report


def write_page(report: Report, path: Path) -> Path:
    """Write the page to `path` and return the path.

    Raises:
        UserError: the file cannot be written.
    """
    with writing("the report", path, "-o"):
        path.write_text(page.render(report), encoding="utf-8")
    return path


def write_pictures(report: Report, folder: Path) -> list[Path]:
    """Write `front.png` and `progress.png` into `folder` and return their paths."""
    files = [folder / "front.png", folder / "progress.png"]
    with writing("the plots", files[0], "-o"):
        images.save_front(report, files[0])
        images.save_progress(report, files[1])
    return files
