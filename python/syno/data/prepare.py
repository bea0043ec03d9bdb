"""`prepare`: an image data set of any size as records that load fast (records.py).

1. the images are numbered, training split first, and cut into shards of equal numbers
2. a shard is written under another name, and renamed when it is whole; then its rows are written
3. the rows of all shards become the index

So it can be killed at any moment and called again: whole shards stay, damaged ones are written
anew, and the result is byte for byte the same, for any number of workers.
"""

from __future__ import annotations

import fcntl
import io
import json
import logging
import math
import os
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TypedDict, cast

import numpy as np
from PIL import Image

from syno._util.errors import UserError
from syno._util.threads import usable_cores
from syno.data.arrays import Arrays
from syno.data.decode import Unreadable, read
from syno.data.loading import content_of, source_of
from syno.data.progress import bar
from syno.data.random import draws
from syno.data.record_options import RecordOptions
from syno.data.records import FORMAT, ROW, Records, read_sealed, seal
from syno.data.source import FileSource
from syno.runs.files import replacing, why_not_written

_log = logging.getLogger("syno.data")
_PROBE = 48  # images that an estimate looks at
_READ = 1 << 20
_VALUES = np.arange(256, dtype=np.int64)


@dataclass(frozen=True)
class Estimate:
    """What preparing would take: images, bytes on disk, seconds of one worker."""

    images: int
    bytes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class _Plan:
    """The images in their order (`paths`, `labels`, the first `split` of them for training), and
    what plan.json says. `jpeg` says which are stored as JPEG."""

    source: FileSource
    classes: tuple[str, ...]
    paths: tuple[str, ...]
    labels: np.ndarray
    split: int
    jpeg: np.ndarray
    options: RecordOptions
    where: Path

    @property
    def shards(self) -> int:
        return -(-len(self.paths) // self.options.shard_images)

    def numbers(self, shard: int) -> range:
        """The images of a shard."""
        first = shard * self.options.shard_images
        return range(first, min(first + self.options.shard_images, len(self.paths)))

    def described(self) -> dict[str, object]:
        """What must be equal for shards to go together."""
        return {
            "format": FORMAT,
            "source": self.source.fingerprint(),
            "images": len(self.paths),
            "options": asdict(self.options),
        }


def prepare(
    name: str,
    data_dir: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    options: RecordOptions | None = None,
    *,
    workers: int | None = None,
    progress: bool = True,
) -> Records:
    """Stores the images of data set `name` (as in `load`) as records in folder `out`, or goes on
    where an earlier call stopped.

    workers: threads that decode, scale and encode; None takes one a core. The result is the same
        for any number.

    Raises UserError for what `load` raises, for a folder that holds something else or records of
    other options or another source, and where it cannot be written; what is whole stays.
    """
    where = Path(out).expanduser()
    with closing(source_of(name, data_dir)) as source:
        plan = _planned(name, source, options or RecordOptions(), where, progress)
        with _writing(plan):
            where.mkdir(parents=True, exist_ok=True)
            with open(where / ".lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                _begin(plan)
                rows = []
                with bar(f"preparing {name}", len(plan.paths), progress) as advance:
                    for shard in range(plan.shards):
                        done = _whole(plan, shard)
                        if done is None:
                            done = _write_shard(plan, shard, workers or usable_cores(), advance)
                        else:
                            advance(len(plan.numbers(shard)))
                        rows.append(done)
                _finish(plan, rows)
    return Records(where)


def estimate(
    name: str, data_dir: str | os.PathLike[str] | None, options: RecordOptions | None = None
) -> Estimate:
    """What `prepare` would write, from a few images spread over the set; nothing is written."""
    with closing(source_of(name, data_dir)) as source:
        plan = _planned(name, source, options or RecordOptions(), Path(), False)
        count = len(plan.paths)
        probe = sorted({int(n) for n in np.linspace(0, count - 1, min(_PROBE, count))})
        started = time.perf_counter()
        sizes = []
        for number in probe:
            path = plan.paths[number]
            try:
                sizes.append(len(_encoded(plan, number, source.read(path)).data))
            except Unreadable:
                if not plan.options.skip_damaged:
                    raise
        seconds = (time.perf_counter() - started) / len(probe)
        mean = sum(sizes) / max(len(sizes), 1)
    return Estimate(count, round(mean * count), seconds * count)


def _planned(
    name: str, source: FileSource, options: RecordOptions, where: Path, progress: bool
) -> _Plan:
    content = content_of(source, name, progress)
    if isinstance(content, Arrays):
        raise UserError(
            f"data set '{name}' is made of arrays, not of image files\n"
            "  it needs no preparation: syno.data.load reads it directly"
        )
    drawn = draws(options.seed, 0, np.arange(len(content.train) + len(content.test)), 1)[:, 0]
    return _Plan(
        source,
        content.classes,
        content.train + content.test,
        np.concatenate([content.train_labels, content.test_labels]),
        len(content.train),
        drawn < options.jpeg_share * 2**32,
        options,
        where,
    )


@dataclass(frozen=True)
class _Encoded:
    """A record and what is known of it; sums and squares of its pixels for the statistics."""

    data: bytes
    height: int
    width: int
    channels: int
    jpeg: bool
    pixels: int
    sums: list[int]
    squares: list[int]


def _encoded(plan: _Plan, number: int, data: bytes) -> _Encoded:
    options = plan.options
    image = read(data, plan.source.locate(plan.paths[number]), 3, False)
    longer = max(image.size)
    if longer > options.longer_side:
        width, height = (max(1, round(n * options.longer_side / longer)) for n in image.size)
        image = image.resize((width, height), Image.Resampling.BOX)
    channels = 1 if image.mode == "L" else 3
    jpeg = bool(plan.jpeg[number])
    if jpeg:
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=options.quality)
        content = buffer.getvalue()
    else:
        head = f"P{5 if channels == 1 else 6} {image.width} {image.height} 255\n"
        content = head.encode() + image.tobytes()
    counts = np.array(image.histogram(), dtype=np.int64).reshape(channels, 256)
    return _Encoded(
        content,
        image.height,
        image.width,
        channels,
        jpeg,
        image.width * image.height,
        [int(value) for value in counts @ _VALUES],
        [int(value) for value in counts @ _VALUES**2],
    )


def _begin(plan: _Plan) -> None:
    """Writes plan.json, or checks that the one that is there says the same."""
    expected = plan.described()
    path = plan.where / "plan.json"
    found = read_sealed(path)
    if found is None:
        strange = sorted(
            entry.name
            for entry in plan.where.iterdir()
            if not entry.name.startswith((".", "shard-", "plan.json", "index."))
        )
        if strange:
            raise UserError(
                f"folder '{plan.where}' holds something else: {', '.join(strange[:5])}\n"
                "  give an empty or new folder for the records"
            )
        _replace(path, _sealed(expected))
        return
    for key in ("source", "images", "options"):
        if found[key] != expected[key]:
            raise UserError(
                f"folder '{plan.where}' holds records of another "
                f"{'source' if key != 'options' else 'set of options'}\n"
                f"  expected: {key} {found[key]}      got: {expected[key]}\n"
                "  take the same ones, another folder, or remove this one"
            )


def _names(plan: _Plan, shard: int) -> tuple[Path, Path]:
    return plan.where / f"shard-{shard:05}.rec", plan.where / f"shard-{shard:05}.json"


class Shard(TypedDict):
    """What is known of a shard; grey, colour: of its training pixels the number, sums, squares."""

    format: int
    bytes: int
    crc32: int
    rows: list[list[int]]
    skipped: list[str]
    grey: list[int]
    colour: list[int]


def _whole(plan: _Plan, shard: int) -> Shard | None:
    """What is known of a shard whose bytes are as they were written; else None."""
    data, rows = _names(plan, shard)
    known = read_sealed(rows)
    if known is None:
        if data.exists():
            _log.warning("shard '%s' has no rows, or damaged ones; writing it anew", data)
        return None
    crc = length = 0
    try:
        with open(data, "rb") as file:
            while block := file.read(_READ):
                crc = zlib.crc32(block, crc)
                length += len(block)
    except FileNotFoundError:
        length = -1
    if (length, crc) != (known["bytes"], known["crc32"]):
        _log.warning("shard '%s' is damaged; writing it anew", data)
        return None
    return cast(Shard, known)  # its seal says that `_write_shard` wrote it


def _write_shard(plan: _Plan, shard: int, workers: int, advance: Callable[[int], object]) -> Shard:
    data, rows = _names(plan, shard)
    rows.unlink(missing_ok=True)
    table: list[list[int]] = []
    skipped: list[str] = []
    errors: list[Unreadable] = []
    totals = {1: [0] * 3, 3: [0] * 7}  # of training pixels: how many, sums, squares
    crc = offset = 0
    with _replacing(data) as file:
        for number, made in _encode_all(plan, plan.numbers(shard), workers):
            advance(1)
            if isinstance(made, Unreadable):
                errors.append(made)
                skipped.append(plan.paths[number])
                continue
            file.write(made.data)
            crc = zlib.crc32(made.data, crc)
            size = (made.height, made.width, made.channels, int(made.jpeg))
            test = int(number >= plan.split)
            row = [shard, offset, len(made.data), zlib.crc32(made.data), number]
            table.append([*row, int(plan.labels[number]), *size, test])
            offset += len(made.data)
            if not test:
                added = [made.pixels, *made.sums, *made.squares]
                before = totals[made.channels]
                totals[made.channels] = [a + b for a, b in zip(before, added, strict=True)]
        if errors and not plan.options.skip_damaged:
            looked = plan.numbers(shard).stop
            raise UserError(
                f"{errors[0]}\n  {len(errors):,} files among the images up to {looked:,} of "
                f"{len(plan.paths):,} are damaged or are not images: {', '.join(skipped[:5])}"
                f"{' ...' if len(skipped) > 5 else ''}\n"
                "  what to do: replace or remove them, or leave them out with skip_damaged "
                "(--skip-damaged)"
            )
    known: Shard = {
        "format": FORMAT,
        "bytes": offset,
        "crc32": crc,
        "rows": table,
        "skipped": skipped,
        "grey": totals[1],
        "colour": totals[3],
    }
    _replace(rows, _sealed(known))
    return known


def _encode_all(
    plan: _Plan, numbers: Sequence[int], workers: int
) -> Iterator[tuple[int, _Encoded | Unreadable]]:
    """The records of the images, in order; files are read here, and encoded by the workers."""

    def one(number: int, data: bytes) -> _Encoded | Unreadable:
        try:
            return _encoded(plan, number, data)
        except Unreadable as error:
            return error

    waiting: deque[tuple[int, Future[_Encoded | Unreadable]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for number in numbers:
            data = plan.source.read(plan.paths[number])
            waiting.append((number, pool.submit(one, number, data)))
            if len(waiting) > 2 * workers:
                first, made = waiting.popleft()
                yield first, made.result()
        for first, made in waiting:
            yield first, made.result()


def _finish(plan: _Plan, shards: list[Shard]) -> None:
    """Writes the index, or leaves the one that is there and says the same."""
    rows = np.array([tuple(row) for shard in shards for row in shard["rows"]], dtype=ROW)
    for test in (0, 1):
        if not (rows["test"] == test).any():
            raise UserError(
                f"no {'test' if test else 'train'} image of {plan.source.where} can be decoded"
            )
    buffer = io.BytesIO()
    np.save(buffer, rows)
    content = buffer.getvalue()
    mean, std = _statistics(shards)
    meta = {
        **plan.described(),
        "classes": list(plan.classes),
        "mean": mean,
        "std": std,
        "skipped": [path for shard in shards for path in shard["skipped"]],
        "shards": [_names(plan, shard)[0].name for shard in range(plan.shards)],
        "checksums": [shard["crc32"] for shard in shards],
        "rows": len(rows),
        "crc32": zlib.crc32(content),
    }
    index = plan.where / "index.npy"
    if not index.is_file() or index.read_bytes() != content:
        _replace(index, content)
    if read_sealed(plan.where / "index.json") != {**meta, "seal": seal(meta)}:
        _replace(plan.where / "index.json", _sealed(meta))


def _statistics(shards: list[Shard]) -> tuple[list[float], list[float]]:
    """Mean and deviation of the training pixels as stored, in units of 255, a channel; grey images
    count in each channel where others have colour. Sums are integers of any size."""
    grey = [sum(part) for part in zip(*(shard["grey"] for shard in shards), strict=True)]
    colour = [sum(part) for part in zip(*(shard["colour"] for shard in shards), strict=True)]
    channels = 3 if colour[0] else 1
    mean, std = [], []
    for channel in range(channels):
        count = grey[0] + colour[0]
        total = grey[1] + (colour[1 + channel] if colour[0] else 0)
        square = grey[2] + (colour[4 + channel] if colour[0] else 0)
        middle = total / max(count, 1)
        mean.append(middle / 255)
        std.append(max(math.sqrt(max(square / max(count, 1) - middle * middle, 0.0)), 1.0) / 255)
    return mean, std


def _sealed(content: Mapping[str, object]) -> bytes:
    return json.dumps({**content, "seal": seal(content)}).encode()


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    with replacing(path) as to, to.open("wb") as file:
        yield file


def _replace(path: Path, content: bytes) -> None:
    with _replacing(path) as file:
        file.write(content)


@contextmanager
def _writing(plan: _Plan) -> Iterator[None]:
    """Turns a failure to write into a UserError that says how to go on."""
    try:
        yield
    except OSError as error:
        done = sum(1 for _ in plan.where.glob("shard-*.json"))
        raise UserError(
            f"cannot write records into '{plan.where}': {why_not_written(error)}\n"
            f"  {done} of {plan.shards} shards are complete and are kept; free some space and "
            "repeat the call to continue"
        ) from error
