"""Models that predict the result of an operator from its features, with their uncertainty.

forest      extremely randomized trees (Geurts et al., 2006); the uncertainty is the deviation
            between trees
boosting    gradient boosting (Friedman, 2002), several with their own random numbers and samples
gaussian    a Gaussian process with a Matern kernel over standardized features
"""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from syno._util.errors import UserError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

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
    limits: contextlib.AbstractContextManager[object] = _libraries().limit(
        limits=1, user_api="blas"
    )
    return limits


@functools.cache
def _libraries() -> ThreadpoolController:
    """The libraries of numpy and scipy, which take long to find."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


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
    """See the module. Amplitude, length and noise of the kernel maximize the likelihood."""

    def __init__(self, features: Array, targets: Array, weights: Array, seed: int) -> None:
        from scipy.linalg.lapack import dpotrf
        from scipy.optimize import minimize

        self._prepared = _Prepared(features)
        self._x = x = self._prepared(features)
        self._mean, spread = float(targets.mean()), float(targets.std())
        self._spread = spread if spread > 1e-12 else 1.0
        y = (targets - self._mean) / self._spread
        # An operator of weight 1/2 counts as if its result had some noise of its own.
        noise = 0.2 * (1 / np.maximum(weights, 1e-3) - 1) + 1e-8
        scale = float(np.sqrt(max(1, x.shape[1])))
        start = np.log([1.0, scale, 0.2])
        bounds = np.log([(1e-2, 1e2), (0.2 * scale, 10 * scale), (1e-3, 2.0)])
        with _one_thread():
            fit = _Likelihood(np.sqrt(5.0) * distances(x, x), y, noise)
            found = minimize(fit, start, jac=True, bounds=bounds, method="L-BFGS-B").x
            self._amplitude, self._length, self._noise = map(float, np.exp(found))
            kernel = self._amplitude * _matern(fit.distances / self._length)
            np.fill_diagonal(kernel, kernel.diagonal() + self._noise + noise)
            self._factor, _ = dpotrf(kernel, lower=1)
            self._solved = _solved(self._factor, y)

    def predict(self, features: Array) -> Prediction:
        """See `SurrogateModel`."""
        from scipy.linalg import solve_triangular

        with _one_thread():
            apart = np.sqrt(5.0) * distances(self._x, self._prepared(features))
            kernel = self._amplitude * _matern(apart / self._length)
            mean = self._mean + self._spread * (self._solved @ kernel)
            known = solve_triangular(self._factor, kernel, lower=True, check_finite=False)
            left = self._amplitude + self._noise - (known**2).sum(axis=0)
        return Prediction(mean, self._spread * np.sqrt(np.maximum(left, 0.0)))


class _Likelihood:
    """The negative logarithm of the marginal likelihood of a Gaussian process, and its gradient.

    distances: of the operators, times the square root of 5, [n, n]; noise: known, of each, [n].
    See Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), section 5.4.1.
    """

    def __init__(self, distances: Array, y: Array, noise: Array) -> None:
        self.distances, self._y, self._known = distances, y, noise

    def __call__(self, logarithms: Array) -> tuple[float, Array]:
        from scipy.linalg.lapack import dpotrf, dpotri

        amplitude, length, noise = np.exp(logarithms)
        t = self.distances / length
        decay = amplitude * np.exp(-t)
        kernel = (1 + t + t**2 / 3) * decay
        whole = kernel.copy()
        np.fill_diagonal(whole, whole.diagonal() + noise + self._known)
        factor, failed = dpotrf(whole, lower=1)
        if failed:
            return math.inf, np.zeros(3)
        solved = _solved(factor, self._y)
        value = 0.5 * self._y @ solved + np.log(factor.diagonal()).sum()
        inverse, _ = dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        inner = np.outer(solved, solved) - inverse
        gradient = (
            (inner * kernel).sum(),
            (inner * (t**2 * (1 + t) / 3 * decay)).sum(),
            noise * inner.trace(),
        )
        constant = 0.5 * len(self._y) * math.log(2 * math.pi)
        return float(value + constant), -0.5 * np.array(gradient)


def _matern(t: Array) -> Array:
    """The Matern kernel of smoothness 5/2, of distances times the square root of 5."""
    return np.asarray((1 + t + t**2 / 3) * np.exp(-t))


def _solved(factor: Array, y: Array) -> Array:
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((factor, True), y, check_finite=False))


def distances(a: Array, b: Array) -> Array:
    """Euclidean distances of rows, [a, b]."""
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T
    return np.asarray(np.sqrt(np.maximum(squares, 0)))


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
