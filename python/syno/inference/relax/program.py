"""A network as a program of torch.export, in which each operator of a slot is one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx, nn
from torch.export import ExportedProgram

from syno._util.errors import UserError
from syno._util.silence import quiet
from syno.codegen.torch_op.epilogue import Epilogue
from syno.inference.arguments import without_one
from syno.inference.layer import TracedLayer
from syno.inference.passes.batch_norms import fold_batch_norms
from syno.inference.passes.layers import layers_of
from syno.inference.prepare import prepare
from syno.inference.trace import SLOT

_aten = torch.ops.aten


@dataclass(frozen=True)
class RelaxProgram:
    """A traced network.

    exported: its graph. A call of `SLOT` has the number of its layer in `layers`; what follows an
    operator in its layer stands behind the call in operations of PyTorch. layers: the operators
    with their weights. batch: whether the first dimension takes any size.
    """

    exported: ExportedProgram
    layers: list[TracedLayer]
    batch: bool


class _Call(nn.Module):
    """A layer as a call of its operator, which is no operator of PyTorch, and what follows it."""

    channel: torch.Tensor | None

    def __init__(self, number: int, layer: TracedLayer) -> None:
        super().__init__()
        operator = layer.computation.operator
        self._number = number
        self._shape = list(operator.shapes(layer.computation.binding).output)
        self._batched = operator.batch is not None
        self._epilogue = Epilogue(layer.parts.text)
        self._dimension = layer.channel
        self.register_buffer("channel", layer.parts.channel)

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        shape: Sequence[int] = [x.shape[0], *self._shape[1:]] if self._batched else self._shape
        y = SLOT(x, self._number, shape)
        return self._epilogue.applied(y, self.channel, residual, self._dimension)


def trace_program(net: nn.Module, inputs: tuple[torch.Tensor, ...], *, batch: bool) -> RelaxProgram:
    """Trace a network in evaluation mode; it stays as it is.

    BatchNorms are multiplied into the weights in front of them. batch: the first dimension is to
    take any size, where torch can trace the network so; else sizes are those of `inputs`.

    Raises:
        UserError: torch cannot trace the network.
    """
    prepared = prepare(net, inputs, batch=batch, convolutions=False)
    if prepared.squeezed:
        raise without_one(prepared.squeezed)
    graph = prepared.graph
    with torch.no_grad():
        fold_batch_norms(graph)
    layers: list[TracedLayer] = []
    for node, layer in layers_of(graph).items():
        setattr(graph, str(node.target), _Call(len(layers), layer))
        layers.append(layer)
    graph = fx.GraphModule(graph, graph.graph)  # a new one lacks the weights that nothing reads
    return RelaxProgram(_exported(graph, inputs, prepared.batch), layers, prepared.batch)


def _exported(
    graph: fx.GraphModule, inputs: tuple[torch.Tensor, ...], batch: bool
) -> ExportedProgram:
    examples, sizes = inputs, None
    if batch:
        examples = tuple(torch.cat([x[:1]] * 3) for x in inputs)
        sizes = tuple({0: torch.export.Dim("batch")} for _ in inputs)
    with quiet(), torch.no_grad():
        try:
            found = torch.export.export(graph, examples, dynamic_shapes=sizes, strict=False)
            # Taken apart into the operations that the front end of Relax knows best.
            found = found.run_decompositions()
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            raise UserError(f"torch.export cannot trace the prepared network: {first}") from error
    _say_what_relax_guesses(found.graph)
    return found


def _say_what_relax_guesses(graph: fx.Graph) -> None:
    """Two operations in a form that the front end of TVM 0.27 takes as PyTorch does.

    It takes no dimension of a slice that is counted from the last one, and sums prefixes of truth
    values as truth values, which PyTorch sums as integers.
    """
    for node in list(graph.nodes):
        if node.target is _aten.slice.Tensor and len(node.args) > 1 and node.args[1] < 0:
            x, dimension, *rest = node.args
            node.args = (x, dimension + x.meta["val"].dim(), *rest)
        elif node.target is _aten.cumsum.default and node.args[0].meta["val"].dtype == torch.bool:
            with graph.inserting_before(node):
                number = graph.call_function(
                    _aten._to_copy.default, (node.args[0],), {"dtype": torch.int64}
                )
            number.meta = {**node.meta, "val": node.args[0].meta["val"].to(torch.int64)}
            node.replace_input_with(node.args[0], number)
