"""Groups of channels of a network, and copies of it without some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from syno._util.errors import UserError, first_line
from syno._util.network_copy import copy_network
from syno._util.silence import quiet
from syno._util.trial_calls import copies, difference, random_like, tensors_of
from syno.network.channels.follow import Follower

# Sums of fewer terms are rounded otherwise.
_SAME = 1e-3
# A dimension of a parameter or a buffer, by its name in the state dict.
Place = tuple[str, int]


@dataclass(frozen=True)
class ChannelGroup:
    """Channels that the same layers read and make, such as those between two convolutions, or of
    all additions of a stage. Any of them can be removed, everywhere at once.

    name: of the layer that makes them first; size: how many they are; indices: for each dimension
    of a parameter or buffer the places of each channel, [size, places].
    """

    name: str
    size: int
    indices: Mapping[Place, NDArray[np.int64]]


def channel_groups(net: nn.Module, *inputs: torch.Tensor) -> list[ChannelGroup]:
    """The groups of channels of a network in evaluation mode, in the order of its layers.

    Channels are followed from operation to operation (`syno.network.channels.follow`). Those that
    meet an operation that is not known, an input or a result of the network belong to no group.

    UserError where torch cannot trace the network.
    """
    found = followed_groups(net, inputs)
    if _is_right(net, found, inputs):
        return found
    return [group for group in found if _is_right(net, [group], inputs)]


def followed_groups(net: nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[ChannelGroup]:
    """Those that the graph alone shows: the code of the network may know a number of channels."""
    with quiet():
        try:
            program = torch.export.export(net, inputs).run_decompositions({})
        except Exception as error:
            raise UserError(
                f"torch.export cannot trace the {type(net).__name__}: {first_line(error)}"
            ) from error
    signature = program.graph_signature
    held = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    follower = Follower(program.graph, tuple(held))
    classes = follower.classes
    for name in _shared(net) | _unknown(net):
        for node, known in held.items():
            if known == name:
                classes.keep(follower.dims[_placeholder(program.graph, node)])
    members: dict[int, dict[Place, list[int]]] = {}
    for node, name in held.items():
        for dim, ids in enumerate(follower.dims[_placeholder(program.graph, node)]):
            for index, channel in enumerate(() if ids is None else ids.tolist()):
                if not classes.is_kept(channel):
                    found = members.setdefault(classes.of(channel), {})
                    found.setdefault((name, dim), []).append(index)
    alike: dict[tuple[tuple[Place, int], ...], list[dict[Place, list[int]]]] = {}
    for found in members.values():
        mark = tuple(sorted((place, len(indices)) for place, indices in found.items()))
        alike.setdefault(mark, []).append(found)
    order = {name: number for number, name in enumerate(net.state_dict())}
    made = []
    for mark, every in alike.items():
        places = [place for place, _ in mark]
        if not any(dim == 0 and name.endswith("weight") for name, dim in places):
            continue  # of no layer, such as the places of a window
        first = min((order[name], name) for name, dim in places if dim == 0)[1]
        indices = {place: np.array([found[place] for found in every]) for place in places}
        made.append(ChannelGroup(first.rpartition(".")[0], len(every), indices))
    return sorted(made, key=lambda group: order[f"{group.name}.weight"])


def _is_right(
    net: nn.Module, groups: Sequence[ChannelGroup], inputs: tuple[torch.Tensor, ...]
) -> bool:
    """Whether the network without some channels computes what it does where nobody reads them.

    It does not where its code has their number, as in a reshape.
    """
    removed = [(group, range(0, group.size, 3)) for group in groups if group.size > 1]
    blind = copy_network(net)
    state = blind.state_dict()
    for group, channels in removed:
        for (name, dim), indices in group.indices.items():
            if dim == 1:
                gone = torch.from_numpy(indices[list(channels)].reshape(-1))
                state[name].index_fill_(1, gone, 0.0)
    drawn = random_like(inputs)
    with torch.no_grad():
        try:
            found = tensors_of(without(net, removed)(*copies(drawn)))
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
            return False
        wanted = tensors_of(blind(*copies(drawn)))
    return len(found) == len(wanted) and all(
        difference(y, expected) <= _SAME for y, expected in zip(found, wanted, strict=True)
    )


def _placeholder(graph: torch.fx.Graph, name: str) -> torch.fx.Node:
    return next(node for node in graph.nodes if node.name == name)


def _shared(net: nn.Module) -> set[str]:
    """Names of parameters and buffers that are one tensor with another name."""
    names: dict[int, list[str]] = {}
    for name, tensor in [
        *net.named_parameters(remove_duplicate=False),
        *net.named_buffers(remove_duplicate=False),
    ]:
        names.setdefault(id(tensor), []).append(name)
    return {name for every in names.values() if len(every) > 1 for name in every}


_KNOWN = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.Linear,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
)


def _unknown(net: nn.Module) -> set[str]:
    """Names of parameters of modules whose sizes `without` cannot set."""
    found = set()
    for path, module in net.named_modules():
        if not isinstance(module, _KNOWN):
            prefix = f"{path}." if path else ""
            own = [*module._parameters, *module._buffers]
            found |= {prefix + name for name in own}
    return found


def without(net: nn.Module, removed: Sequence[tuple[ChannelGroup, Sequence[int]]]) -> nn.Module:
    """A copy of a network without channels of its groups, whose weights are otherwise the same.

    removed: groups, and the numbers of the channels that go.

    UserError where a group would lose all its channels.
    """
    gone: dict[Place, set[int]] = {}
    for group, channels in removed:
        chosen = sorted(set(channels))
        if len(chosen) >= group.size:
            raise UserError(
                f"all {group.size} channels of '{group.name}' would be removed\n"
                "  expected: at least one that stays"
            )
        for place, indices in group.indices.items():
            gone.setdefault(place, set()).update(indices[chosen].reshape(-1).tolist())
    made = copy_network(net)
    for (name, dim), lost in gone.items():
        path, _, own = name.rpartition(".")
        module = made.get_submodule(path)
        tensor = getattr(module, own)
        stays = torch.tensor([i for i in range(tensor.shape[dim]) if i not in lost])
        part = tensor.detach().index_select(dim, stays)
        if isinstance(tensor, nn.Parameter):
            setattr(module, own, nn.Parameter(part, requires_grad=tensor.requires_grad))
        else:
            setattr(module, own, part)
    for module in made.modules():
        _set_sizes(module)
    return made


def _set_sizes(module: nn.Module) -> None:
    """Makes the attributes of a layer say what its weights are."""
    if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        if module.groups == module.in_channels == module.out_channels:
            module.groups = len(module.weight)
        module.out_channels = len(module.weight)
        module.in_channels = module.weight.shape[1] * module.groups
    elif isinstance(module, nn.Linear):
        module.out_features, module.in_features = module.weight.shape
    elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
        for tensor in (module.weight, module.running_mean):
            if tensor is not None:
                module.num_features = len(tensor)
