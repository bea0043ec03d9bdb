"""The checkpoints of a study with a ladder: one file for each operator, in a folder of the study.

A checkpoint is a cache: if it is missing or damaged, the training starts over. No torch.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.runs.cache_folder import private_cache
from syno.runs.files import target_name
from syno.store import Store, StudyRecord
from syno.store.records import digest

_ENDING = ".ckpt"
# The first 128 bits of a key in hexadecimal, which distinguish the operators of a study.
_DIGITS = 32


class Checkpoints:
    """A folder of checkpoints, each named by the operator and the first rung of its training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, store: Store, study: StudyRecord) -> Checkpoints:
        """Return the checkpoints of a study.

        The folder is `FILE.checkpoints/NUMBER` beside a SQLite file. For a database server, it is
        in the cache folder of each machine, and for a store in memory a temporary folder.
        """
        if store.path is not None:
            beside = store.path.with_name(store.path.name + ".checkpoints")
            return cls(beside.absolute() / str(study.id))
        if store.in_memory:
            return cls(Path(tempfile.mkdtemp(prefix="syno-checkpoints-")))
        return cls(private_cache("checkpoints", "checkpoints") / digest(store.name) / str(study.id))

    def path(self, key: str, first: int) -> Path:
        """Return the file of a training."""
        return self.folder / _name(key, first)

    def keep(self, needed: Callable[[], set[tuple[str, int]]]) -> None:
        """Delete all other checkpoints, incomplete files of killed processes, and empty folders.

        Args:
            needed: returns the checkpoints to keep. It is called after the folder was listed: a
                file that another process writes belongs to a proposal that was stored before, so
                every listed file that is needed is in its result.

        Raises:
            UserError: if a file cannot be deleted.
        """
        if not self.folder.is_dir():
            return
        try:
            listed = list(self.folder.iterdir())
            names = {_name(*each) for each in needed()}
            for file in listed:
                # Another process may be writing one that is needed.
                if _ENDING in file.name and target_name(file.name) not in names:
                    file.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot delete checkpoints in '{self.folder}': {error.strerror}"
            ) from error
        if not names:
            for folder in (self.folder, self.folder.parent):
                with contextlib.suppress(OSError):  # it contains checkpoints of other studies
                    folder.rmdir()


def _name(key: str, first: int) -> str:
    return f"{key[:_DIGITS]}-{first}{_ENDING}"


def checkpoint(folder: Path | None, operator: Operator | None, seed: int) -> Path | None:
    """Return the checkpoint in `folder` for an operator, or for the original network (None)."""
    if folder is None:
        return None
    name = "baseline" if operator is None else operator.key[:16]
    return folder / f"{name}-{seed}.ckpt"
