"""A graph for a batch of any size as one for a single sample."""

from __future__ import annotations

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from syno._util.errors import UserError
from syno.inference.samples.place import batch_of, called, number
from syno.inference.trace import attribute, module_name, shape_of

_VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
_RESHAPE = torch.ops.aten.reshape.default
_SQUEEZE = torch.ops.aten.squeeze.default


def for_one(graph: fx.GraphModule) -> None:
    """Make a graph for a batch of any size one for a single sample.

    UserError where a tensor has another number of dimensions for one sample, as after `squeeze()`.
    """
    batch = batch_of(graph)
    values: dict[fx.Node, object] = {}
    with FakeTensorMode() as mode:
        for node in list(graph.graph.nodes):
            known = node.meta.get("val")
            if node.op == "placeholder":
                shape = [size if isinstance(size, int) else 1 for size in known.shape]
                values[node] = torch.empty(shape, dtype=known.dtype)
            elif node.op == "get_attr":
                held = attribute(graph, str(node.target))
                values[node] = mode.from_tensor(held) if isinstance(held, torch.Tensor) else held
            elif node.op == "call_function":
                if node.target in _VIEWS:
                    node.target = _RESHAPE  # strides of attention depend on the size of the batch
                values[node] = called(node, values)
                _check_shape(node, values[node], batch)
            elif node.op == "call_module":
                shape = [number(size, batch) for size in known.shape]
                values[node] = torch.empty(shape, dtype=known.dtype)
            if isinstance(known, torch.SymInt):
                node.replace_all_uses_with(values[node])
            elif node.op != "output":
                node.meta["val"] = values[node]
    graph.graph.eliminate_dead_code()
    graph.recompile()


def squeezed_batch(graph: fx.GraphModule) -> str:
    """The module whose `squeeze()` also removes the batch where that is one sample; "" for none.

    Of those alone whose result others read than functions of each element: layers and changes of
    shape, which a graph for any batch has for more dimensions.
    """
    fewer: dict[fx.Node, fx.Node] = {}  # values, and the call that took their dimension
    for node in graph.graph.nodes:
        before = [fewer[each] for each in node.all_input_nodes if each in fewer]
        if node.target is _SQUEEZE:
            (x,) = node.all_input_nodes
            if any(isinstance(size, torch.SymInt) for size in shape_of(x)):
                fewer[node] = node
        elif before and node.op != "output":
            if torch.Tag.pointwise not in getattr(node.target, "tags", ()):
                return module_name(before[0])
            fewer[node] = before[0]
    return ""


def _check_shape(node: fx.Node, value: object, batch: torch.SymInt) -> None:
    if not isinstance(value, torch.Tensor):
        return
    expected = [number(size, batch) for size in shape_of(node)]
    if list(value.shape) != expected:
        raise UserError(
            f"the shape {list(value.shape)} of a single sample is not that of other batches\n"
            f"  in the module {module_name(node)}, at {node.target}\n"
            f"  expected: {expected}      what to do: name the dimensions, as in squeeze(1)"
        )
