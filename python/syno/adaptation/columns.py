"""One weight of several by its normal equations, where they are one small system. Needs torch.

Some of the free variables may be read by one weight alone, such as the output channels by the last
of two factors. For each of their values, W's row is a matrix C times the weight's row, with the
same C [taps, columns]: the normal equations have one matrix C^T G C for all rows.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

import torch

from syno.adaptation.factors import Factors


class Columns:
    """How W depends on one weight, while the others are held.

    count: the columns of C; infinite where there is no such matrix: with blocks, with free
    variables in other weights, and where an element of the weight is read in several places.
    """

    def __init__(self, factors: Factors, number: int) -> None:
        self._factors, self._number = factors, number
        mine = factors.weights[number]
        free = set(factors.free_letters)
        others = {
            letter
            for place, gathered in enumerate(factors.weights)
            if place != number
            for letter in gathered.letters
        }
        # The weight's dimensions, first those of the columns.
        self._order = sorted(range(len(mine.letters)), key=lambda d: mine.letters[d] in free)
        self._inner = [
            (letter, size)
            for letter, size in zip(mine.letters, mine.grid, strict=True)
            if letter not in free
        ]
        self.count: float = math.prod(size for _, size in self._inner)
        if math.prod(factors.blocks) > 1 or others & free or not mine.is_one_to_one:
            self.count = math.inf

    def solved(
        self, gram: torch.Tensor, cross: torch.Tensor, weights: Sequence[torch.Tensor]
    ) -> torch.Tensor | None:
        """The weight of the least squared error; None where the system is singular."""
        factors, mine = self._factors, self._factors.weights[self._number]
        matrix = self._matrix(weights)
        normal = matrix.t() @ gram[0] @ matrix
        scale = float(normal.diagonal().mean())
        normal.diagonal().add_(1e-12 * scale)
        factor, failed = torch.linalg.cholesky_ex(normal)
        if scale == 0.0 or bool(failed):
            return None
        grids = [g.spread(w) for g, w in zip(factors.weights, weights, strict=True)]
        target = mine.spread(factors.gradient(self._number, grids, cross)).permute(self._order)
        found = torch.cholesky_solve(target.reshape(int(self.count), -1), factor)
        back = [self._order.index(d) for d in range(len(self._order))]
        return mine.collect(found.reshape(target.shape).permute(back))

    def _matrix(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """C, by an einsum: a tap that the weight has is a diagonal, with a letter for each side."""
        factors = self._factors
        taps = dict(zip(factors.tap_letters, factors.taps, strict=True))
        used = {*factors.letters, *(c for g in factors.weights for c in g.letters)}
        unused = iter(sorted(set(string.ascii_letters) - used))
        names: list[str] = []
        grids: list[torch.Tensor] = []
        for place, gathered in enumerate(factors.weights):
            if place != self._number:
                names.append(gathered.letters)
                grids.append(gathered.spread(weights[place]))
        out = ""
        like = weights[self._number]
        for letter, size in self._inner:
            if letter in taps:
                twin = next(unused)
                names.append(letter + twin)
                grids.append(torch.eye(size, dtype=like.dtype))
                out += twin
            else:
                names.append(letter)
                grids.append(like.new_ones(size))
                out += letter
        for letter, size in taps.items():
            names.append(letter)
            grids.append(like.new_ones(size))
        product = torch.einsum(f"{','.join(names)}->{''.join(taps)}{out}", *grids)
        return factors.repeats * product.reshape(factors.shape[2], -1)
