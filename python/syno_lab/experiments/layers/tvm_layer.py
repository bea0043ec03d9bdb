"""TVM as an engine for networks that are a single layer, tuned by MetaSchedule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs
from syno.codegen import emitters
from syno.engines.engine import Engine
from syno.inference.layer import TracedLayer
from syno.inference.passes.layers import layers_of
from syno.inference.prepare import prepare
from syno.tune import tvm_schedules

_TVM = "tvm"


class TvmLayer(Engine):
    """A layer that is an operator, in TVM with the best of `trials` schedules.

    folder: of MetaSchedule's databases, one for each operator with its sizes; trials in them
    count, so that an interrupted search goes on. progress: called with what is done.
    """

    name = _TVM

    def __init__(self, folder: Path, trials: int, progress: Callable[[str], None]) -> None:
        self._folder = folder
        self._trials = trials
        self._progress = progress

    def missing(self) -> str | None:
        """Return None, or what is missing: the package, or its tuner."""
        return emitters.get(_TVM).available() or tvm_schedules.missing()

    def prepare(self, net: nn.Module, example: Inputs, threads: int) -> Callable[[], torch.Tensor]:
        """Return a function that runs the tuned layer.

        Raises:
            UserError: the network is more than one operator, or the search fails.
        """
        assert isinstance(example, torch.Tensor)  # a layer has one input
        layer = _single_layer(net, example)
        operator, binding = layer.computation.operator, dict(layer.computation.binding)
        if operator.batch is not None:
            binding[operator.batch] = example.shape[0]
        compiled = tvm_schedules.compile_tuned(
            emitters.get(_TVM).source(emitters.Case(operator, binding)),
            self._folder / layer.computation.key,
            trials=self._trials,
            threads=threads,
            target=None,
            progress=self._progress,
        )
        call = compiled.prepared(
            example.numpy(),
            [weight.contiguous().numpy() for weight in layer.weights],
            operator.shapes(binding).output,
        )

        def run() -> torch.Tensor:
            y: Any = call()
            return torch.from_dlpack(y)

        return run


def _single_layer(net: nn.Module, example: torch.Tensor) -> TracedLayer:
    """The one layer of a network. UserError for one with more."""
    with torch.inference_mode(False):
        graph = prepare(net, (example.clone(),), batch=False).graph
    steps = [node for node in graph.graph.nodes if node.op not in ("placeholder", "output")]
    found = list(layers_of(graph).values())
    if len(found) != 1 or len(steps) != 1 or found[0].parts.text:
        raise UserError(f"TVM is given single operators here, and this is {len(steps)} steps")
    return found[0]
