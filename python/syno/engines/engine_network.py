"""A network in an engine, as a module."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import TreeSpec, tree_leaves, tree_structure, tree_unflatten

from syno._util.inputs import Inputs, arguments, samples_of
from syno.engines.engine import Engine, Outputs, Prepared


class EngineNetwork(nn.Module):
    """A network in an engine, with ranges of INT8 from samples of the data: one sample at a time.

    It is prepared when it is first called.
    """

    def __init__(
        self,
        engine: Engine,
        net: nn.Module,
        example: Inputs,
        samples: Sequence[Inputs],
        threads: int,
        *,
        like: nn.Module | None = None,
    ) -> None:
        """Args: example: an input [1, ...]; samples: batches of inputs that give the ranges;
        like: a network whose outputs are nested as those are to be, such as a dictionary."""
        super().__init__()
        self._engine, self._example, self._threads = engine, example, threads
        self._samples = samples
        self._nets = [net]  # in a list, so that it is no part of this module
        self._like = [net if like is None else like]

    @property
    def net(self) -> nn.Module:
        """The network itself."""
        return self._nets[0]

    @functools.cached_property
    def _prepared(self) -> Prepared:
        engine = self._engine.calibrated(self._samples)
        found = engine.prepare(self._nets[0], self._example, self._threads)
        assert isinstance(found, Prepared) and found.on is not None
        return found

    def once(self) -> Outputs:
        """Run the example, without copies."""
        return self._prepared.run()

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The outputs of a batch."""
        on = self._prepared.on
        assert on is not None
        # An engine may write the next outputs to the same place.
        found = [[each.clone() for each in tree_leaves(on(*one))] for one in samples_of(inputs)]
        outputs = [torch.cat(of_samples) for of_samples in zip(*found, strict=True)]
        return tree_unflatten(outputs, self._nesting)

    @functools.cached_property
    def _nesting(self) -> TreeSpec:
        with torch.no_grad():
            return tree_structure(self._like[0](*arguments(self._example)))
