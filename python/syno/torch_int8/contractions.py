"""The contractions of an operator as layers that torch knows how to quantize. Needs torch.

The emitted code multiplies data with views of its weights, by `conv2d` and `einsum`. Here the views
are computed once, and each contraction becomes a convolution with the result as its weight.
"""

from __future__ import annotations

import operator as python_operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.fx.node import Argument

from syno.operators.layer import Layer

_ATEN = torch.ops.aten
_CONVOLUTIONS: dict[object, type[nn.Conv1d] | type[nn.Conv2d] | type[nn.Conv3d]] = {
    _ATEN.conv1d.default: nn.Conv1d,
    _ATEN.conv2d.default: nn.Conv2d,
    _ATEN.conv3d.default: nn.Conv3d,
}
# More than one sample, which torch.export would take as fixed.
_SAMPLES = 3

# They move numbers, repeat them, or put zeros between them: on INT8 numbers as on others.
MOVES = frozenset(
    {
        python_operator.getitem,
        _ATEN.cat.default,
        _ATEN.clone.default,
        _ATEN.contiguous.default,
        _ATEN.expand.default,
        _ATEN.flatten.using_ints,
        _ATEN.movedim.int,
        _ATEN.narrow.default,
        _ATEN.pad.default,
        _ATEN.permute.default,
        _ATEN.slice.Tensor,
        _ATEN.squeeze.dim,
        _ATEN.stack.default,
        _ATEN.unbind.int,
        _ATEN.unflatten.int,
        _ATEN.unfold.default,
        _ATEN.unsqueeze.default,
    }
)


def as_layers(pack: Layer) -> fx.GraphModule:
    """What the operator computes, as a graph of convolutions with constant weights and of moves.

    A contraction that is no convolution and no einsum of data with a weight stays as it is.
    """
    x = torch.zeros(_SAMPLES, *_input_sizes(pack))
    batch = torch.export.Dim("samples", min=1)
    exported = torch.export.export(pack.kernel.eval(), (x,), dynamic_shapes=({0: batch},))
    return _Layers(exported, pack.kernel.state_dict()).built()


def _input_sizes(pack: Layer) -> list[int]:
    from syno import _core

    return [_core.evaluate_size(size, pack.binding) for size in pack.operator.input[1:]]


# A node of the new graph, or a constant.
Made = fx.Node | torch.Tensor


class _Layers:
    """Copies an exported graph, node by node.

    What depends on weights alone is computed and kept as a constant; a contraction with a constant
    becomes a layer.
    """

    def __init__(self, exported: ExportedProgram, weights: dict[str, torch.Tensor]) -> None:
        signature = exported.graph_signature
        names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        self._source = exported.graph
        self._inputs = {node: weights[name].detach() for node, name in names.items()}
        self._graph = fx.Graph()
        self._root = nn.Module()
        self._made: dict[fx.Node, Made] = {}

    def built(self) -> fx.GraphModule:
        """The module."""
        for node in self._source.nodes:
            if node.op == "placeholder":
                known = self._inputs.get(node.name)
                self._made[node] = self._graph.placeholder("x") if known is None else known
            elif node.op == "call_function":
                self._made[node] = self._called(node)
            elif node.op == "output":
                self._graph.output(self._value(node.args[0][0]))
        module = fx.GraphModule(self._root, self._graph, "Contractions")
        module.graph.eliminate_dead_code()
        module.recompile()
        return module.eval()

    def _called(self, node: fx.Node) -> Made:
        arguments: Any = fx.node.map_arg(node.args, self._made.__getitem__)
        keywords: Any = fx.node.map_arg(node.kwargs, self._made.__getitem__)
        target: Callable[..., Made] = node.target  # type: ignore[assignment]
        sources: list[object] = []
        fx.node.map_arg(node.args, lambda n: sources.append(self._made[n]))
        if sources and not any(isinstance(source, fx.Node) for source in sources):
            return target(*arguments, **keywords)
        if target in _CONVOLUTIONS and isinstance(arguments[1], torch.Tensor):
            return self._convolution(target, *arguments, **keywords)
        if target is _ATEN.einsum.default:
            made = self._einsum(node, *arguments)
            if made is not None:
                return made
        if target is _ATEN.roll.default:
            return self._rolled(node, *arguments)
        arguments = fx.node.map_aggregate(arguments, self._value)
        return self._call(target, *arguments, **keywords)

    def _value(self, value: Any) -> Any:
        """An argument of the new graph: a constant becomes an attribute."""
        if isinstance(value, fx.Node) and value.graph is self._source:
            value = self._made[value]
        if not isinstance(value, torch.Tensor):
            return value
        name = f"constant{len(dict(self._root.named_buffers()))}"
        self._root.register_buffer(name, value)
        return self._graph.get_attr(name)

    def _call(
        self, target: Callable[..., object], *arguments: Argument, **keywords: Argument
    ) -> fx.Node:
        return self._graph.call_function(target, arguments, keywords)

    def _convolution(
        self,
        target: object,
        data: fx.Node,
        weight: torch.Tensor,
        bias: None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
    ) -> fx.Node:
        assert bias is None
        outputs, inputs, *window = weight.shape
        layer = _CONVOLUTIONS[target](
            inputs * groups,
            outputs,
            tuple(window),  # type: ignore[arg-type]
            stride=_tuple(stride, len(window)),  # type: ignore[arg-type]
            padding=_tuple(padding, len(window)),  # type: ignore[arg-type]
            dilation=_tuple(dilation, len(window)),  # type: ignore[arg-type]
            groups=groups,
            bias=False,
        )
        with torch.no_grad():
            layer.weight.copy_(weight)
        name = f"contraction{len(list(self._root.children()))}"
        self._root.add_module(name, layer)
        return self._graph.call_module(name, (data,))

    def _einsum(
        self, node: fx.Node, text: str, tensors: list[fx.Node | torch.Tensor], *_: object
    ) -> fx.Node | None:
        """Data times weight, summed: a convolution of window 1 whose groups are the dimensions that
        both have and the result keeps. None where it is of another form."""
        inside, outside = text.replace(" ", "").split("->")
        data, weight = inside.split(",")
        x, constant = tensors
        if isinstance(x, torch.Tensor) or not isinstance(constant, torch.Tensor):
            return None
        groups = [d for d in data if d in weight and d in outside]
        summed = [d for d in data if d in weight and d not in outside]
        free = [d for d in data if d in outside and d not in weight]
        made = [d for d in weight if d in outside and d not in data]
        alone = set(data) ^ set(weight)
        if free[:1] != [data[0]] or outside[0] != data[0] or alone - set(outside):
            return None
        sizes = dict(zip(data, _shape(node.args[1][0]), strict=True))  # type: ignore[index]
        sizes |= dict(zip(weight, constant.shape, strict=True))
        rest = free[1:]
        # [n, groups, summed, rest] -> [n, groups * summed, rest, 1], a map as it is
        order = [*free[:1], *groups, *summed, *rest]
        x = self._permuted(x, data, order)
        x = self._joined(x, len(groups) + len(summed), 1)
        is_map = len(rest) == 2
        if not is_map:
            x = self._joined(x, len(rest), 2)
            x = self._call(_ATEN.unsqueeze.default, x, 3)
        count = _product(sizes[d] for d in groups)
        kernel = constant.permute([weight.index(d) for d in (*groups, *made, *summed)])
        kernel = kernel.reshape(
            count * _product(sizes[d] for d in made), _product(sizes[d] for d in summed), 1, 1
        )
        y = self._convolution(_ATEN.conv2d.default, x, kernel, groups=count)
        # [n, groups * made, rest, 1] -> [n, groups, made, rest]
        if not is_map:
            y = self._call(_ATEN.squeeze.dim, y, 3)
            y = self._apart(y, [sizes[d] for d in rest], 2)
        y = self._apart(y, [sizes[d] for d in (*groups, *made)], 1)
        return self._permuted(y, [*free[:1], *groups, *made, *rest], list(outside))

    def _permuted(self, x: fx.Node, dims: Iterable[str], order: list[str]) -> fx.Node:
        places = [list(dims).index(d) for d in order]
        if places == sorted(places):
            return x
        return self._call(_ATEN.permute.default, x, places)

    def _joined(self, x: fx.Node, count: int, place: int) -> fx.Node:
        """`count` dimensions from `place` on become one."""
        if count == 0:
            return self._call(_ATEN.unsqueeze.default, x, place)
        if count == 1:
            return x
        return self._call(_ATEN.flatten.using_ints, x, place, place + count - 1)

    def _apart(self, x: fx.Node, sizes: list[int], place: int) -> fx.Node:
        """The inverse of `_joined`."""
        if not sizes:
            return self._call(_ATEN.squeeze.dim, x, place)
        if len(sizes) == 1:
            return x
        return self._call(_ATEN.unflatten.int, x, place, sizes)

    def _rolled(self, node: fx.Node, x: fx.Node, amounts: list[int], places: list[int]) -> fx.Node:
        """As two parts put together in turn: torch has no roll of INT8 numbers."""
        shape = _shape(node.args[0])
        for amount, place in zip(amounts, places, strict=True):
            size = int(shape[place])
            behind = amount % size
            if not behind:
                continue
            parts = [
                self._call(_ATEN.narrow.default, x, place, size - behind, behind),
                self._call(_ATEN.narrow.default, x, place, 0, size - behind),
            ]
            x = self._call(_ATEN.cat.default, parts, place)
        return x


def _shape(node: object) -> torch.Size:
    assert isinstance(node, fx.Node)
    return node.meta["val"].shape


def _tuple(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    found = [value] if isinstance(value, int) else list(value)
    return tuple(found * count if len(found) == 1 else found)


def _product(sizes: Iterable[int]) -> int:
    found = 1
    for size in sizes:
        found *= int(size)
    return found
