"""Compressed files that unpack to any amount, or are damaged: refused, in little memory."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import struct
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from syno import UserError
from syno.data import documents, load, load_text, source
from syno_lab.benchmark import table as tables

from . import made

MIB = 1 << 20
# A member of gzip of 64 MiB of zeros, in 64 KiB; several of them are one file.
ZEROS = gzip.compress(bytes(64 * MIB), 9)


def refused(read: Callable[[], object], words: str, most_memory: int) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=words):
            read()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most_memory, f"{peak / MIB:.0f} MiB"


def test_a_table_that_unpacks_to_any_amount_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl.gz"
    path.write_bytes(ZEROS * 8)
    refused(lambda: tables.load(path), "too large when it is unpacked", 16 * MIB)
    made.table().write(path)
    path.write_bytes(path.read_bytes() + ZEROS * 8)
    refused(lambda: tables.load(path), "too large when it is unpacked", 16 * MIB)


def test_all_lines_of_a_table_together_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "made.jsonl.gz"
    made.table().write(path)
    length = len(gzip.decompress(path.read_bytes()))
    monkeypatch.setattr(tables, "MOST_ALL", length)
    tables.load(path)
    monkeypatch.setattr(tables, "MOST_ALL", length - 1)
    with pytest.raises(UserError, match="too large when it is unpacked"):
        tables.load(path)


def test_the_limits_of_a_table() -> None:
    assert tables.MOST_LINE == MIB
    assert tables.MOST_ALL == 128 * MIB
    assert source.MOST_FILE == 1024 * MIB


def _text(folder: Path, content: bytes) -> Callable[[], object]:
    (folder / "a.txt.gz").write_bytes(content)
    return lambda: load_text(str(folder), cache=False, progress=False)


def test_a_text_whose_document_has_no_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MOST_FILE", MIB)
    refused(_text(tmp_path, ZEROS), "a document of more than 1 MiB", 16 * MIB)
    lines = gzip.compress(b"a\n" * MIB)  # without a blank line: one paragraph
    (tmp_path / "b.txt.gz").write_bytes(lines)  # two files: each is one document
    refused(_text(tmp_path, lines), "a document of more than 1 MiB", 16 * MIB)


@pytest.mark.parametrize("shape", [(60_000, 1000, 1000), (2, 8, 8)])
def test_an_idx_file_is_not_unpacked_beyond_its_head(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    images = gzip.compress(b"\0\0\x08\x03" + struct.pack(">3I", *shape), 9)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(images + ZEROS * 8)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\2\0\1")
    read = lambda: load(str(tmp_path), cache=False, progress=False)  # noqa: E731
    words = "when it is unpacked" if shape[0] > 2 else "truncated or damaged"
    refused(read, words, 16 * MIB)


@pytest.mark.parametrize("ending", ["tar.gz", "tar.xz", "tar"])
def test_a_file_of_an_archive_has_a_limit(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MOST_FILE", MIB)
    path = tmp_path / f"images.{ending}"
    with tarfile.open(path, f"w:{ending[4:]}") as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("train/a/large.png")
        member.size = 32 * MIB
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    read = lambda: load(str(path), cache=False, progress=False)  # noqa: E731
    refused(read, r"33,554,432 bytes\n.*\n.*unpack the archive", 48 * MIB)


def test_damaged_compression_is_a_user_error(tmp_path: Path) -> None:
    """Bits of the compressed bytes flipped anywhere, cut, repeated, and of other compressions."""
    path = tmp_path / "made.jsonl.gz"
    made.table(seeds=2).write(path)
    whole = path.read_bytes()
    contents = {tuple(_content(tables.load(path)))}
    chance = random.Random(7)
    kinds: list[bytes] = [b"", lzma.compress(b"{}"), zlib.compress(b"{}"), whole * 2, whole[:-8]]
    for _ in range(60):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        kinds.append(bytes(content))
    for content in kinds:
        path.write_bytes(content)
        try:
            found = tables.load(path)
        except UserError:
            continue
        assert tuple(_content(found)) in contents  # bits of the head that say nothing


def _content(table: tables.BenchmarkTable) -> list[object]:
    return [*table.rows, *table.results, *table.latencies]


VALUES = (None, True, "1", "x", -2, 1.5, 10**30, [], [1], ["1"], {}, {"a": 1}, float("nan"))


def test_every_field_of_a_table_has_its_type(tmp_path: Path) -> None:
    """A value of another type in each place of each kind of line: refused, or as it was written."""
    path = tmp_path / "made.jsonl.gz"
    table = made.table(seeds=1)
    table.rows, table.results = table.rows[:2], [replace(table.results[0], operator=1)]
    table.latencies.append(tables.Latency(0, 1.5, 0.75))
    table.write(path)
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    count = 0
    for number in (0, 1, 3, 4):
        for name in lines[number]:
            for value in VALUES:
                changed = [*lines]
                changed[number] = {**lines[number], name: value}
                text = "\n".join(map(json.dumps, changed)) + "\n"
                path.write_bytes(gzip.compress(text.encode(), 1))
                try:
                    found = tables.load(path)
                except UserError:
                    count += 1
                    continue
                found.write(path)  # what was taken is what is there
                again = gzip.decompress(path.read_bytes()).decode().splitlines()
                assert json.loads(again[number]).get(name, value) == value or value != value
        for changed in ([], 1, None, "x", {}, {**lines[number], "more": 1}):
            text = "\n".join(map(json.dumps, [*lines[:number], changed, *lines[number + 1 :]]))
            path.write_bytes(gzip.compress(text.encode(), 1))
            with pytest.raises(UserError):
                tables.load(path)
    assert count > 150
