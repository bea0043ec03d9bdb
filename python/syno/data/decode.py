"""From image files to uint8 arrays, with one clear error for a file that does not decode."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from PIL import Image, ImageOps

from syno._util.errors import UserError
from syno._util.threads import usable_cores
from syno.data.source import FileSource

_GREY = frozenset(("1", "L", "LA", "I", "I;16", "I;16B", "I;16L"))
_CHUNK_BYTES = 4 << 20
_CHUNK_IMAGES = 256
# Below this size of a file the interpreter, not the decoder, takes the time, and threads only get
# in each other's way (measured: 32 px JPEGs of 1 KB decode 1.8x slower with two threads).
_THREADS_FROM_BYTES = 16 << 10
# Positions of files, with their bytes.
_Part = list[tuple[int, bytes]]


class Unreadable(UserError):
    """A file is no image, or a damaged one."""


class ColourFound(Exception):
    """A set that began with grey images holds one in colour: decode it again with 3 channels."""


def is_grey(data: bytes, where: str) -> bool:
    """Whether the image has one channel. Raises Unreadable, naming `where`."""
    return _open(data, where).mode in _GREY


def decode(data: bytes, where: str, size: int | None, channels: int, strict: bool) -> np.ndarray:
    """One image, uint8 [channels, H, W].

    With `size` the shorter side is scaled to it (bilinear, area-aware) and the centre is kept. With
    `strict` a colour image asked for in grey raises ColourFound instead of being converted.
    Raises Unreadable, naming `where`, for a file that is no image or truncated, and UserError for
    an image that is not square.
    """
    image = read(data, where, channels, strict)
    return planes(fit(image, size, where), channels)


def read(data: bytes, where: str, channels: int, strict: bool) -> Image.Image:
    """The image of a file, of mode L or RGB: grey for one channel, and where the file is. Raises as
    `decode`."""
    image = _open(data, where)
    grey = image.mode in _GREY
    if strict and channels == 1 and not grey:
        raise ColourFound
    if image.mode == "F":
        raise UserError(
            f"image {where} holds floating-point pixels\n  expected: 8 or 16 bits a pixel"
        )
    try:
        image.load()
        return _eight_bits(image, "L" if channels == 1 or grey else "RGB")
    except _UNREADABLE as error:
        raise _unreadable(where, error) from error


def fit(image: Image.Image, size: int | None, where: str) -> Image.Image:
    """The square image: with `size` scaled and cut to it. Raises UserError for one not square."""
    if size is not None and image.size != (size, size):
        image = ImageOps.fit(image, (size, size), method=Image.Resampling.BILINEAR)
    if image.width != image.height:
        raise UserError(
            f"image {where} is {image.width} x {image.height} pixels, not square\n"
            "  what to do: give a size (size=32, --resolution 32), to which every image is scaled "
            "and cropped"
        )
    return image


def planes(image: Image.Image, channels: int) -> np.ndarray:
    """An image of mode L or RGB as uint8 [channels, H, W]."""
    array = np.asarray(image)
    if array.ndim == 2:
        return np.repeat(array[None], channels, axis=0)
    return np.moveaxis(array, 2, 0)


def decode_all(
    source: FileSource,
    paths: Sequence[str],
    size: int | None,
    channels: int,
    strict: bool,
    damaged: list[Unreadable],
    advance: Callable[[int], None],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of the images of `paths`, in order: where in `paths` they stand, int64 [n], and the
    images, uint8 [n, channels, H, W].

    A file that is no image is left out and goes on the list `damaged`. Large files are decoded on
    as many threads as there are cores (Pillow frees the interpreter while it decodes); a few blocks
    are in flight, so memory stays bounded.
    """
    edge: int | None = None
    first = ""

    def block(part: _Part) -> list[np.ndarray | Unreadable]:
        images: list[np.ndarray | Unreadable] = []
        for number, data in part:
            try:
                where = source.locate(paths[number])
                images.append(decode(data, where, size, channels, strict))
            except Unreadable as error:
                images.append(error)
        return images

    def finish(
        part: _Part, images: list[np.ndarray | Unreadable]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        nonlocal edge, first
        advance(len(images))
        whole = []
        for (number, _), image in zip(part, images, strict=True):
            if isinstance(image, Unreadable):
                damaged.append(image)
                continue
            if edge is None:
                edge, first = image.shape[1], paths[number]
            if image.shape[1] != edge:
                raise UserError(
                    f"images of {source.where} differ in size\n"
                    f"  '{first}' is {edge} x {edge}, '{paths[number]}' is {image.shape[2]} x "
                    f"{image.shape[1]} pixels\n  what to do: give a size (size=32, --resolution 32)"
                )
            whole.append((number, image))
        if not whole:
            return None
        numbers, kept = zip(*whole, strict=True)
        return np.array(numbers, dtype=np.int64), np.stack(kept)

    cores = usable_cores()
    pending: deque[tuple[_Part, Future[list[np.ndarray | Unreadable]]]] = deque()
    with ThreadPoolExecutor(cores) as pool:

        def waiting(most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
            while len(pending) > most:
                part, images = pending.popleft()
                if (made := finish(part, images.result())) is not None:
                    yield made

        for part in _chunks(source, paths):
            if sum(len(data) for _, data in part) < _THREADS_FROM_BYTES * len(part):
                yield from waiting(0)
                if (made := finish(part, block(part))) is not None:
                    yield made
            else:
                pending.append((part, pool.submit(block, part)))
                yield from waiting(cores + 1)
        yield from waiting(0)


def _chunks(source: FileSource, paths: Sequence[str]) -> Iterator[_Part]:
    part: _Part = []
    weight = 0
    for number, path in enumerate(paths):
        data = source.read(path)
        part.append((number, data))
        weight += len(data)
        if len(part) == _CHUNK_IMAGES or weight > _CHUNK_BYTES:
            yield part
            part, weight = [], 0
    if part:
        yield part


# What Pillow raises for a file that is damaged: its plug-ins let parsing errors through.
_UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, IndexError, Image.DecompressionBombError)


def _open(data: bytes, where: str) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data))
    except _UNREADABLE as error:
        raise _unreadable(where, error) from error


def _unreadable(where: str, error: BaseException) -> Unreadable:
    text = str(error)
    if "cannot identify image file" in text:
        text = "not an image of a known format, or cut off at its head"
    return Unreadable(f"cannot decode image {where}: {text}")


def _eight_bits(image: Image.Image, mode: str) -> Image.Image:
    if image.mode == mode:
        return image
    if image.mode.startswith("I"):
        # 16-bit grey: Pillow's own conversion clips at 255 instead of scaling.
        high = np.asarray(image).astype(np.int64) >> 8
        image = Image.fromarray(np.clip(high, 0, 255).astype(np.uint8))
    return image.convert(mode)
