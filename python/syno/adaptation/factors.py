"""An operator as a product of weights that acts on gathered data. Needs torch.

A term of an operator is x[data(o, r)] * product over k of w_k[weights_k(o, r)]. Its variables, the
output dimensions o (without the batch) and the reductions r, fall into five groups:

    rows   output dimensions that only the data depends on
    blocks output dimensions that the data and a weight depend on
    free   output dimensions that the data does not depend on
    taps   reductions that the data depends on
    ranks  reductions that only weights depend on

so that the operator is a product of matrices, one for each value of the blocks:

    y[block, free, row] = sum over taps of W[block, free, tap] * P[block, row, tap]
    W[block, free, tap] = sum over ranks of the product over k of w_k[...]

P holds elements of x, or zeros where a window falls outside. For a convolution, P are its patches
and W is its weight as a matrix.
"""

from __future__ import annotations

import hashlib
import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from syno import _core
from syno._util.errors import UserError
from syno.operators.operator import Operator

# The largest W that is kept as a matrix, in elements.
_MOST = 1 << 26


@dataclass(frozen=True)
class Gathered:
    """A weight on the grid of its variables: where it is read, and which letters it has."""

    shape: tuple[int, ...]
    letters: str
    grid: tuple[int, ...]
    index: torch.Tensor

    @property
    def is_one_to_one(self) -> bool:
        """Whether every element of the weight is read from one place of the grid."""
        counts = torch.bincount(self.index, minlength=math.prod(self.shape) + 1)
        return len(self.index) == math.prod(self.shape) and int(counts[:-1].max()) == 1

    def spread(self, weight: torch.Tensor) -> torch.Tensor:
        """The weight on its grid, zero where a window falls outside."""
        padded = torch.cat([weight.reshape(-1), weight.new_zeros(1)])
        return padded[self.index].reshape(self.grid)

    def collect(self, grid: torch.Tensor) -> torch.Tensor:
        """The adjoint of `spread`: sums over the places at which each element is read."""
        sums = grid.new_zeros(math.prod(self.shape) + 1)
        sums.index_add_(0, self.index, grid.reshape(-1))
        return sums[:-1].reshape(self.shape)


@dataclass(frozen=True)
class Factors:
    """An operator under one binding, taken apart; see the module.

    blocks, free, rows, taps: the extents of the variables of each group. patches: for each element
    of P in the order (blocks, rows, taps), its position in x without the batch, or the number of
    elements of x for a zero. order: the dimensions of y without the batch, in the order (blocks,
    free, rows).
    """

    blocks: tuple[int, ...]
    free: tuple[int, ...]
    rows: tuple[int, ...]
    taps: tuple[int, ...]
    patches: torch.Tensor
    order: tuple[int, ...]
    weights: tuple[Gathered, ...]
    letters: str
    # Terms that are the same: the extents of reductions that nothing depends on.
    repeats: int

    @classmethod
    def of(cls, operator: Operator, binding: Mapping[str, int]) -> Factors:
        """Take an operator with a batch dimension apart.

        Raises UserError for an operator without weights or without a batch, and for one whose W or
        whose tables are too large.
        """
        if operator.batch is None:
            raise UserError("the operator has no batch dimension, so it cannot be fitted to data")
        shapes = operator.shapes(binding)
        if not shapes.weights:
            raise UserError("the operator has no weights, so there is nothing to fit")
        bound = dict(binding) | {operator.batch: 1}
        extents, groups, reads, weights = _core.factors(
            operator._core, operator.complete(bound), _MOST
        )
        if len(extents) > len(string.ascii_letters):
            raise UserError(f"the operator has {len(extents)} variables, too many to fit")
        blocks, free, rows, taps, ranks = groups
        rows = [v for v in rows if v != 0]  # without the batch
        elements = math.prod(shapes.input[1:])
        held = {v for variables, _ in weights for v in variables}
        letter = string.ascii_letters.__getitem__

        def sizes_of(group: Sequence[int]) -> tuple[int, ...]:
            return tuple(extents[v] for v in group)

        return cls(
            sizes_of(blocks),
            sizes_of(free),
            sizes_of(rows),
            sizes_of(taps),
            torch.from_numpy(np.where(reads < 0, elements, reads)),
            tuple(v - 1 for v in (*blocks, *free, *rows)),
            tuple(
                _gathered(weight, tuple(shape), letter)
                for weight, shape in zip(weights, shapes.weights, strict=True)
            ),
            "".join(letter(v) for v in (*blocks, *free, *taps)),
            math.prod(extents[v] for v in ranks if v not in held),
        )

    @property
    def free_letters(self) -> str:
        """The letters of the free variables."""
        return self.letters[len(self.blocks) : len(self.blocks) + len(self.free)]

    @property
    def tap_letters(self) -> str:
        """The letters of the taps."""
        return self.letters[len(self.blocks) + len(self.free) :]

    @property
    def shape(self) -> tuple[int, int, int]:
        """The extents of W: blocks, free, taps."""
        return math.prod(self.blocks), math.prod(self.free), math.prod(self.taps)

    def matrix(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """W of these weights."""
        grids = [g.spread(w) for g, w in zip(self.weights, weights, strict=True)]
        names = [g.letters for g in self.weights]
        return self.repeats * self._product(grids, names, self.letters, self._sizes())

    def gradient(
        self, number: int, others: Sequence[torch.Tensor], z: torch.Tensor
    ) -> torch.Tensor:
        """The gradient of sum(W * z) with respect to one weight; its own value does not matter.

        others: all weights on their grids.
        """
        mine = self.weights[number]
        grids = [self.repeats * z.reshape(self._sizes())]
        names = [self.letters]
        for place, gathered in enumerate(self.weights):
            if place != number:
                grids.append(others[place])
                names.append(gathered.letters)
        return mine.collect(self._product(grids, names, mine.letters, mine.grid))

    @cached_property
    def distinct(self) -> tuple[list[int], list[int]]:
        """The first of all blocks that gather the same data, and the place in there of each block.

        The blocks of a grouped convolution are its output channels: those of a group share data.
        """
        firsts: dict[bytes, int] = {}
        kept: list[int] = []
        places: list[int] = []
        for number, one in enumerate(self.patches.view(self.shape[0], -1).numpy()):
            mark = hashlib.blake2b(one.tobytes(), digest_size=16).digest()
            if mark not in firsts:
                firsts[mark] = len(kept)
                kept.append(number)
            places.append(firsts[mark])
        return kept, places

    @cached_property
    def mark(self) -> str:
        """A digest of what P is: operators with the same mark gather the same data."""
        content = f"{self.shape[0]} {self.shape[2]} {math.prod(self.rows)} ".encode()
        return hashlib.blake2b(content + self.patches.numpy().tobytes()).hexdigest()

    def work(self, rows: int, steps: int) -> float:
        """About how many operations a fit needs.

        rows: of the data. steps: of conjugate gradients, all together.
        """
        blocks, free, taps = self.shape
        return 2.0 * taps**2 * (len(self.distinct[0]) * rows + steps * blocks * free)

    def data(self, x: torch.Tensor) -> torch.Tensor:
        """P of x in the distinct blocks, [distinct blocks, taps, rows * batch]."""
        flat = torch.cat([x.reshape(len(x), -1), x.new_zeros(len(x), 1)], 1).t().contiguous()
        blocks, _, taps = self.shape
        kept, _ = self.distinct
        patches = self.patches.view(blocks, -1)[kept].reshape(-1)
        taken = flat.index_select(0, patches).view(len(kept), math.prod(self.rows), taps, len(x))
        return taken.transpose(1, 2).reshape(len(kept), taps, -1)

    def result(self, y: torch.Tensor) -> torch.Tensor:
        """y of the operator's output shape as [blocks, free, rows * batch]."""
        blocks, free, _ = self.shape
        return y.permute(*(d + 1 for d in self.order), 0).reshape(blocks, free, -1)

    def _sizes(self) -> tuple[int, ...]:
        return (*self.blocks, *self.free, *self.taps)

    def _product(
        self, grids: list[torch.Tensor], names: list[str], out: str, sizes: tuple[int, ...]
    ) -> torch.Tensor:
        """The product of all grids, summed over what `out` does not have, of the given sizes."""
        there = set("".join(names))
        kept = "".join(letter for letter in out if letter in there)
        product = torch.einsum(f"{','.join(names)}->{kept}", *grids)
        for place, letter in enumerate(out):
            if letter not in there:
                product = product.unsqueeze(place)
        product = product.expand(sizes)
        return product.reshape(self.shape) if out == self.letters else product


def _gathered(
    table: tuple[Sequence[int], NDArray[np.int64]],
    shape: tuple[int, ...],
    letter: Callable[[int], str],
) -> Gathered:
    variables, index = table
    return Gathered(
        shape,
        "".join(letter(v) for v in variables),
        index.shape,
        torch.from_numpy(np.where(index < 0, math.prod(shape), index).reshape(-1)),
    )
