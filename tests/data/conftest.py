"""Small image folders made with Pillow, and a cache of each test's own."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

_REAL = os.environ.get("SYNO_DATA")


@pytest.fixture
def real_data() -> Path:
    """The folder of real data sets that SYNO_DATA named when the tests began."""
    if not _REAL:
        pytest.skip("needs SYNO_DATA")
    return Path(_REAL)


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """SYNO_CACHE points into the test's folder; SYNO_DATA is not set."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SYNO_CACHE", str(folder))
    monkeypatch.delenv("SYNO_DATA", raising=False)
    return folder


def picture(seed: int, size: tuple[int, int] = (8, 8), mode: str = "RGB") -> Image.Image:
    """Random pixels, the same for the same seed."""
    width, height = size
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """make_folder(name, {"train/cat": 5}, ...) writes PNGs 000.png .. into each folder."""

    def make(
        name: str,
        counts: dict[str, int],
        *,
        size: tuple[int, int] = (8, 8),
        mode: str = "RGB",
    ) -> Path:
        root = tmp_path / name
        for number, (folder, count) in enumerate(counts.items()):
            (root / folder).mkdir(parents=True)
            for i in range(count):
                picture(1000 * number + i, size, mode).save(root / folder / f"{i:03}.png")
        return root

    return make


OFFICIAL = {"train/cat": 5, "train/dog": 4, "test/cat": 2, "test/dog": 3}


@pytest.fixture
def photos(make_folder: Callable[..., Path]) -> Path:
    """A folder `photos` with train and test parts: 9 and 5 RGB images of 8 x 8."""
    return make_folder("photos", OFFICIAL)


@pytest.fixture
def pack(tmp_path: Path) -> Callable[[Path, str], Path]:
    """pack(folder, suffix) makes an archive beside it, the folder's name at its top."""

    def packed(folder: Path, suffix: str) -> Path:
        path = folder.with_name(folder.name + suffix)
        mode = {".tar": "w", ".tar.xz": "w:xz", ".tar.gz": "w:gz"}[suffix]
        with tarfile.open(path, mode) as archive:
            archive.add(folder, folder.name)
        return path

    return packed
