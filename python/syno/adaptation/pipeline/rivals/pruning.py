"""Channel pruning: networks without the channels of the smallest weights."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import torch
from torch import nn

from syno._util.errors import UserError, first_line
from syno._util.inputs import Inputs, arguments
from syno._util.network_copy import copy_network
from syno._util.silence import quiet
from syno.network.channels.groups import ChannelGroup, without

_LEAST = 4  # channels of a group that stay
_LAYERS = ("conv", "linear", "addmm", "mm", "bmm", "matmul")


def pruned(
    net: nn.Module, groups: Sequence[ChannelGroup], share: float, multiple: int = 1
) -> nn.Module:
    """A copy of a network that keeps this share of the channels in each group.

    The importance of a channel is the sum of the squares of all weights that make it (Li et al.
    2017, "Pruning filters for efficient ConvNets").

    Args:
        net: a network without slots.
        groups: of its channels, as `channel_groups` finds them.
        share: above 0 and at most 1.
        multiple: of which a group keeps one, the next larger.

    Raises:
        UserError: there are no groups.
    """
    if not groups:
        raise UserError("the network has no channels that can be pruned")
    weights = dict(net.named_parameters())
    removed = []
    for group in groups:
        importance = torch.zeros(group.size)
        for (name, dim), indices in group.indices.items():
            if dim == 0 and name in weights and weights[name].dim() > 1:
                rows = weights[name].detach().square().flatten(1).sum(1)
                importance += rows[torch.from_numpy(indices)].sum(1)
        kept = -(-max(round(share * group.size), _LEAST) // multiple) * multiple
        gone = importance.argsort(stable=True)[: max(group.size - kept, 0)]
        removed.append((group, sorted(gone.tolist())))
    return without(net, removed)


def has_torch_pruning() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec("torch_pruning") is not None


def torch_pruned(net: nn.Module, example: Inputs, share: float, multiple: int = 1) -> nn.Module:
    """As `pruned`, by Torch-Pruning (Fang et al. 2023, "DepGraph"), with the groups that it finds.

    Args:
        net: a network without slots.
        example: an input of it.
        share: of the channels that stay in each group.
        multiple: of which a group keeps one, the next larger.

    Raises:
        UserError: it cannot prune the network, or gives one that does not run.
    """
    import torch_pruning

    inputs = arguments(example)
    made = copy_network(net).eval().requires_grad_(True)
    last = _last_layers(net, inputs)
    try:
        with torch.inference_mode(False), torch.enable_grad(), quiet():
            pruner = torch_pruning.pruner.BasePruner(
                made,
                tuple(each.clone() for each in inputs) if len(inputs) > 1 else inputs[0].clone(),
                importance=torch_pruning.importance.GroupMagnitudeImportance(p=2),
                pruning_ratio=1.0 - share,
                round_to=multiple,
                ignored_layers=[made.get_submodule(name) for name in last],
            )
            pruner.step()
        with torch.no_grad():
            made(*inputs)
    except Exception as error:  # its errors have no class of their own
        raise UserError(f"Torch-Pruning cannot prune the network: {first_line(error)}") from error
    return made


def _last_layers(net: nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[str]:
    """The layers between which and the results of the network there is no other layer."""
    with quiet():
        try:
            program = torch.export.export(net, inputs)
        except Exception as error:
            raise UserError(
                f"torch.export cannot trace the {type(net).__name__}: {first_line(error)}"
            ) from error
    held = program.graph_signature.inputs_to_parameters
    found: set[str] = set()
    seen: set[torch.fx.Node] = set()
    waiting = list(program.graph.output_node().all_input_nodes)
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        own = {
            held[each.name].rpartition(".")[0] for each in node.all_input_nodes if each.name in held
        }
        if own and any(part in str(node.target) for part in _LAYERS):
            found |= own
        else:
            waiting += node.all_input_nodes
    return sorted(found)
