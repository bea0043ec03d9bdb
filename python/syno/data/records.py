"""Images as records in large files, read at random: what `syno data prepare` writes.

    plan.json             what was asked: options, source, number of images; written first
    shard-00000.rec       records one behind the other: JPEG files, or PPM (PGM) files of raw pixels
    shard-00000.json      where each record lies; written when its shard is whole
    index.npy index.json  all shards together, classes and statistics; written last

Each record has a checksum that is looked at whenever it is read. Needs NumPy and Pillow, never
torch.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import weakref
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from PIL import Image

from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno.data.decode import planes, read
from syno.data.layout import Layout
from syno.data.random import box_of, draws

FORMAT = 1
AGAIN = "`syno data prepare` with the same options writes the damaged part again"
# One row an image. sample: its number in the source; test: 1 in the test split.
ROW = np.dtype(
    [
        ("shard", "<u4"),
        ("offset", "<u8"),
        ("length", "<u4"),
        ("crc32", "<u4"),
        ("sample", "<u4"),
        ("label", "<i4"),
        ("height", "<u2"),
        ("width", "<u2"),
        ("channels", "u1"),
        ("jpeg", "u1"),
        ("test", "u1"),
    ]
)


class Records:
    """A folder of records: `train` and `test` splits, `classes`, and mean and deviation of the
    training pixels a channel, in units of 255. `fingerprint` (32 hex) names the content.

    Raises UserError for a folder that holds no finished records, and for a damaged index.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).expanduser()
        meta = read_sealed(self.folder / "index.json")
        if meta is None:
            raise UserError(
                f"folder '{self.folder}' holds no finished records, or its index is damaged\n"
                f"  {AGAIN}, and continues where it stopped"
            )
        self.options: dict[str, object] = meta["options"]
        self.classes: tuple[str, ...] = tuple(meta["classes"])
        self.mean: tuple[float, ...] = tuple(meta["mean"])
        self.std: tuple[float, ...] = tuple(meta["std"])
        self.skipped: int = len(meta["skipped"])
        content = {key: meta[key] for key in ("classes", "checksums", "crc32")}
        self.fingerprint: str = seal(content)
        rows = self._rows(meta["rows"], meta["crc32"])
        self.channels = int(rows["channels"].max())
        names = tuple(meta["shards"])
        shards = [_open(self.folder / name) for name in names]
        weakref.finalize(self, _close, shards)
        self.train = RecordSplit(self, rows[rows["test"] == 0], names, shards)
        self.test = RecordSplit(self, rows[rows["test"] == 1], names, shards)

    def _rows(self, count: int, crc: int) -> np.ndarray:
        path = self.folder / "index.npy"
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"cannot read '{path}': {error.strerror}\n  {AGAIN}") from error
        if zlib.crc32(content) != crc:
            raise UserError(f"index '{path}' is damaged\n  {AGAIN}")
        return np.frombuffer(content[-count * ROW.itemsize :], ROW)


class RecordSplit:
    """The images of one split, each of its own size; `labels` int64 [N], `sizes` (height and width
    in pixels) int64 [N, 2]."""

    def __init__(
        self, records: Records, rows: np.ndarray, names: tuple[str, ...], shards: list[int]
    ) -> None:
        self.records, self._rows, self._names, self._shards = records, rows, names, shards
        self.labels = rows["label"].astype(np.int64)
        self.sizes = np.stack([rows["height"], rows["width"]], axis=1).astype(np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def bytes_of(self, number: int) -> bytes:
        """The record of an image: the content of a JPEG, PPM or PGM file.

        Raises UserError, naming the record, where it does not match its checksum.
        """
        row = self._rows[number]
        length = int(row["length"])
        data = os.pread(self._shards[row["shard"]], length, int(row["offset"]))
        if len(data) != length or zlib.crc32(data) != row["crc32"]:
            raise UserError(
                f"{self.locate(number)} is {'damaged' if len(data) == length else 'cut off'}\n"
                f"  {AGAIN}"
            )
        return data

    def locate(self, number: int) -> str:
        """Names the record in a message."""
        row = self._rows[number]
        shard = self.records.folder / self._names[row["shard"]]
        return f"record {int(row['sample'])} in '{shard}' at byte {int(row['offset'])}"

    def image(self, number: int) -> Image.Image:
        """The image, of mode L or RGB, of its own size."""
        return read(self.bytes_of(number), self.locate(number), self.records.channels, False)

    def view(
        self,
        size: int,
        area: tuple[float, float] | None = None,
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        centre: float = 0.875,
    ) -> RecordView:
        """The images at one size, for `ImageBatches`.

        area: shares of an image that a random part covers, such as (0.08, 1) or (0.35, 1), its
            width to height within `ratio`; None takes the square in the middle whose side is
            `centre` of the shorter side.
        """
        if size < 1:
            raise UserError(f"cannot scale records to size {size}\n  expected: 1 or more pixels")
        return RecordView(self, size, area, ratio, centre)


class RecordView:
    """Images of one size, scaled from parts of records by Pillow."""

    def __init__(
        self,
        split: RecordSplit,
        size: int,
        area: tuple[float, float] | None,
        ratio: tuple[float, float],
        centre: float,
    ) -> None:
        self._split, self._size, self._area = split, size, area
        self._ratio, self._centre = ratio, centre

    @property
    def labels(self) -> np.ndarray:
        """int64 [N]."""
        return self._split.labels

    def fetch(self, index: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """uint8 [n, C, size, size]; the part of an image depends on (seed, epoch, its number)."""
        size, channels = self._size, self._split.records.channels
        made = np.empty((len(index), channels, size, size), dtype=np.uint8)
        for place, (number, box) in enumerate(
            zip(index, self.boxes(index, seed, epoch), strict=True)
        ):
            image = self._split.image(int(number))
            part = image.resize((size, size), Image.Resampling.BILINEAR, box=tuple(box))
            made[place] = planes(part, channels)
        return made

    def boxes(self, index: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """The parts, in pixels: left, top, right, bottom, float64 [n, 4]."""
        height, width = self._split.sizes[index].T
        if self._area is None:
            side = np.minimum(height, width) * self._centre
            left, top = (width - side) / 2, (height - side) / 2
            return np.stack([left, top, left + side, top + side], axis=1)
        # Columns that `Augmenter` does not use, so that both may have one seed.
        drawn = draws(seed, epoch, index, 16)[:, 12:]
        top, left, tall, wide = box_of(drawn, self._area, self._ratio, height, width)
        return np.stack([left, top, left + wide, top + tall], axis=1).astype(np.float64)


class RecordSource:
    """Records as a source of `load`: their files are `train/<number>` and `test/<number>`."""

    def __init__(self, folder: Path) -> None:
        self.records = Records(folder)
        self.where = f"records '{folder}'"
        self.files: list[str] = []
        self.folders: list[str] = []

    def scan(self, advance: Callable[[int], None]) -> None:
        """Nothing is left to look for."""

    def layout(self) -> Layout:
        """Classes and splits as the source of the records had them."""
        train, test = self.records.train, self.records.test
        return Layout(
            self.records.classes,
            tuple(f"train/{i}" for i in range(len(train))),
            train.labels,
            tuple(f"test/{i}" for i in range(len(test))),
            test.labels,
        )

    def fingerprint(self) -> str:
        """Of the records' checksums."""
        return self.records.fingerprint

    def content(self) -> str:
        """The same."""
        return self.fingerprint()

    def read(self, path: str) -> bytes:
        """The record."""
        split, number = self._place(path)
        return split.bytes_of(number)

    def open(self, path: str) -> IO[bytes]:
        """The record, to read from its beginning."""
        return io.BytesIO(self.read(path))

    def locate(self, path: str) -> str:
        """Names the record in a message."""
        split, number = self._place(path)
        return split.locate(number)

    def close(self) -> None:
        """The shards are closed with the records."""

    def _place(self, path: str) -> tuple[RecordSplit, int]:
        part, number = path.split("/")
        return (self.records.train if part == "train" else self.records.test), int(number)


def is_records(folder: Path) -> bool:
    """Whether the folder is one of records, finished or not."""
    return (folder / "plan.json").is_file()


def read_sealed(path: Path) -> dict[str, Any] | None:
    """The content of a sealed file with its seal; None where it is missing, damaged or of another
    format."""
    try:
        content = parsed_json(path.read_text())
        sealed = isinstance(content, dict) and content.get("seal") == seal(content)
    except (OSError, ValueError, RecursionError):  # nested too deeply to be written again
        return None
    return content if sealed and content["format"] == FORMAT else None


def seal(content: Mapping[str, object]) -> str:
    """32 hex, of everything but the seal."""
    text = json.dumps({k: v for k, v in content.items() if k != "seal"}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        raise UserError(f"cannot read shard '{path}': {error.strerror}\n  {AGAIN}") from error


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
