"""The codes of a tensor, from what it was for samples."""

from __future__ import annotations

import torch

from syno.inference.codes import Codes

# Of each call of a network so many elements of a tensor are kept, and of all calls at most so many.
_OF_CALL, _KEPT = 4096, 1 << 18
# Elements that an error is computed from, and shares of the range that are tried.
_TRIED_ON = 1 << 15
_SHARES = 40
_LEAST_SHARE = 0.2


class Range:
    """What the elements of a tensor were."""

    def __init__(self) -> None:
        self.least = 0.0
        self.most = 0.0
        self._kept: list[torch.Tensor] = []
        self._count = 0

    def add(self, x: torch.Tensor) -> None:
        """Count the elements of one call."""
        if x.numel() == 0:
            return
        flat = x.detach().flatten()
        low, high = torch.aminmax(flat)
        self.least, self.most = min(self.least, float(low)), max(self.most, float(high))
        if self._count < _KEPT:
            step = max(1, flat.numel() // _OF_CALL)
            self._kept.append(flat[::step].clone())
            self._count += self._kept[-1].numel()

    def join(self, other: Range) -> None:
        """Count what another tensor was, too."""
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self._kept += other._kept
        self._count += other._count

    def codes(self, *, whole: bool = False) -> Codes:
        """The codes whose mean square error is least on what was kept.

        whole: those from the least to the greatest element instead, which cut off nothing.
        """
        if whole or not self._kept:
            return Codes.between(self.least, self.most)
        values = torch.cat(self._kept)
        values = values[:: max(1, values.numel() // _TRIED_ON)]
        best = Codes.between(self.least, self.most)
        least = _error(values, best)
        for step in range(1, _SHARES):
            share = 1 - step * (1 - _LEAST_SHARE) / _SHARES
            for low, high in ((share, share), (1.0, share), (share, 1.0)):
                tried = Codes.between(self.least * low, self.most * high)
                error = _error(values, tried)
                if error < least:
                    best, least = tried, error
        return best


def _error(values: torch.Tensor, codes: Codes) -> float:
    return float((codes.rounded(values) - values).square().mean())
