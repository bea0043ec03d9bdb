"""Where images come from: a folder or an archive of one, seen the same way."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from syno._errors import UserError
from syno.data.layout import is_image

ARCHIVES = (".tar.xz", ".tar", ".tar.gz", ".tgz", ".txz")
# Images of a larger archive are spooled to a temporary file while they are sorted.
_SPOOL_BYTES = 512 << 20


class FolderSource:
    """Images under a folder."""

    def __init__(self, root: Path) -> None:
        self.where = f"folder '{root}'"
        self.files: list[str] = []
        self.folders: list[str] = []
        self._root = root
        self._stamps: list[tuple[str, int, int]] = []

    def scan(self, advance: Callable[[int], None]) -> None:
        """Fills `files` and `folders` (posix paths relative to the root), sorted."""
        if self.files:
            return
        try:
            self._walk("", advance)
        except OSError as error:
            raise UserError(
                f"cannot read {self.where}: {error.strerror}: '{error.filename}'"
            ) from error

    def fingerprint(self) -> str:
        """Of names, byte counts and modification times: reading every file would cost as much as
        decoding it."""
        self.scan(lambda _: None)
        digest = hashlib.blake2b(digest_size=16)
        for stamp in self._stamps:
            digest.update(repr(stamp).encode())
        return digest.hexdigest()

    def read(self, path: str) -> bytes:
        """The file's bytes."""
        try:
            return (self._root / path).read_bytes()
        except OSError as error:
            raise UserError(f"cannot read image {self.locate(path)}: {error.strerror}") from error

    def locate(self, path: str) -> str:
        """Names the file in a message."""
        return f"'{self._root / path}'"

    def close(self) -> None:
        """Nothing is held open."""

    def _walk(self, folder: str, advance: Callable[[int], None]) -> None:
        with os.scandir(self._root / folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir():
                self.folders.append(path)
                self._walk(path, advance)
            elif is_image(path):
                status = entry.stat()
                self.files.append(path)
                self._stamps.append((path, status.st_size, status.st_mtime_ns))
                advance(1)


class ArchiveSource:
    """Images in a .tar, plain or compressed. It is streamed once; no member is unpacked by name."""

    def __init__(self, path: Path) -> None:
        self.where = f"archive '{path}'"
        self.files: list[str] = []
        self.folders: list[str] = []
        self._path = path
        self._spool: IO[bytes] | None = None
        self._place: dict[str, tuple[int, int]] = {}

    def fingerprint(self) -> str:
        """Of the archive's bytes."""
        digest = hashlib.blake2b(digest_size=16)
        try:
            with open(self._path, "rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise UserError(f"cannot read {self.where}: {error.strerror}") from error
        return digest.hexdigest()

    def scan(self, advance: Callable[[int], None]) -> None:
        """Fills `files` and `folders` and keeps the images' bytes for `read`."""
        self._spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115
        try:
            # tarfile's own decompression passes a cut-off stream over in silence; these do not.
            with (
                _stream(self._path) as stream,
                tarfile.open(fileobj=stream, mode="r|") as archive,
            ):
                for member in archive:
                    self._add(archive, member, advance)
            self._check_end()
        except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError) as error:
            raise UserError(
                f"{self.where} is truncated or damaged: {error}\n"
                "  fetch or pack it again; 'tar tf' must list it without an error"
            ) from error
        except OSError as error:
            raise UserError(f"cannot read {self.where}: {error.strerror or error}") from error

    def read(self, path: str) -> bytes:
        """The file's bytes."""
        assert self._spool is not None
        start, length = self._place[path]
        self._spool.seek(start)
        return self._spool.read(length)

    def locate(self, path: str) -> str:
        """Names the file in a message."""
        return f"'{path}' in {self.where}"

    def close(self) -> None:
        """Frees the images' bytes."""
        if self._spool is not None:
            self._spool.close()

    def _add(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, advance: Callable[[int], None]
    ) -> None:
        path = os.path.normpath(member.name)
        if member.isdir() and path != ".":
            self.folders.append(path)
        if not (member.isfile() and is_image(path)):
            return
        content = archive.extractfile(member)
        assert content is not None and self._spool is not None
        data = content.read()
        if len(data) != member.size:
            raise EOFError(f"unexpected end of data in member '{member.name}'")
        if path not in self._place:
            self.files.append(path)
        self._place[path] = (self._spool.tell(), len(data))
        try:
            self._spool.write(data)
        except OSError as error:
            raise UserError(
                f"cannot unpack {self.where} into '{tempfile.gettempdir()}': {error.strerror}\n"
                "  set TMPDIR to a folder with room"
            ) from error
        advance(1)

    def _check_end(self) -> None:
        """A plain .tar that is cut off between two members reads like a shorter one; only the block
        of zeros at its end tells them apart."""
        if self._path.name.endswith(".tar"):
            with open(self._path, "rb") as file:
                file.seek(-512, os.SEEK_END)
                if any(file.read(512)):
                    raise EOFError("no end-of-archive block")


def _stream(path: Path) -> IO[bytes]:
    """The archive's bytes, decompressed."""
    if path.name.endswith("xz"):
        return lzma.open(path)
    return cast(IO[bytes], gzip.open(path)) if path.name.endswith("gz") else open(path, "rb")


Source = FolderSource | ArchiveSource


def find_source(name: str, data_dir: str | os.PathLike[str] | None) -> Source:
    """The source of data set `name`: `name` itself when it is a path, else the folder or archive of
    that name in `data_dir` (default: the environment's SYNO_DATA), else `data_dir` itself when it
    is that folder or archive. Raises UserError that lists where it looked and what is there."""
    if os.sep in name or name.startswith(("~", ".")):
        return _at(Path(name).expanduser(), name)
    given = data_dir if data_dir is not None else os.environ.get("SYNO_DATA")
    if not given:
        here = f", or write '.{os.sep}{name}' for the folder here" if Path(name).is_dir() else ""
        raise UserError(
            f"data set '{name}' needs a data folder, and none is given\n"
            f"  pass data_dir= (--data-dir) or set SYNO_DATA to a folder that holds '{name}' or "
            f"'{name}.tar.xz'{here}"
        )
    base = Path(given).expanduser()
    if not base.exists():
        raise UserError(
            f"data folder '{base}' does not exist\n"
            f"  expected: a folder that holds '{name}' or '{name}.tar.xz'"
        )
    if base.is_file() or base.name == name:
        return _at(base, name)
    for candidate in (base / name, *(base / (name + suffix) for suffix in ARCHIVES)):
        if candidate.exists():
            return _at(candidate, name)
    if (base / "train").is_dir():
        return _at(base, name)
    found = sorted(entry.name for entry in base.iterdir() if not entry.name.startswith("."))
    raise UserError(
        f"data set '{name}' is not in data folder '{base}'\n"
        f"  expected: a folder '{name}', an archive '{name}.tar.xz' or '{name}.tar', or a folder "
        f"'train'\n  got: {', '.join(found[:8]) or 'an empty folder'}"
        f"{' ...' if len(found) > 8 else ''}"
    )


def _at(path: Path, name: str) -> Source:
    if path.is_dir():
        return FolderSource(path)
    if not path.exists():
        raise UserError(f"data set '{name}': '{path}' does not exist")
    if not path.name.endswith(ARCHIVES):
        raise UserError(
            f"data set '{name}': '{path}' is neither a folder nor an archive\n"
            f"  expected: a name that ends in {', '.join(ARCHIVES)}"
        )
    return ArchiveSource(path)
