"""A network in INT8 in an engine, as a module."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import nn

from syno.engines.engine import AUTO, INT8, Engine, Outputs, Prepared


class Calibrated(nn.Module):
    """A network in INT8 in an engine, with ranges from samples of the data: one sample at a time.

    It is quantized when it is first called.
    """

    def __init__(
        self,
        engine: Engine,
        net: nn.Module,
        example: torch.Tensor,
        samples: Sequence[torch.Tensor],
        threads: int,
    ) -> None:
        """Args: example: an input [1, ...]; samples: batches of inputs that give the ranges."""
        super().__init__()
        assert engine.precision in (INT8, AUTO)
        self._engine, self._example, self._threads = engine, example, threads
        self._samples = samples
        self._nets = [net]  # in a list, so that it is no part of this module

    @functools.cached_property
    def _prepared(self) -> Prepared:
        engine = self._engine.calibrated(self._samples)
        found = engine.prepare(self._nets[0], self._example, self._threads)
        assert isinstance(found, Prepared) and found.on is not None
        return found

    def once(self) -> Outputs:
        """Run the example, without copies."""
        return self._prepared.run()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs of a batch."""
        on = self._prepared.on
        assert on is not None
        found = []
        for one in x:
            scores = on(one[None])
            assert isinstance(scores, torch.Tensor)
            found.append(scores.clone())  # an engine may write the next one to the same place
        return torch.cat(found)
