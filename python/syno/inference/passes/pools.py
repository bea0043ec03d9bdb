"""Pooling by Syno's own operator, which is many times as fast as PyTorch's in row-major memory."""

from __future__ import annotations

import torch
from torch import fx, nn

from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.clean import put_module
from syno.inference.trace import each_dimension, module_name

_aten = torch.ops.aten
_MAX, _AVERAGE = _aten.max_pool2d.default, _aten.avg_pool2d.default
_ADAPTIVE, _MEAN = _aten.adaptive_avg_pool2d.default, _aten.mean.dim


class Pool(nn.Module):
    """Windows of a maximum or an average over maps; window: height and width of the windows, of
    their distance, and of what is around the maps; flat: windows are whole maps, and the result has
    no dimensions of them."""

    def __init__(
        self,
        name: str,
        window: tuple[int, ...],
        average: bool,
        flat: bool = False,
    ) -> None:
        super().__init__()
        self.name = name
        self.window = window
        self.average = average
        self.flat = flat

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The maximum or average of each window."""
        found: torch.Tensor = torch.ops.syno.pool(x, *self.window, self.average)
        return found.flatten(1) if self.flat else found

    @property
    def kind(self) -> str:
        """What the report calls it."""
        return "average" if self.average else "maximum"

    def extra_repr(self) -> str:
        """Name, kind and windows, for printing a network."""
        return f"{self.name}, {self.kind}, {self.window}"


def put_pools(graph: fx.GraphModule) -> list[Pool]:
    """Puts a `Pool` in place of every pooling that it can compute, and returns them."""
    found: list[Pool] = []
    for node in list(graph.graph.nodes):
        window = _window(node)
        if window is None:
            continue
        name = f"syno_pool_{len(found)}"
        flat = node.meta["val"].dim() == 2  # the mean of each map
        pool = Pool(module_name(node), window, node.target is not _MAX, flat)
        put_module(graph, node, name, pool, node.args[0])
        found.append(pool)
    graph.recompile()
    return found


def _window(node: fx.Node) -> tuple[int, ...] | None:
    """The windows of a pooling of maps in float32; None for everything else."""
    if node.op != "call_function" or node.target not in (_MAX, _AVERAGE, _ADAPTIVE, _MEAN):
        return None
    given = NodeArguments(node)
    source = given["self"]
    x, y = source.meta["val"], node.meta["val"]
    if x.dim() != 4 or x.dtype != torch.float32 or not all(isinstance(n, int) for n in x.shape[1:]):
        return None
    inside, outside = list(x.shape[2:]), list(y.shape[2:])
    if node.target is _MEAN:
        mean = sorted(d % 4 for d in given["dim"] or ()) == [2, 3]
        given.without_effect("keepdim")
        return (*inside, 1, 1, 0, 0) if mean and not given.unread else None
    if node.target is _ADAPTIVE:
        if not all(outside) or any(n % out for n, out in zip(inside, outside, strict=True)):
            return None
        size = [n // out for n, out in zip(inside, outside, strict=True)]
        return (*size, *size, 0, 0)
    return _fixed_window(given, node.target is _AVERAGE, inside, outside)


def _fixed_window(
    given: NodeArguments, average: bool, inside: list[int], outside: list[int]
) -> tuple[int, ...] | None:
    """The windows of a pooling whose arguments say them."""
    size, around = (each_dimension(given[name], 2) for name in ("kernel_size", "padding"))
    step = each_dimension(given["stride"], 2) if given["stride"] else size
    # The sizes of the result say it, and an average is over zeros around the map or none at all.
    given.without_effect("ceil_mode", "count_include_pad")
    # Dilation of a maximum, and what an average is divided by.
    if given.unread:
        return None
    # No window is cut off, or lies partly outside where that matters.
    sizes = zip(inside, size, step, around, strict=True)
    whole = [(n + 2 * p - k) // s + 1 for n, k, s, p in sizes]
    if whole != outside or (average and any(around)):
        return None
    return (*size, *step, *around)
