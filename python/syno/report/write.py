"""The files of a report."""

from __future__ import annotations

from pathlib import Path

from syno._util.errors import UserError
from syno.report import images, page
from syno.report.model import Report


def write_page(report: Report, path: Path) -> Path:
    """Write the page to `path` and return the path.

    Raises:
        UserError: the file cannot be written.
    """
    _writable_folder(path)
    try:
        path.write_text(page.render(report), encoding="utf-8")
    except OSError as error:
        raise UserError(_cannot_write(path, error)) from error
    return path


def write_pictures(report: Report, folder: Path) -> list[Path]:
    """Write `front.png` and `progress.png` into `folder` and return their paths."""
    files = [folder / "front.png", folder / "progress.png"]
    _writable_folder(files[0])
    try:
        images.save_front(report, files[0])
        images.save_progress(report, files[1])
    except OSError as error:
        raise UserError(_cannot_write(folder, error)) from error
    return files


def _writable_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(_cannot_write(path, error)) from error


def _cannot_write(path: Path, error: OSError) -> str:
    return (
        f"cannot write the report to {path}: {error.strerror or error}\n"
        "  what to do: name another file with -o, in a writable folder with enough space"
    )
