"""Results as targets of a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def normal_scores(values: ArrayLike) -> NDArray[np.float64]:
    """Replace values by the normal quantiles of their ranks; equal values get equal scores.

    The scores do not depend on the unit of the values, and an outlier is as far away as any last
    rank, so that results of several studies and failures can stand in one set of data. See Salinas
    et al., "A Quantile-based Approach for Hyperparameter Transfer Learning" (2020).

    Args:
        values: greater is better, [n].

    Returns:
        [n], of mean 0 and variance about 1.
    """
    from scipy.special import ndtri

    if not np.size(values):
        return np.zeros(0)
    _, which, counts = np.unique(
        np.asarray(values, dtype=float), return_inverse=True, return_counts=True
    )
    ranks = np.cumsum(counts) - (counts - 1) / 2  # from 1; the mean of equal ones
    return np.asarray(ndtri((ranks[which] - 0.5) / len(which)))
