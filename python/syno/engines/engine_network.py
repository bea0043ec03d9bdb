"""A network in an engine, as a module."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import nn
from torch.utils._pytree import tree_map

from syno.engines.engine import Engine, Outputs, Prepared


class EngineNetwork(nn.Module):
    """A network in an engine, with ranges of INT8 from samples of the data: one sample at a time.

    It is prepared when it is first called.
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

    def forward(self, x: torch.Tensor) -> Outputs:
        """The outputs of a batch."""
        on = self._prepared.on
        assert on is not None
        # An engine may write the next outputs to the same place.
        found = [tree_map(torch.clone, on(one[None])) for one in x]
        outputs: Outputs = tree_map(lambda *of_samples: torch.cat(of_samples), *found)
        return outputs
