"""The format onnx: of quantized networks with integers, as pairs of operators that round (QDQ)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx, nn
from torch.nn.utils import parametrize

from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno.codegen.export import programs
from syno.codegen.export.formats import Exported, ExportSubject
from syno.codegen.export.isolated import IsolatedRun
from syno.inference.carriers import carriers
from syno.inference.codes import LEAST_CODE, MOST_WEIGHT
from syno.inference.passes.layers import layers_of
from syno.inference.precision import FLOAT32, INT8, TOLERANCES
from syno.inference.quantization.network import QuantizedNetwork

if TYPE_CHECKING:
    from onnxscript import ir

# The number of the type in ONNX.
_INT8 = 3


class Onnx(programs.Onnx):
    """ONNX. What `syno.quantize` returns has pairs of QuantizeLinear and DequantizeLinear around
    values, and integers of 8 bits as weights; it takes a batch of one sample."""

    precisions = (FLOAT32, INT8)

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Traces the module and writes it."""
        return super().write(_of_one_sample(subject), path)

    def check(self, exported: Exported, subject: ExportSubject) -> IsolatedRun:
        """Compares with the module at several batch sizes, if it takes them."""
        return super().check(exported, _of_one_sample(subject))

    def tolerance(self, subject: ExportSubject) -> float:
        """That of the number format: engines round values in the middle of two codes to either."""
        return TOLERANCES[subject.precision]

    def translations(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """Of rounding."""
        return {
            torch.ops.aten.fake_quantize_per_tensor_affine.default: _rounded_values,
            torch.ops.aten.fake_quantize_per_channel_affine.default: _rounded_channels,
        }

    def finish(self, model: ir.Model) -> None:
        """Stores rounded weights as integers."""
        for node in list(model.graph):
            weight = node.inputs[0] if node.op_type == "QuantizeLinear" else None
            if weight is not None and weight.is_initializer():
                _store_integers(model.graph, node)


def _of_one_sample(subject: ExportSubject) -> ExportSubject:
    """A quantized network with modules that torch can trace; others as they are."""
    if subject.precision != INT8:
        return subject
    net = subject.module
    if not isinstance(net, QuantizedNetwork):
        raise UserError(
            "the network has no ranges for int8\n"
            "  what to do: export syno.quantize(net, batches), which takes them from samples"
        )
    one = subject.with_batch(1) if subject.batch else subject
    return replace(one, module=_traceable(net.graph), reference=net)


def _traceable(graph: fx.GraphModule) -> nn.Module:
    """The graph with layers whose weights are rounded by operators of torch."""
    made = copy_network(graph)
    for layer in layers_of(made).values():
        if layer.codes is None:
            continue
        owners = carriers(layer.computation, layer.channel)
        module = layer.reference()
        names = [name for name, _ in module.named_parameters()]
        for number, (name, scale) in enumerate(zip(names, layer.codes.scales, strict=True)):
            holder, _, last = name.rpartition(".")
            rounding = _rounding(scale, owners.get(number))
            parametrize.register_parametrization(module.get_submodule(holder), last, rounding)
    return made


class _Rounding(nn.Module):
    """Rounds a weight to integers times a scale."""

    def __init__(self, scale: torch.Tensor) -> None:
        super().__init__()
        self.scale = float(scale)

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The rounded weight."""
        least, most = -MOST_WEIGHT, MOST_WEIGHT
        return torch.fake_quantize_per_tensor_affine(weight, self.scale, 0, least, most)


class _ChannelRounding(nn.Module):
    """Rounds a weight to integers times scales, one for each index of neighbouring dimensions."""

    scale: torch.Tensor
    zero: torch.Tensor

    def __init__(self, scale: torch.Tensor, first: int, last: int) -> None:
        super().__init__()
        self.first, self.last = first, last
        self.register_buffer("scale", scale)
        self.register_buffer("zero", torch.zeros(scale.shape, dtype=torch.int32))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The rounded weight."""
        flat = weight.flatten(self.first, self.last)
        least, most = -MOST_WEIGHT, MOST_WEIGHT
        flat = torch.fake_quantize_per_channel_affine(
            flat, self.scale, self.zero, self.first, least, most
        )
        return flat.view(weight.shape)


def _rounding(scale: torch.Tensor, owner: NDArray[np.int64] | None) -> nn.Module:
    """The rounding of a weight whose elements belong to these channels."""
    if scale.dim() == 0 or owner is None:
        return _Rounding(scale)
    asked = [d for d in range(owner.ndim) if (owner != owner.take([0], d)).any()] or [0]
    first, last = asked[0], asked[-1]
    place = tuple(slice(None) if first <= d <= last else 0 for d in range(owner.ndim))
    return _ChannelRounding(scale[torch.from_numpy(owner[place].reshape(-1))], first, last)


def _operators() -> Any:
    """Those of ONNX, whose types say less than the functions take."""
    from onnxscript import opset18

    return opset18


def _rounded_values(x: Any, scale: float, zero: int, least: int, most: int) -> Any:
    from onnxscript import ir

    op = _operators()
    number = np.uint8(zero) if least == LEAST_CODE else np.int8(zero)
    of = (op.Constant(value_float=scale), op.Constant(value=ir.tensor(number)))
    return op.DequantizeLinear(op.QuantizeLinear(x, *of), *of)


def _rounded_channels(x: Any, scale: Any, zero: Any, axis: int, least: int, most: int) -> Any:
    op = _operators()
    zeros = op.Cast(zero, to=_INT8)
    return op.DequantizeLinear(
        op.QuantizeLinear(x, scale, zeros, axis=axis), scale, zeros, axis=axis
    )


def _store_integers(graph: ir.Graph, node: ir.Node) -> None:
    """Puts what rounding gives of a weight in the place of both."""
    from onnxscript import ir

    before, factor = node.inputs[0], node.inputs[1]
    assert before is not None and before.name is not None and factor is not None
    weight, scale = (ir.convenience.get_const_tensor(value) for value in (before, factor))
    if weight is None or scale is None:
        raise AssertionError("a weight is rounded by what is no constant")
    values, factors = weight.numpy(), scale.numpy()
    if factors.ndim:
        axis = node.attributes["axis"].as_int()
        factors = factors.reshape([-1 if d == axis else 1 for d in range(values.ndim)])
    integers = np.rint(values / factors).clip(-MOST_WEIGHT, MOST_WEIGHT).astype(np.int8)
    made = ir.Value(name=f"{before.name}_integers", const_value=ir.tensor(integers))
    made.shape, made.dtype = ir.Shape(integers.shape), ir.DataType.INT8
    graph.register_initializer(made)
    for user, place in list(node.outputs[0].uses()):
        user.replace_input_with(place, made)
    graph.remove(node, safe=True)
    if not before.uses():
        del graph.initializers[before.name]


FORMATS = {"onnx": Onnx()}
