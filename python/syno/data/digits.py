"""The digits data set that scikit-learn carries: 1797 grey images of 8 x 8, ten classes."""

from __future__ import annotations

import gzip
import hashlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

from syno._util.errors import UserError
from syno.data.dataset import DataSet, Split, apportion, statistics, stratified

# The set has no official split; this one is part of the data set's definition and never changes.
TEST_IMAGES = 360
SPLIT_SEED = 0


def load_digits(size: int | None, channels: int | None) -> DataSet:
    """Images [N, channels or 1, size or 8, size or 8]: 1437 to train, 360 to test.

    Raises UserError when scikit-learn is not installed.
    """
    table = _embedded()
    # Values are counts 0 .. 16 of set pixels in 4 x 4 blocks.
    grey = np.round(table[:, :-1].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    if size is not None and size != grey.shape[1]:
        grey = np.stack([_resized(image, size) for image in grey])
    images = np.repeat(grey[:, None], channels or 1, axis=1)
    labels = table[:, -1].astype(np.int64)

    test = stratified(labels, apportion(np.bincount(labels), TEST_IMAGES), SPLIT_SEED)
    train = np.setdiff1d(np.arange(len(labels)), test)
    mean, std = statistics(images[train])
    digest = hashlib.blake2b(images.tobytes() + labels.tobytes(), digest_size=16)
    digest.update(f"{SPLIT_SEED} {TEST_IMAGES}".encode())
    return DataSet(
        name="digits",
        train=Split(images[train], labels[train]),
        test=Split(images[test], labels[test]),
        classes=tuple(str(digit) for digit in range(10)),
        mean=mean,
        std=std,
        fingerprint=digest.hexdigest(),
    )


def _embedded() -> np.ndarray:
    """The table of scikit-learn's file: a row [64 pixels, label] for each image.

    The file is read without importing the package, which takes longer than a short training.
    """
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise UserError(
            "data set 'digits' is embedded in scikit-learn, which is not installed\n"
            "  install it with: pip install scikit-learn"
        )
    path = Path(package.origin).parent / "datasets/data/digits.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            return np.loadtxt(file, delimiter=",", ndmin=2)
    except (OSError, EOFError, ValueError) as error:
        raise UserError(
            f"data set 'digits' cannot be read from scikit-learn's file '{path}': {error}\n"
            "  install it with: pip install scikit-learn"
        ) from error


def _resized(image: np.ndarray, size: int) -> np.ndarray:
    """Grey uint8 [H, W] to [size, size]."""
    return np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR))
