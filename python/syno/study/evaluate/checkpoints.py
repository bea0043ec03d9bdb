"""Where the trainings of a ladder keep their states: one file an operator, in the study's folder.

A checkpoint is a cache: where one is missing or damaged, that training starts over. No torch.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from syno._util.cache_folder import private_cache
from syno._util.errors import UserError
from syno.store import Store, StudyRecord
from syno.store.records import digest

_ENDING = ".ckpt"
# Of a key, 128 bits in hexadecimal: enough to tell the operators of a study apart.
_DIGITS = 32


class Checkpoints:
    """A folder of checkpoints, each named by the operator and the first rung of its training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, store: Store, study: StudyRecord) -> Checkpoints:
        """Beside a SQLite file in `FILE.checkpoints/NUMBER`; for a server in the cache folder, so
        that each machine has its own; for a store in memory in a folder of the system's."""
        if store.path is not None:
            beside = store.path.with_name(store.path.name + ".checkpoints")
            return cls(beside.absolute() / str(study.id))
        if store.in_memory:
            return cls(Path(tempfile.mkdtemp(prefix="syno-checkpoints-")))
        return cls(private_cache("checkpoints", "checkpoints") / digest(store.name) / str(study.id))

    def path(self, key: str, first: int) -> Path:
        """The file of a training."""
        return self.folder / _name(key, first)

    def keep(self, needed: Callable[[], set[tuple[str, int]]]) -> None:
        """Deletes all others, also what a killed process left half written, and empty folders.

        needed: is called after the folder was listed: a file that another process writes belongs
        to a proposal that was stored before, so it is listed only when it is needed, too. UserError
        where deleting is not allowed.
        """
        if not self.folder.is_dir():
            return
        try:
            listed = list(self.folder.iterdir())
            names = {_name(*each) for each in needed()}
            for file in listed:
                # `.NAME-xyz` is being written, by somebody who works on it.
                whole = file.name.removeprefix(".").partition(_ENDING)[0] + _ENDING
                if _ENDING in file.name and whole not in names:
                    file.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot delete checkpoints in '{self.folder}': {error.strerror}"
            ) from error
        if not names:
            for folder in (self.folder, self.folder.parent):
                with contextlib.suppress(OSError):  # other studies have theirs there
                    folder.rmdir()


def _name(key: str, first: int) -> str:
    return f"{key[:_DIGITS]}-{first}{_ENDING}"
