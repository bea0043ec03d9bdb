"""What a data folder holds, told by names alone: nothing is decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from syno._util.errors import UserError
from syno.data.arrays import is_array
from syno.data.documents import is_text
from syno.data.layout import is_image
from syno.data.records import is_records
from syno.data.source import ARCHIVES, bare_name

# So many names of a folder are looked at, down to this depth.
_NAMES = 2000
_DEPTH = 3


@dataclass(frozen=True)
class DataSetEntry:
    """A data set: the name that `load` takes, where it lies, its kind and bytes on disk (None for a
    folder, whose files are not all looked at)."""

    name: str
    kind: str
    path: Path | None
    bytes: int | None


# What Syno brings along.
EMBEDDED = DataSetEntry("digits", "embedded", None, None)


def entries(data_dir: str | os.PathLike[str]) -> list[DataSetEntry]:
    """The data sets in a folder, by name. Raises UserError for a folder that cannot be read."""
    base = Path(data_dir).expanduser()
    try:
        found = sorted(base.iterdir())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(
            f"cannot read data folder '{base}': {reason}\n"
            "  expected: a folder with a data set in each of its folders and archives"
        ) from error
    made = []
    for path in found:
        kind = kind_of(path) if not path.name.startswith(".") else None
        if kind is not None:
            size = path.stat().st_size if path.is_file() else None
            name = path.name if path.is_dir() else bare_name(path.name, (*ARCHIVES, ".txt"))
            made.append(DataSetEntry(name, kind, path, size))
    return made


def kind_of(path: Path) -> str | None:
    """`archive`, `text`, `records`, `arrays`, `images` or `shards`; None for nothing known."""
    if path.is_file():
        if path.name.endswith(ARCHIVES):
            return "archive"
        return "text" if is_text(path.name) else None
    if is_records(path):
        return "records"
    names = list(islice(_names(path, _DEPTH), _NAMES))
    for kind, belongs in (
        ("arrays", is_array),
        ("images", is_image),
        ("shards", lambda name: name.endswith(".tar")),
        ("text", is_text),
    ):
        if any(belongs(name) for name in names):
            return kind
    return None


def _names(folder: Path, depth: int) -> Iterator[str]:
    """Paths of files below a folder, those at its top first; what cannot be read is passed over."""
    inner = []
    try:
        with os.scandir(folder) as listing:
            for entry in sorted(listing, key=lambda entry: entry.name):
                if entry.is_dir():
                    inner.append(entry.path)
                else:
                    yield entry.path
    except OSError:
        return
    for path in inner if depth else ():
        yield from islice(_names(Path(path), depth - 1), _NAMES // 10)
