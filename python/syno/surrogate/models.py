"""Models that predict the result of an operator from its features, with their uncertainty.

forest      extremely randomized trees (Geurts et al., 2006); the uncertainty is the deviation
            between trees
boosting    gradient boosting (Friedman, 2002), several with their own random numbers and samples
gaussian    a Gaussian process with a Matern kernel over standardized features
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from syno._util.errors import UserError

Array = NDArray[np.float64]
_TREES = 120
_BOOSTED = 5
# Parts of the data that are left out in turn to compare models.
_FOLDS = 5


@dataclass(frozen=True)
class Prediction:
    """Means and standard deviations of results, [operators] each."""

    mean: Array
    deviation: Array


class SurrogateModel(Protocol):
    """A fitted model."""

    def predict(self, features: Array) -> Prediction:
        """Predict the results of operators from their features, [operators, features]."""


class _Prepared:
    """Unknown features are replaced by the median, and constant ones are left out."""

    def __init__(self, features: Array) -> None:
        known = np.where(np.isfinite(features), features, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a feature that nobody has
            self._median = np.nan_to_num(np.nanmedian(known, axis=0))
        filled = np.where(np.isnan(known), self._median, known)
        self._mean, spread = filled.mean(axis=0), filled.std(axis=0)
        self._used = spread > 1e-12 * (1 + np.abs(self._mean))
        self._spread = np.where(self._used, spread, 1.0)

    def __call__(self, features: Array) -> Array:
        filled = np.where(np.isfinite(features), features, self._median)
        return np.asarray(((filled - self._mean) / self._spread)[:, self._used])


def _one_thread() -> contextlib.AbstractContextManager[object]:
    """Products of matrices are then the same for any number of threads, and so are proposals."""
    from threadpoolctl import threadpool_limits

    limits: contextlib.AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limits


class Forest:
    """See the module."""

    def __init__(self, features: Array, targets: Array, weights: Array, seed: int) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        self._prepared = _Prepared(features)
        self._forest = ExtraTreesRegressor(
            _TREES, min_samples_leaf=2, max_features=0.4, random_state=seed
        )
        self._forest.fit(self._prepared(features), targets, sample_weight=weights)

    def predict(self, features: Array) -> Prediction:
        """See `SurrogateModel`."""
        x = self._prepared(features).astype(np.float32)
        found = np.stack([tree.tree_.predict(x)[:, 0] for tree in self._forest.estimators_])
        return Prediction(found.mean(axis=0), found.std(axis=0))


class Boosting:
    """See the module."""

    def __init__(self, features: Array, targets: Array, weights: Array, seed: int) -> None:
        from sklearn.ensemble import GradientBoostingRegressor

        self._prepared = _Prepared(features)
        x = self._prepared(features)
        self._models = []
        for number in range(_BOOSTED):
            state = np.random.default_rng((seed, number))
            sample = state.integers(len(x), size=len(x))  # a bootstrap, for the uncertainty
            model = GradientBoostingRegressor(
                n_estimators=100,
                learning_rate=0.08,
                max_depth=3,
                subsample=0.7,
                max_features=0.3,
                random_state=int(state.integers(2**31)),
            )
            self._models.append(model.fit(x[sample], targets[sample], weights[sample]))

    def predict(self, features: Array) -> Prediction:
        """See `SurrogateModel`."""
        x = self._prepared(features)
        found = np.stack([model.predict(x) for model in self._models])
        return Prediction(found.mean(axis=0), found.std(axis=0, ddof=1))


class Gaussian:
    """See the module."""

    def __init__(self, features: Array, targets: Array, weights: Array, seed: int) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        self._prepared = _Prepared(features)
        x = self._prepared(features)
        scale = float(np.sqrt(max(1, x.shape[1])))
        kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(
            scale, (0.2 * scale, 10 * scale), nu=2.5
        ) + WhiteKernel(0.2, (1e-3, 2.0))
        # An operator of weight 1/2 counts as if its result had some noise of its own.
        noise = 0.2 * (1 / np.maximum(weights, 1e-3) - 1) + 1e-8
        self._process = GaussianProcessRegressor(
            kernel, alpha=noise, normalize_y=True, random_state=seed
        )
        with warnings.catch_warnings(), _one_thread():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter at its bound
            self._process.fit(x, targets)

    def predict(self, features: Array) -> Prediction:
        """See `SurrogateModel`."""
        with _one_thread():
            mean, deviation = self._process.predict(self._prepared(features), return_std=True)
        return Prediction(np.asarray(mean), np.asarray(deviation))


MODELS: dict[str, Callable[[Array, Array, Array, int], SurrogateModel]] = {
    "forest": Forest,
    "boosting": Boosting,
    "gaussian": Gaussian,
}


def fit_model(
    name: str, features: Array, targets: Array, weights: Array | None = None, *, seed: int = 0
) -> SurrogateModel:
    """Fit the model of this name.

    Args:
        name: one of `MODELS`.
        features: [operators, features]; NaN where a feature is not known.
        targets: the results, greater is better, [operators].
        weights: how much each operator counts, from 0 to 1; default 1.
        seed: of the random numbers.

    Raises:
        UserError: for an unknown name.
    """
    if name not in MODELS:
        raise UserError(
            f"there is no surrogate model '{name}'\n  expected: one of {', '.join(MODELS)}"
        )
    if weights is None:
        weights = np.ones(len(targets))
    return MODELS[name](features, targets, weights, seed)


def cross_validated(
    name: str, features: Array, targets: Array, weights: Array | None = None, *, seed: int = 0
) -> Array:
    """Predict each result by a model that was fitted without it, in five folds."""
    weights = np.ones(len(targets)) if weights is None else weights
    order = np.random.default_rng(seed).permutation(len(targets))
    found = np.empty(len(targets))
    for fold in np.array_split(order, min(_FOLDS, len(order))):
        rest = np.setdiff1d(order, fold)
        model = fit_model(name, features[rest], targets[rest], weights[rest], seed=seed)
        found[fold] = model.predict(features[fold]).mean
    return found


def rank_correlation(a: Sequence[float] | Array, b: Sequence[float] | Array) -> float:
    """Spearman's rank correlation; 0 where one side is constant."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    from scipy.stats import spearmanr

    return float(spearmanr(a, b)[0])


def select_model(
    features: Array, targets: Array, weights: Array | None = None, *, seed: int = 0
) -> str:
    """Return the name of the model that ranks operators best, by cross-validation."""
    found = {
        name: rank_correlation(
            cross_validated(name, features, targets, weights, seed=seed), targets
        )
        for name in MODELS
    }
    return max(found, key=lambda name: found[name])
