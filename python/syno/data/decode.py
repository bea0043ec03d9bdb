"""From image files to uint8 arrays, with one clear error for a file that does not decode."""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from PIL import Image, ImageOps

from syno._errors import UserError
from syno.data.source import Source

_GREY = frozenset(("1", "L", "LA", "I", "I;16", "I;16B", "I;16L"))
_CHUNK_BYTES = 4 << 20
_CHUNK_IMAGES = 256
# Below this size of a file the interpreter, not the decoder, takes the time, and threads only get
# in each other's way (measured: 32 px JPEGs of 1 KB decode 1.8x slower with two threads).
_THREADS_FROM_BYTES = 16 << 10


class ColourFound(Exception):
    """A set that began with grey images holds one in colour: decode it again with 3 channels."""


def is_grey(data: bytes, where: str) -> bool:
    """Whether the image has one channel. Raises UserError, naming `where`, if it is unreadable."""
    return _open(data, where).mode in _GREY


def decode(data: bytes, where: str, size: int | None, channels: int, strict: bool) -> np.ndarray:
    """One image, uint8 [channels, H, W].

    With `size` the shorter side is scaled to it (bilinear, area-aware) and the centre is kept. With
    `strict` a colour image asked for in grey raises ColourFound instead of being converted.
    Raises UserError, naming `where`, for a file that is no image, truncated or not square.
    """
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
        image = _eight_bits(image, "L" if channels == 1 or grey else "RGB")
    except _UNREADABLE as error:
        raise _unreadable(where, error) from error
    if size is not None and image.size != (size, size):
        image = ImageOps.fit(image, (size, size), method=Image.Resampling.BILINEAR)
    if image.width != image.height:
        raise UserError(
            f"image {where} is {image.width} x {image.height} pixels, not square\n"
            "  give a size (size=32, --resolution 32) to scale and crop every image to it"
        )
    array = np.asarray(image)
    if array.ndim == 2:
        return np.repeat(array[None], channels, axis=0)
    return np.moveaxis(array, 2, 0)


def decode_all(
    source: Source,
    paths: Sequence[str],
    size: int | None,
    channels: int,
    strict: bool,
    advance: Callable[[int], None],
) -> Iterator[np.ndarray]:
    """Blocks uint8 [n, channels, H, W] of the images of `paths`, in order.

    Large files are decoded on as many threads as there are cores (Pillow frees the interpreter
    while it decodes); a few blocks are in flight, so memory stays bounded.
    """

    edge: int | None = None
    first = ""

    def block(part: list[tuple[str, bytes]]) -> list[np.ndarray]:
        return [decode(data, source.locate(path), size, channels, strict) for path, data in part]

    def finish(part: list[tuple[str, bytes]], images: list[np.ndarray]) -> np.ndarray:
        nonlocal edge, first
        for (path, _), image in zip(part, images, strict=True):
            if edge is None:
                edge, first = image.shape[1], path
            if image.shape[1] != edge:
                raise UserError(
                    f"images of {source.where} differ in size\n"
                    f"  '{first}' is {edge} x {edge}, '{path}' is {image.shape[2]} x "
                    f"{image.shape[1]} pixels\n  give a size (size=32, --resolution 32)"
                )
        advance(len(images))
        return np.stack(images)

    cores = len(os.sched_getaffinity(0))
    pending: deque[tuple[list[tuple[str, bytes]], Future[list[np.ndarray]]]] = deque()
    with ThreadPoolExecutor(cores) as pool:
        for part in _chunks(source, paths):
            if sum(len(data) for _, data in part) < _THREADS_FROM_BYTES * len(part):
                while pending:
                    done, images = pending.popleft()
                    yield finish(done, images.result())
                yield finish(part, block(part))
                continue
            pending.append((part, pool.submit(block, part)))
            if len(pending) > cores + 1:
                done, images = pending.popleft()
                yield finish(done, images.result())
        while pending:
            done, images = pending.popleft()
            yield finish(done, images.result())


def _chunks(source: Source, paths: Sequence[str]) -> Iterator[list[tuple[str, bytes]]]:
    part: list[tuple[str, bytes]] = []
    weight = 0
    for path in paths:
        data = source.read(path)
        part.append((path, data))
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


def _unreadable(where: str, error: BaseException) -> UserError:
    text = str(error)
    if "cannot identify image file" in text:
        text = "not an image of a known format, or cut off at its head"
    return UserError(f"cannot decode image {where}: {text}\n  replace the file or remove it")


def _eight_bits(image: Image.Image, mode: str) -> Image.Image:
    if image.mode == mode:
        return image
    if image.mode.startswith("I"):
        # 16-bit grey: Pillow's own conversion clips at 255 instead of scaling.
        high = np.asarray(image).astype(np.int64) >> 8
        image = Image.fromarray(np.clip(high, 0, 255).astype(np.uint8))
    return image.convert(mode)
