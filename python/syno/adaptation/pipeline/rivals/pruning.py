"""Channel pruning: a network without the channels of the smallest weights.

Channels that are added together, as around a residual block, are pruned together. They are found
in the graph of torch.fx: each tensor has a group of channels, and an addition joins two groups. The
importance of a channel is the sum of the squares of all weights that make it (Li et al. 2017,
"Pruning filters for efficient ConvNets"; groups as in Fang et al. 2023, "DepGraph").
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import fx, nn
from torch.nn import functional

from syno._util.errors import UserError, first_line
from syno._util.network_copy import copy_network

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_SAME_MODULES = (nn.ReLU, nn.ReLU6, nn.SiLU, nn.Hardswish, nn.Identity, nn.Dropout)
_POOLS = (nn.AvgPool2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d)
_SAME_FUNCTIONS = (functional.relu, torch.relu, functional.silu, functional.hardswish)
_SAME_METHODS = ("relu", "contiguous", "clone")
_MEANS = ("mean",)
_LEAST = 4  # channels of a group that stay


@dataclass
class _Group:
    """Channels that are kept or pruned together."""

    size: int
    fixed: bool = False
    importance: torch.Tensor | None = None
    parent: _Group | None = None

    def root(self) -> _Group:
        """The group that this one is joined to."""
        return self if self.parent is None else self.parent.root()

    def join(self, other: _Group) -> _Group:
        """Make one group of two."""
        one, two = self.root(), other.root()
        if one is two:
            return one
        if one.size != two.size:
            raise UserError("tensors with different channels are added")
        two.parent = one
        one.fixed = one.fixed or two.fixed
        parts = [each for each in (one.importance, two.importance) if each is not None]
        one.importance = torch.stack(parts).sum(0) if parts else None
        return one


@dataclass
class _Layers:
    """Which groups the layers read and make: layer -> (inputs, outputs, elements of an input)."""

    of: dict[str, tuple[_Group, _Group, int]] = field(default_factory=dict)
    norms: dict[str, _Group] = field(default_factory=dict)


def pruned(net: nn.Module, share: float) -> nn.Module:
    """A copy of a network that keeps this share of the channels in each group.

    Args:
        net: a network without slots, of convolutions, normalization and linear layers.
        share: above 0 and at most 1.

    Raises:
        UserError: torch.fx cannot follow the network, or it has an operation that is not known.
    """
    net = copy_network(net)
    layers = _layers(net)
    modules = dict(net.named_modules())
    kept: dict[int, torch.Tensor] = {}

    def places(group: _Group) -> torch.Tensor:
        root = group.root()
        if id(root) not in kept:
            kept[id(root)] = _best(root, share)
        return kept[id(root)]

    for name, (inside, outside, elements) in layers.of.items():
        layer = modules[name]
        read = places(inside)
        if elements > 1:  # a linear layer behind flattened maps
            read = (read[:, None] * elements + torch.arange(elements)).flatten()
        _shrink(layer, read, places(outside))
    for name, group in layers.norms.items():
        _shrink_norm(modules[name], places(group))
    return net


def _best(group: _Group, share: float) -> torch.Tensor:
    if group.fixed or group.importance is None:
        return torch.arange(group.size)
    count = min(max(round(share * group.size), _LEAST), group.size)
    return group.importance.topk(count).indices.sort().values


def _layers(net: nn.Module) -> _Layers:
    try:
        graph = fx.symbolic_trace(net)
    except (fx.proxy.TraceError, TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"torch.fx cannot follow the network: {first_line(error)}") from error
    modules = dict(graph.named_modules())
    found = _Layers()
    groups: dict[fx.Node, tuple[_Group, bool]] = {}  # of a tensor, and whether it is flattened
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            groups[node] = (_Group(0, fixed=True), False)
        elif node.op == "output":
            for each in node.all_input_nodes:
                groups[each][0].root().fixed = True
        elif node.op == "call_module":
            groups[node] = _of_module(node, modules[str(node.target)], groups, found)
        else:
            groups[node] = _of_function(node, groups)
    return found


def _of_module(
    node: fx.Node, module: nn.Module, groups: dict[fx.Node, tuple[_Group, bool]], found: _Layers
) -> tuple[_Group, bool]:
    (source,) = node.all_input_nodes
    group, flat = groups[source]
    name = str(node.target)
    if name in found.of or name in found.norms:
        raise UserError(f"the module '{name}' is called twice")
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        is_map = isinstance(module, nn.Conv2d)
        inside = module.in_channels if isinstance(module, nn.Conv2d) else module.in_features
        outside = module.out_channels if isinstance(module, nn.Conv2d) else module.out_features
        if isinstance(module, nn.Conv2d) and module.groups > 1:
            raise UserError(f"the convolution '{name}' has groups")
        root = group.root()
        if root.size == 0:  # the input of the network
            root.size = inside
        elements = 1 if is_map or not flat else inside // root.size
        made = _Group(outside, importance=module.weight.detach().square().flatten(1).sum(1))
        found.of[name] = group, made, elements
        return made, False
    if isinstance(module, _NORMS):
        found.norms[name] = group
        return group, flat
    if isinstance(module, nn.Flatten):
        return group, True
    if isinstance(module, (*_SAME_MODULES, *_POOLS)):
        return group, flat
    raise UserError(f"the module '{name}' is a {type(module).__name__}")


def _of_function(node: fx.Node, groups: dict[fx.Node, tuple[_Group, bool]]) -> tuple[_Group, bool]:
    given = [groups[each] for each in node.all_input_nodes if each in groups]
    target: object = node.target
    if target in (operator.add, operator.iadd, torch.add) or target in ("add", "add_"):
        group = given[0][0]
        for other, _ in given[1:]:
            group = group.join(other)
        return group, given[0][1]
    if target in (torch.flatten, "flatten"):
        return given[0][0], True
    same: tuple[object, ...] = (*_SAME_FUNCTIONS, *_SAME_METHODS, *_MEANS, torch.mean)
    pools: tuple[Callable[..., object], ...] = (functional.avg_pool2d, functional.max_pool2d)
    if target in same or target in pools or target is functional.adaptive_avg_pool2d:
        return given[0]
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    raise UserError(f"the network computes '{name}'")


def _shrink(layer: nn.Module, read: torch.Tensor, made: torch.Tensor) -> None:
    assert isinstance(layer, (nn.Conv2d, nn.Linear))
    layer.weight = nn.Parameter(layer.weight.detach()[made][:, read].clone())
    if layer.bias is not None:
        layer.bias = nn.Parameter(layer.bias.detach()[made].clone())
    if isinstance(layer, nn.Conv2d):
        layer.in_channels, layer.out_channels = len(read), len(made)
    else:
        layer.in_features, layer.out_features = len(read), len(made)


def _shrink_norm(norm: nn.Module, kept: torch.Tensor) -> None:
    assert isinstance(norm, _NORMS)
    norm.num_features = len(kept)
    for name in ("weight", "bias"):
        value = getattr(norm, name)
        if value is not None:
            setattr(norm, name, nn.Parameter(value.detach()[kept].clone()))
    for name in ("running_mean", "running_var"):
        value = getattr(norm, name)
        if value is not None:
            setattr(norm, name, value[kept].clone())
