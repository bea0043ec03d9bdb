"""One generator of a small image folder as ImageNet is made: mixed sizes, formats and modes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from syno.data import Stream

# (suffix, mode), taken in turn; JPEG in colour is the most frequent, as in ImageNet.
FORMS = (
    (".JPEG", "RGB"), (".jpg", "RGB"), (".JPEG", "L"), (".png", "RGB"), (".JPEG", "RGB"),
    (".png", "RGBA"), (".jpg", "CMYK"), (".png", "P"), (".JPEG", "RGB"), (".png", "L"),
)  # fmt: skip


def mixed_folder(
    root: Path,
    *,
    classes: int = 3,
    train: int = 8,
    val: int = 3,
    sizes: tuple[int, int] = (20, 60),
    pixels: np.ndarray | None = None,
) -> Path:
    """train/<class>/<image> and val/<class>/<image> with so many images a class.

    sizes: of the sides, from and to. pixels: uint8 [N, 3, H, W] to begin from, such as CIFAR's
    images; without them gradients with noise, which JPEG keeps well.
    """
    stream = Stream(17)
    number = 0
    for part, count in (("train", train), ("val", val)):
        for label in range(classes):
            folder = root / part / f"n{label:04}"
            folder.mkdir(parents=True)
            for _ in range(count):
                width, height = (
                    int(s) + sizes[0] for s in stream.below(sizes[1] - sizes[0] + 1, 2)
                )
                if pixels is None:
                    small = stream.below(256, 4 * 4 * 3).astype(np.uint8).reshape(4, 4, 3)
                else:
                    small = np.moveaxis(pixels[number % len(pixels)], 0, 2)
                image = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
                suffix, mode = FORMS[number % len(FORMS)]
                image.convert(mode).save(folder / f"{number:05}{suffix}")
                number += 1
    return root
