"""Text as documents: which files belong to which split, and where a document ends.

A word in the path, between any of `. _ - /`, determines the split:

    train, training                 training documents; also every file without such a word
    valid, validation, val, dev     the official validation split
    test, heldout, held             the official test split

A file may be compressed (.gz, .xz).
"""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from syno._util.errors import UserError
from syno._util.packed import DAMAGED
from syno.data.layout import part_of
from syno.data.source import ARCHIVES, MOST_FILE, ArchiveSource, FileSource, FolderSource

SUFFIXES = (".txt", ".txt.gz", ".txt.xz", ".text", ".tokens", ".raw")
KINDS = ("line", "paragraph", "file")
_PACKED = (".gz", ".xz")
_SHARD = re.compile(r"-\d+-of-\d+$")


def is_text(path: str) -> bool:
    """True for a file that is named like text, or like a shard of it (news-00001-of-00100)."""
    name = _unpacked(PurePosixPath(path).name)
    return not name.startswith(".") and (
        name.lower().endswith(SUFFIXES) or _SHARD.search(name) is not None
    )


def text_source(path: Path, name: str) -> FileSource:
    """The text at `path`: a folder, an archive, or one file. Raises UserError where none is."""
    if path.is_dir():
        return FolderSource(path, is_text)
    if not path.exists():
        raise UserError(f"text '{name}': '{path}' does not exist")
    if path.name.endswith(ARCHIVES):
        return ArchiveSource(path, is_text)
    return FolderSource(path.parent, only=path.name)


class Documents:
    """The documents of a source, part by part, in the order of the files' paths."""

    def __init__(self, source: FileSource, kind: str | None) -> None:
        """kind: one of KINDS. None: lines of shards named -00001-of-00100; files, where training
        has several; else paragraphs if a line is blank, else lines."""
        self.source = source
        self.parts: dict[str, tuple[str, ...]] = dict.fromkeys(("train", "held", "test"), ())
        for path in sorted(source.files):
            # A name tells files from each other; one alone is for training.
            part = part_of(path) if len(source.files) > 1 else "train"
            self.parts["held" if part == "val" else part] += (path,)
        if not self.parts["train"]:
            raise UserError(
                f"no training text found in {source.where}\n  expected: files that end in "
                f"{', '.join(SUFFIXES)} (also .gz, .xz) or in -00001-of-00100"
            )
        self.kind = kind or self._guess()

    def read(self, part: str) -> Iterator[bytes]:
        """UTF-8, without blank space at the ends; documents of blank space alone are left out.

        Raises UserError for a file that is no UTF-8 text or a damaged compressed one.
        """
        for path in self.parts[part]:
            with _opened(self.source, path) as file:
                for document in self._divided(file, path):
                    if document := document.strip():
                        self._check(document, path)
                        yield document

    def _guess(self) -> str:
        training = self.parts["train"]
        if any(_SHARD.search(_unpacked(path)) for path in training):
            return "line"
        if len(training) > 1:
            return "file"
        with _opened(self.source, training[0]) as file:
            content = False
            for line in self._lines(file, training[0]):
                if content and not line.strip():
                    return "paragraph"
                content = content or bool(line.strip())
        return "line"

    def _divided(self, file: IO[bytes], path: str) -> Iterator[bytes]:
        if self.kind == "file":
            document = file.read(MOST_FILE + 1)
            self._check_length(len(document), path)
            yield document
        elif self.kind == "line":
            yield from self._lines(file, path)
        else:
            lines: list[bytes] = []
            length = 0
            for line in self._lines(file, path):
                if line.strip():
                    lines.append(line)
                    length += len(line)
                    self._check_length(length, path)
                else:
                    yield b"".join(lines)
                    lines, length = [], 0
            yield b"".join(lines)

    def _lines(self, file: IO[bytes], path: str) -> Iterator[bytes]:
        while line := file.readline(MOST_FILE + 1):
            self._check_length(len(line), path)
            yield line

    def _check_length(self, length: int, path: str) -> None:
        if length > MOST_FILE:
            raise UserError(
                f"text file {self.source.locate(path)} has a document of more than "
                f"{MOST_FILE >> 20} MiB\n"
                "  what to do: divide it into documents by blank lines, lines or files; or it is "
                "no text: fetch it again"
            )

    def _check(self, document: bytes, path: str) -> None:
        try:
            document.decode("utf-8")
            problem = "holds bytes of value 0" if b"\0" in document else ""
        except UnicodeDecodeError as error:
            problem = f"is not UTF-8: {error.reason} in {document[error.start :][:16]!r}"
        if problem:
            raise UserError(
                f"text file {self.source.locate(path)} {problem}\n"
                "  expected: text in UTF-8; convert it with 'iconv -f ENCODING -t UTF-8'"
            )


def _unpacked(name: str) -> str:
    return name[:-3] if name.endswith(_PACKED) else name


@contextmanager
def _opened(source: FileSource, path: str) -> Iterator[IO[bytes]]:
    with source.open(path) as raw:
        file: IO[bytes] = raw
        if path.endswith(".gz"):
            file = cast(IO[bytes], gzip.open(raw))  # noqa: SIM115
        elif path.endswith(".xz"):
            file = cast(IO[bytes], lzma.open(raw))  # noqa: SIM115
        try:
            yield file
        except DAMAGED as error:
            raise UserError(
                f"text file {source.locate(path)} cannot be read: {error}\n"
                "  it may be damaged or cut off; fetch it again"
            ) from error
