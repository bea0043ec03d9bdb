"""Where files come from: a folder or an archive of one, seen the same way."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol, cast

from syno._util import arguments
from syno._util.checks import from_file
from syno._util.errors import UserError, nearest
from syno.data.layout import is_image

ARCHIVES = (".tar.xz", ".tar", ".tar.gz", ".tgz", ".txz")
# Images of a larger archive are spooled to a temporary file while they are sorted.
_SPOOL_BYTES = 512 << 20
_BLOCK_BYTES = 1 << 20
# Bytes of a file in an archive, which is read as a whole, or of what a compressed file unpacks to.
MOST_FILE = 1 << 30


class FolderSource:
    """Files under a folder; `accept` says by its path whether a file belongs to the data."""

    def __init__(
        self, root: Path, accept: Callable[[str], bool] = is_image, only: str | None = None
    ) -> None:
        """only: one file is all there is, and nothing else is looked at."""
        self.where = f"file '{root / only}'" if only else f"folder '{root}'"
        self.files: list[str] = []
        self.folders: list[str] = []
        self.root = root
        self._accept = accept
        self._only = only
        self._stamps: list[tuple[str, int, int]] = []

    def scan(self, advance: Callable[[int], None]) -> None:
        """Fills `files` and `folders` (posix paths relative to the root), sorted."""
        if self.files:
            return
        try:
            if self._only:
                self._add(self._only, os.stat(self.root / self._only), advance)
            else:
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

    def content(self) -> str:
        """A fingerprint of names and bytes: reads every file."""
        self.scan(lambda _: None)
        digest = hashlib.blake2b(digest_size=16)
        for path, size, _ in self._stamps:
            digest.update(repr((path, size)).encode())
            with self.open(path) as file:
                while block := file.read(_BLOCK_BYTES):
                    digest.update(block)
        return digest.hexdigest()

    def read(self, path: str) -> bytes:
        """The file's bytes."""
        try:
            return (self.root / path).read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {self.locate(path)}: {error.strerror}") from error

    def open(self, path: str) -> IO[bytes]:
        """The file, to read from its beginning."""
        try:
            return open(self.root / path, "rb")
        except OSError as error:
            raise UserError(f"cannot read {self.locate(path)}: {error.strerror}") from error

    def locate(self, path: str) -> str:
        """Names the file in a message."""
        return f"'{self.root / path}'"

    def close(self) -> None:
        """Nothing is held open."""

    def _walk(self, folder: str, advance: Callable[[int], None]) -> None:
        with os.scandir(self.root / folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir():
                self.folders.append(path)
                self._walk(path, advance)
            elif self._accept(path):
                self._add(path, entry.stat(), advance)

    def _add(self, path: str, status: os.stat_result, advance: Callable[[int], None]) -> None:
        self.files.append(path)
        self._stamps.append((path, status.st_size, status.st_mtime_ns))
        advance(1)


class ArchiveSource:
    """Files in a .tar. A plain one is read in place, a compressed one is streamed once; no member
    is unpacked by name."""

    def __init__(self, path: Path, accept: Callable[[str], bool] = is_image) -> None:
        self.where = f"archive '{path}'"
        self.files: list[str] = []
        self.folders: list[str] = []
        self._path = path
        self._accept = accept
        # What `read` reads from: the archive itself, or the files' bytes one behind the other.
        self._spool: IO[bytes] | None = None
        self._place: dict[str, tuple[int, int]] = {}

    def fingerprint(self) -> str:
        """Of the archive's bytes."""
        digest = hashlib.blake2b(digest_size=16)
        try:
            with open(self._path, "rb") as file:
                while block := file.read(_BLOCK_BYTES):
                    digest.update(block)
        except OSError as error:
            raise UserError(f"cannot read {self.where}: {error.strerror}") from error
        return digest.hexdigest()

    def content(self) -> str:
        """The same."""
        return self.fingerprint()

    def scan(self, advance: Callable[[int], None]) -> None:
        """Fills `files` and `folders` and finds, or keeps, the files' bytes for `read`."""
        try:
            if self._path.name.endswith(".tar"):
                self._scan_plain(advance)
            else:
                self._scan_stream(advance)
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
        data = self._spool.read(length)
        if len(data) != length:
            raise UserError(f"{self.where} became shorter while it was read")
        return data

    def open(self, path: str) -> IO[bytes]:
        """The file, to read from its beginning."""
        return io.BytesIO(self.read(path))

    def locate(self, path: str) -> str:
        """Names the file in a message."""
        return f"'{path}' in {self.where}"

    def close(self) -> None:
        """Frees the files' bytes."""
        if self._spool is not None:
            self._spool.close()

    def _scan_plain(self, advance: Callable[[int], None]) -> None:
        self._spool = open(self._path, "rb")  # noqa: SIM115 - closed by close()
        with tarfile.open(self._path, "r:") as archive:
            for member in archive:
                if path := self._wanted(member):
                    self._place[path] = (member.offset_data, member.size)
                    advance(1)
        tar_is_whole(self._path)

    def _scan_stream(self, advance: Callable[[int], None]) -> None:
        self._spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115
        # tarfile's own decompression passes a cut-off stream over in silence; these do not.
        with _stream(self._path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                if path := self._wanted(member):
                    content = archive.extractfile(member)
                    assert content is not None
                    if self._keep(path, content) != member.size:
                        raise EOFError(f"unexpected end of data in member '{member.name}'")
                    advance(1)

    def _wanted(self, member: tarfile.TarInfo) -> str | None:
        """The path of a file that belongs to the data, now among `files`."""
        path = os.path.normpath(member.name)
        if member.isdir() and path != ".":
            self.folders.append(path)
        if not (member.isfile() and self._accept(path)):
            return None
        if member.size > MOST_FILE:
            raise UserError(
                f"file {self.locate(path)} has {member.size:,} bytes\n"
                f"  expected: at most {MOST_FILE:,}\n"
                "  what to do: unpack the archive, and name the folder"
            )
        if path not in self._place:
            self.files.append(path)
        return path

    def _keep(self, path: str, content: IO[bytes]) -> int:
        """Copy a file's bytes; how many there are."""
        assert self._spool is not None
        start = self._spool.tell()
        try:
            while block := content.read(_BLOCK_BYTES):
                self._write(block)
        finally:
            self._place[path] = (start, self._spool.tell() - start)
        return self._spool.tell() - start

    def _write(self, block: bytes) -> None:
        assert self._spool is not None
        try:
            self._spool.write(block)
        except OSError as error:
            raise UserError(
                f"cannot unpack {self.where} into '{tempfile.gettempdir()}': {error.strerror}\n"
                "  set TMPDIR to a folder with room"
            ) from error


def tar_is_whole(path: Path) -> None:
    """Raises EOFError for a plain .tar that is cut off between two members: it reads like a shorter
    one; only the block of zeros at its end tells them apart."""
    with open(path, "rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(length - 512, 0))
        if length < 512 or any(file.read(512)):
            raise EOFError("no end-of-archive block")


def _stream(path: Path) -> IO[bytes]:
    """The archive's bytes, decompressed."""
    if path.name.endswith("xz"):
        return lzma.open(path)
    return cast(IO[bytes], gzip.open(path))


class FileSource(Protocol):
    """Files by their paths; `files` and `folders` are filled by `scan`, `where` names the whole in
    a message."""

    where: str
    files: list[str]
    folders: list[str]

    def scan(self, advance: Callable[[int], None]) -> None:
        """Finds the files; advance(n) after n more."""

    def fingerprint(self) -> str:
        """32 hex, of what can be told quickly."""

    def content(self) -> str:
        """32 hex, of the content."""

    def read(self, path: str) -> bytes:
        """The file's bytes."""

    def open(self, path: str) -> IO[bytes]:
        """The file, to read from its beginning."""

    def locate(self, path: str) -> str:
        """Names the file in a message."""

    def close(self) -> None:
        """Frees what is held open."""


def find_path(
    name: str,
    data_dir: str | os.PathLike[str] | None,
    suffixes: Sequence[str],
    known: Sequence[str] = (),
) -> Path:
    """Where data set `name` lies: `name` itself when it is a path, else the folder or file of that
    name (with one of `suffixes`) in `data_dir` (default: the environment's SYNO_DATA), else
    `data_dir` itself when it is that folder or file.

    Raises UserError that lists where it looked and what is there, with the nearest of these names
    and of `known`.
    """
    with from_file("cannot look for data at", name):
        return _found_path(name, data_dir, suffixes, known)


def _found_path(
    name: str,
    data_dir: str | os.PathLike[str] | None,
    suffixes: Sequence[str],
    known: Sequence[str],
) -> Path:
    if os.sep in name or name.startswith(("~", ".")):
        path = Path(name).expanduser()
        path.exists()  # raises for what no path can be
        return path
    given = data_dir if data_dir is not None else os.environ.get("SYNO_DATA")
    if given is not None and given != "":
        arguments.path("'data_dir'", given)
    wanted = f"'{name}' or '{name}{suffixes[0]}'"
    if not given:
        here = f", or write '.{os.sep}{name}' for the folder here" if Path(name).is_dir() else ""
        raise UserError(
            f"data set '{name}' needs a data folder, and none is given\n"
            "  what to do: pass data_dir= (--data-dir) or set SYNO_DATA to a folder that holds "
            f"{wanted}{here}{nearest(name, known)}"
        )
    base = Path(given).expanduser()
    if not base.exists():
        raise UserError(
            f"data folder '{base}' does not exist\n  expected: a folder that holds {wanted}"
        )
    if base.is_file() or base.name == name:
        return base
    for candidate in (base / name, *(base / (name + suffix) for suffix in suffixes)):
        if candidate.exists():
            return candidate
    if (base / "train").is_dir():
        return base
    try:
        found = sorted(entry.name for entry in base.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise UserError(f"cannot read data folder '{base}': {error.strerror}") from error
    names = {bare_name(entry, suffixes) for entry in found}
    raise UserError(
        f"data set '{name}' is not in data folder '{base}'\n"
        f"  expected: a folder '{name}', a file '{name}{suffixes[0]}', or a folder 'train'\n"
        f"  got: {', '.join(found[:8]) or 'an empty folder'}{' ...' if len(found) > 8 else ''}"
        + nearest(name, [*known, *sorted(names)])
    )


def bare_name(entry: str, suffixes: Sequence[str]) -> str:
    """A file's name without the longest of `suffixes` that it ends in."""
    ending = max((s for s in suffixes if entry.endswith(s)), key=len, default="")
    return entry.removesuffix(ending)


def source_at(path: Path, name: str, accept: Callable[[str], bool]) -> FileSource:
    """The files of data set `name` that `accept` takes. Raises UserError for a path that is neither
    a folder nor an archive."""
    if path.is_dir():
        return FolderSource(path, accept)
    if not path.exists():
        raise UserError(f"data set '{name}': '{path}' does not exist")
    if not path.name.endswith(ARCHIVES):
        raise UserError(
            f"data set '{name}': '{path}' is neither a folder nor an archive\n"
            f"  expected: a name that ends in {', '.join(ARCHIVES)}"
        )
    return ArchiveSource(path, accept)
