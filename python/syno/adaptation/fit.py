"""Weights of an operator with which it computes what a layer computes. Needs torch.

The operator is W(w) * P in the words of `syno.adaptation.factors`, so that its squared error

    |y - W P|^2 = |y|^2 - 2 <W, y P^T> + <W, W P P^T>

needs the data only through P P^T and y P^T. They are summed over the data once; a fit then costs as
much for a thousand images as for ten. W is linear in each weight. With one weight, and each of its
elements in one place of W, the least squares solution is that of a linear system. Otherwise the
weights are fitted in turns with the others held (alternating least squares), each directly
(`syno.adaptation.columns`) or by conjugate gradients, from several initial weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from syno._util.errors import UserError
from syno.adaptation.columns import Columns
from syno.adaptation.factors import Factors, Gathered

# P of so many elements is made at a time.
_CHUNK = 1 << 24
# The largest P P^T that is kept, in elements.
_MOST_GRAM = 1 << 27
# The largest system that is solved directly for one of several weights.
_MOST_COLUMNS = 768
# Steps of conjugate gradients for a weight in its turn. The others move after it, so that a turn
# need not end exactly.
_STEPS = 15
# With a larger error, conjugate gradients compute in float32: the turns that follow correct it.
_EXACT = 1e-4


@dataclass
class SharedSums:
    """Sums over the same activations that fits of several operators have in common.

    grams: P P^T by what an operator gathers. crosses: y P^T, the sum of y^2 and the number of
    images, by this and by the order of the results.
    """

    grams: dict[str, torch.Tensor] = field(default_factory=dict)
    crosses: dict[str, tuple[torch.Tensor, float, int]] = field(default_factory=dict)


@dataclass
class Moments:
    """Sums over the data that a fit needs, in float64.

    gram: P P^T, [blocks, taps, taps]. cross: y P^T, [blocks, free, taps]. energy: the sum of y^2.
    images: how many there were.
    """

    gram: torch.Tensor
    cross: torch.Tensor
    energy: float = 0.0
    images: int = 0

    @classmethod
    def of(
        cls,
        factors: Factors,
        data: Iterable[tuple[torch.Tensor, torch.Tensor]],
        shared: SharedSums | None = None,
    ) -> Moments:
        """Sum over pairs of the operator's input and the result that it shall have.

        shared: sums over the same data, which are taken from there, or put there.

        Raises UserError when the sums would be too large, when there are no pairs, and for a value
        that is not finite.
        """
        blocks, free, taps = factors.shape
        if blocks * taps * taps > _MOST_GRAM:
            raise UserError(
                f"a fit would need {blocks} matrices of {taps} x {taps} elements, which is too much"
            )
        moments = cls(
            torch.zeros(len(factors.distinct[0]), taps, taps, dtype=torch.float64),
            torch.zeros(blocks, free, taps, dtype=torch.float64),
        )
        images = max(1, _CHUNK // max(1, len(factors.patches)))
        shared = shared or SharedSums()
        gram = shared.grams.get(factors.mark)
        order = f"{factors.mark} {factors.order} {factors.blocks} {factors.free} {factors.rows}"
        if gram is not None and order in shared.crosses:
            moments.cross, moments.energy, moments.images = shared.crosses[order]
        else:
            for inputs, results in data:
                for x, y in zip(inputs.split(images), results.split(images), strict=True):
                    moments._add(factors, x.double(), y.double(), gram is None)
        if gram is not None:
            moments.gram = gram
        shared.grams[factors.mark] = moments.gram
        shared.crosses[order] = moments.cross, moments.energy, moments.images
        if len(moments.gram) < blocks:
            moments.gram = moments.gram[factors.distinct[1]]
        if moments.images == 0:
            raise UserError("there are no activations to fit to")
        if not math.isfinite(moments.energy) or not bool(moments.gram.isfinite().all()):
            raise UserError(
                "the activations of the layer are not finite numbers\n"
                "  what to do: use a network that computes finite values on this data"
            )
        return moments

    def _add(self, factors: Factors, x: torch.Tensor, y: torch.Tensor, with_gram: bool) -> None:
        patches, results = factors.data(x), factors.result(y)
        if with_gram:
            self.gram += patches @ patches.transpose(1, 2)
        kept, places = factors.distinct
        if len(kept) == len(places):
            self.cross += results @ patches.transpose(1, 2)
            self._count(x, results)
            return
        for number in range(len(kept)):
            mine = [block for block, place in enumerate(places) if place == number]
            of = results[mine]
            found = of.reshape(-1, of.shape[-1]) @ patches[number].t()
            self.cross[mine] += found.reshape(len(mine), -1, found.shape[-1])
        self._count(x, results)

    def _count(self, x: torch.Tensor, results: torch.Tensor) -> None:
        self.energy += float(results.square().sum())
        self.images += len(x)

    def error(self, matrix: torch.Tensor) -> float:
        """|y - W P|^2 / |y|^2 of a W; 0 where the layer's results are 0, too."""
        if self.energy == 0.0:
            return 0.0 if not bool(matrix.any()) else math.inf
        there = float((matrix * (matrix @ self.gram - 2.0 * self.cross)).sum())
        return max(0.0, 1.0 + there / self.energy)


@dataclass(frozen=True)
class Fit:
    """weights: as the operator's. error: the squared error relative to the layer's results, on the
    data of the fit. sweeps: how often all weights were fitted in turns. seconds: the time taken."""

    weights: tuple[torch.Tensor, ...]
    error: float
    sweeps: int
    seconds: float


def fit(
    factors: Factors,
    moments: Moments,
    initial: Sequence[Sequence[torch.Tensor]],
    *,
    ridge: float = 1e-9,
    sweeps: int = 30,
    tolerance: float = 1e-3,
) -> Fit:
    """The weights with the least squared error.

    Args:
        factors: the operator.
        moments: of the data.
        initial: weights to begin with. With several, each gets a few sweeps, and the best goes on.
        ridge: this share of the mean diagonal of P P^T is added to its diagonal, so that taps that
            are always alike or always zero have one solution.
        sweeps: the maximum number of rounds over all weights.
        tolerance: a fit ends when a round reduces the error by a smaller share than this.
    """
    began = time.perf_counter()
    diagonal = moments.gram.diagonal(dim1=1, dim2=2)
    scale = float(diagonal.mean()) or 1.0
    gram = moments.gram.clone()
    gram.diagonal(dim1=1, dim2=2).add_(ridge * scale)
    if len(factors.weights) == 1:
        weight = _once(factors, gram, moments.cross)
        if weight is None:
            first = [w.double() for w in initial[0]] if initial else _zeros(factors.weights)
            weight = _half_step(factors, gram, moments.cross, first, 0, 400, 1e-20)
        error = moments.error(factors.matrix([weight]))
        return Fit((weight,), error, 1, time.perf_counter() - began)
    if not initial:
        raise UserError("an operator of several weights is fitted from initial weights")
    tried = [_Alternating(factors, moments, gram, each) for each in initial]
    if len(tried) > 1:
        for one in tried:
            one.run(min(4, sweeps), tolerance)
    best = min(tried, key=lambda one: one.error)
    best.run(sweeps, tolerance)
    return Fit(tuple(best.weights), best.error, best.sweeps, time.perf_counter() - began)


def _zeros(weights: Sequence[Gathered]) -> list[torch.Tensor]:
    return [torch.zeros(each.shape, dtype=torch.float64) for each in weights]


def _once(factors: Factors, gram: torch.Tensor, cross: torch.Tensor) -> torch.Tensor | None:
    """The solution where every element of the one weight has one place in W; otherwise None."""
    mine = factors.weights[0]
    if set(mine.letters) != set(factors.letters) or not mine.is_one_to_one:
        return None
    factor, failed = torch.linalg.cholesky_ex(gram)
    if bool(failed.any()):
        return None
    matrix = torch.cholesky_solve(cross.transpose(1, 2), factor).transpose(1, 2)
    # With each element in one place, the gradient of sum(W * matrix) is its transposed copy.
    return factors.gradient(0, [], matrix.contiguous())


class _Alternating:
    """Weights that are fitted in turns."""

    def __init__(
        self,
        factors: Factors,
        moments: Moments,
        gram: torch.Tensor,
        weights: Sequence[torch.Tensor],
    ) -> None:
        self.factors, self.moments, self.gram = factors, moments, gram
        self._singles = gram.float(), moments.cross.float()
        self.weights = [weight.detach().double().clone() for weight in weights]
        self.columns = [Columns(factors, number) for number in range(len(self.weights))]
        self.error = math.inf
        self.sweeps = 0

    def run(self, sweeps: int, tolerance: float) -> None:
        """Go on until `sweeps` sweeps are done in all, or a sweep gains little."""
        while self.sweeps < sweeps:
            for number in range(len(self.weights)):
                self.weights[number] = self._fitted(number)
            self._balance()
            self.sweeps += 1
            before, self.error = (
                self.error,
                self.moments.error(self.factors.matrix(self.weights)),
            )
            if self.error >= before * (1.0 - tolerance):
                break

    def _fitted(self, number: int) -> torch.Tensor:
        cross = self.moments.cross
        if self.columns[number].count <= _MOST_COLUMNS:
            solved = self.columns[number].solved(self.gram, cross, self.weights)
            if solved is not None:
                return solved
        if self.error < _EXACT:
            return _half_step(self.factors, self.gram, cross, self.weights, number, _STEPS, 1e-6)
        weights = [weight.float() for weight in self.weights]
        found = _half_step(self.factors, *self._singles, weights, number, _STEPS, 1e-6)
        return found.double()

    def _balance(self) -> None:
        """Gives all weights the same mean square, which does not change their product."""
        norms = [float(weight.square().mean().sqrt()) for weight in self.weights]
        if min(norms) == 0.0:
            return
        mean = math.prod(norms) ** (1.0 / len(norms))
        for weight, norm in zip(self.weights, norms, strict=True):
            weight.mul_(mean / norm)


def _half_step(
    factors: Factors,
    gram: torch.Tensor,
    cross: torch.Tensor,
    weights: Sequence[torch.Tensor],
    number: int,
    steps: int,
    tolerance: float,
) -> torch.Tensor:
    """One weight by conjugate gradients on its normal equations, the others held.

    tolerance: of the squared residual, relative to its first value.
    """
    grids = [g.spread(w) for g, w in zip(factors.weights, weights, strict=True)]
    held = list(weights)

    def normal(direction: torch.Tensor) -> torch.Tensor:
        held[number] = direction
        return factors.gradient(number, grids, factors.matrix(held) @ gram)

    solution = weights[number].clone()
    target = factors.gradient(number, grids, cross)
    residual = target - normal(solution)
    direction = residual.clone()
    square = float(residual.square().sum())
    wanted = tolerance * float(target.square().sum())
    for _ in range(steps):
        if square <= wanted:
            break
        product = normal(direction)
        curvature = float((direction * product).sum())
        if curvature <= 0.0:
            break
        solution += (square / curvature) * direction
        residual -= (square / curvature) * product
        before, square = square, float(residual.square().sum())
        direction = residual + (square / before) * direction
    return solution
