"""Networks with a candidate in each slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from syno._util.inputs import Inputs, arguments
from syno._util.network_copy import copy_network
from syno.adaptation.activations import Activations
from syno.adaptation.pipeline.kinds import Kind, by_slot
from syno.adaptation.pipeline.pool import ORIGINAL_LAYER, Candidate
from syno.adaptation.pipeline.screening import Fits
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.adaptation.slots import set_weights
from syno.network.exchange import exchange
from syno.network.placeholder import Placeholder, slots
from syno.operators.layer import Layer

Choice = Mapping[str, Candidate]
# Gives a network fewer channels: a copy of one whose original layers are in no slots.
Narrow = Callable[[nn.Module], nn.Module] | None


def plain(net: nn.Module) -> nn.Module:
    """A copy of a network in which original layers stand in place of slots."""
    net = copy_network(net).eval().requires_grad_(True)
    return _without_slots(net, list(slots(net)))


def empty(
    subject: AdaptationSubject, kinds: Mapping[str, Kind], choice: Choice, narrow: Narrow = None
) -> nn.Module:
    """The network with the chosen operators, whose weights are initial ones.

    narrow: as `assembled` has it; it does not have to fit anything.
    """
    net = subject.copy()
    found = slots(net)
    of_slot = by_slot(kinds)
    for name, candidate in choice.items():
        of_slot[name].fill(found[name], candidate)
    return net if narrow is None else narrow(_with_layers(net, choice))


def _with_layers(net: nn.Module, choice: Choice) -> nn.Module:
    """A network in which the original layers that stay are in no slots."""
    stay = [name for name in slots(net) if choice.get(name, ORIGINAL_LAYER) is ORIGINAL_LAYER]
    return _without_slots(net, stay)


def _without_slots(net: nn.Module, names: Sequence[str]) -> nn.Module:
    """Puts the original layers in place of slots."""
    found = slots(net)
    for slot in [found[name] for name in names]:
        assert slot.original is not None
        exchange(slot, slot.original)
    return net


def assembled(
    subject: AdaptationSubject,
    kinds: Mapping[str, Kind],
    choice: Choice,
    fits: Fits,
    *,
    refit: Sequence[Inputs] = (),
    narrow: Narrow = None,
) -> nn.Module:
    """The network with the chosen operators, fitted, and its statistics refreshed.

    Args:
        subject: the original network.
        kinds: the slots.
        choice: a candidate for each slot; slots without one keep their layer.
        fits: the fitted weights.
        refit: inputs of the network. If there are any, each operator is fitted again behind the
            operators before it, to the results of the original layer on the original's input.
        narrow: gives it fewer channels; channels of layers in slots with operators stay.
    """
    net = empty(subject, kinds, choice)
    found = slots(net)
    originals = slots(subject.original)
    changed = False
    for name, candidate in choice.items():
        layer = found[name].kernel
        if isinstance(layer, Layer):
            both = None
            if refit and changed:
                both = _behind(net, found[name], subject.original, originals[name], refit)
            set_weights(layer, fits.fit(name, candidate, both))
        changed = changed or candidate is not ORIGINAL_LAYER
    if narrow is not None:
        net, changed = narrow(_with_layers(net, choice)), True
    if changed:
        subject.refresh(net)
    return net


def _behind(
    net: nn.Module,
    slot: Placeholder,
    original: nn.Module,
    source: Placeholder,
    batches: Sequence[Inputs],
) -> Activations:
    """What a slot receives in the new network, and what its layer returned in the original."""
    received: list[torch.Tensor] = []
    returned: list[torch.Tensor] = []

    def take(_: nn.Module, inputs: tuple[torch.Tensor, ...], __: torch.Tensor) -> None:
        received.append(slot.kernel_input(inputs[0]).clone())

    def give(_: nn.Module, __: tuple[torch.Tensor, ...], result: torch.Tensor) -> None:
        returned.append(source.kernel_output(result).clone())

    hooks = [slot.register_forward_hook(take), source.register_forward_hook(give)]
    try:
        with torch.no_grad():
            for batch in batches:
                net(*arguments(batch))
                original(*arguments(batch))
    finally:
        for hook in hooks:
            hook.remove()
    return Activations(torch.cat(received), torch.cat(returned))
