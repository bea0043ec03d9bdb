"""The digits data set that scikit-learn carries: 1797 grey images of 8 x 8, ten classes."""

from __future__ import annotations

import hashlib

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
    try:
        from sklearn.datasets import load_digits as embedded
    except ImportError as error:
        raise UserError(
            "data set 'digits' is embedded in scikit-learn, which is not installed\n"
            "  install it with: pip install scikit-learn"
        ) from error
    bunch = embedded()
    # Values are counts 0 .. 16 of set pixels in 4 x 4 blocks.
    grey = np.round(bunch.images * (255 / 16)).astype(np.uint8)
    if size is not None and size != grey.shape[1]:
        grey = np.stack([_resized(image, size) for image in grey])
    images = np.repeat(grey[:, None], channels or 1, axis=1)
    labels = bunch.target.astype(np.int64)

    test = stratified(labels, apportion(np.bincount(labels), TEST_IMAGES), SPLIT_SEED)
    train = np.setdiff1d(np.arange(len(labels)), test)
    mean, std = statistics(images[train])
    digest = hashlib.blake2b(images.tobytes() + labels.tobytes(), digest_size=16)
    digest.update(f"{SPLIT_SEED} {TEST_IMAGES}".encode())
    return DataSet(
        name="digits",
        train=Split(images[train], labels[train]),
        test=Split(images[test], labels[test]),
        classes=tuple(str(name) for name in bunch.target_names),
        mean=mean,
        std=std,
        fingerprint=digest.hexdigest(),
    )


def _resized(image: np.ndarray, size: int) -> np.ndarray:
    """Grey uint8 [H, W] to [size, size]."""
    return np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR))
