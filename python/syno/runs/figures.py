"""Matplotlib without the settings of the current folder."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.runs.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FILE = "matplotlibrc"
_lock = threading.Lock()


def load_matplotlib() -> None:
    """Imports matplotlib, which must not read `matplotlibrc` of the current folder.

    To be called before any other import of it. Matplotlib looks there first and has no option
    against it, so that the folder of a stranger could change a figure or end the program. While it
    is imported here, the file is said not to exist. What is in the user's own settings holds.
    """
    with _lock:
        if "matplotlib" in sys.modules:
            return
        exists = os.path.exists

        def without_settings(path: object) -> bool:
            return path != _FILE and exists(path)  # type: ignore[arg-type]

        os.path.exists = without_settings  # type: ignore[assignment]
        try:
            import matplotlib  # noqa: F401
        finally:
            os.path.exists = exists


def save_figure(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write a plot as PNG, PDF or what else the name ends in.

    Raises:
        UserError: the file cannot be written, or its name does not end in a known format.
    """

    def save(to: Path) -> None:
        try:
            figure.savefig(to, dpi=dpi)
        except ValueError as error:
            raise UserError(
                f"cannot write the plot to {path}: {error}\n"
                "  what to do: name another file with --picture, which ends in .png, .pdf or .svg"
            ) from error

    write_whole(path, save, "the plot", "--picture")
