"""How images are stored as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from syno._util.options import Options, option


@dataclass(frozen=True, kw_only=True)
class RecordOptions(Options):
    """How images are stored; the defaults are those of the paper's experiments on ImageNet.

    Args:
        longer_side: pixels at most; larger images are scaled (area averages).
        quality: of JPEG. jpeg_share: of the images that are stored as JPEG, chosen by `seed`; the
            others are stored as raw pixels, which load faster and take eight times the room.
        shard_images: images in one file.
        skip_damaged: whether files that are no images are left out.
    """

    section: ClassVar[str] = "Records"
    longer_side: int = option(
        "Scale larger images to this.", 400, minimum=1, maximum=65535, metavar="PIXELS"
    )
    quality: int = option("Quality of JPEG images.", 90, minimum=1, maximum=100, metavar="1-100")
    jpeg_share: float = option(
        "Share of images stored as JPEG; the others are raw pixels.",
        0.1,
        minimum=0,
        maximum=1,
        metavar="0-1",
    )
    shard_images: int = option("Images in one file.", 1000, minimum=1, maximum=1 << 20, metavar="N")
    seed: int = option("Seed that selects the images stored as JPEG.", 0)
    skip_damaged: bool = option("Omit files that are not images.", False)
