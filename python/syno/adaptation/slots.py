"""Operators in the slots of a trained network, fitted to what they replace. Needs torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments
from syno.adaptation.activations import Activations, record
from syno.adaptation.factors import Factors
from syno.adaptation.fit import Fit, Moments, SharedSums, fit
from syno.network.placeholder import Placeholder, checked_slots
from syno.network.surgery import fill
from syno.operators.layer import Layer
from syno.operators.operator import Operator


@dataclass(frozen=True)
class FittedSlot:
    """slot: its name. error: the squared error of the operator, relative to the results of the
    layer; nan where the layer stays. seconds: the time of the fit. reason: why the layer stays."""

    slot: str
    error: float
    seconds: float
    reason: str = ""


def fit_layer(
    operator: Operator,
    binding: Mapping[str, int],
    activations: Activations,
    *,
    restarts: int = 2,
    seed: int = 0,
    sweeps: int = 30,
    shared: SharedSums | None = None,
    initial: Sequence[torch.Tensor] | None = None,
    factors: Factors | None = None,
) -> Fit:
    """Fit the weights of an operator to the results of a layer.

    Args:
        operator: with a batch dimension and at least one weight.
        binding: the sizes of the layer.
        activations: of the layer.
        restarts: how many initial weights an operator of several weights is fitted from.
        seed: of the initial weights.
        sweeps: the maximum number of rounds over several weights.
        initial: weights to begin with, in place of `restarts` and `seed`.
        shared: sums that fits of other operators to the same activations have in common.
        factors: the operator under the binding, where it is taken apart already.

    Raises:
        UserError: the operator cannot be fitted here; the message says why.
    """
    if restarts < 1:
        raise UserError(f"'restarts' is at least 1, got {restarts}")
    factors = factors or Factors.of(operator, binding)
    moments = Moments.of(factors, [(activations.x, activations.y)], shared)
    begin = _initial(operator, binding, restarts, seed) if initial is None else [list(initial)]
    return fit(factors, moments, begin, sweeps=sweeps)


def fit_slots(
    net: nn.Module,
    operator: Operator,
    batches: Iterable[torch.Tensor] | Mapping[str, Activations],
    *,
    restarts: int = 2,
    seed: int = 0,
) -> list[FittedSlot]:
    """Fill the slots of a trained network with an operator, fitted to each layer.

    The weights minimize the squared error of the operator's results against those of the layer on
    the given inputs. No labels are needed. Statistics of batch normalization still belong to the
    original network; `refresh_batch_norm` computes them again.

    Args:
        net: a trained network with slots (`syno.substitute`).
        operator: the operator. A slot that it does not fit keeps its layer.
        batches: inputs of the network, or what `record` returned for it.
        restarts: how many initial weights an operator of several weights is fitted from.
        seed: of the initial weights.

    Raises:
        UserError: the network has no slots, or the operator can be fitted in none of them.
    """
    found = checked_slots(net)
    recorded = batches if isinstance(batches, Mapping) else record(net, batches)
    names = {id(slot): name for name, slot in found.items()}
    rows: dict[str, FittedSlot] = {}

    def pack(slot: Placeholder) -> nn.Module:
        name = names[id(slot)]
        with torch.random.fork_rng(devices=[]):
            kernel = operator.kernel_pack(slot.binding_of(operator), reference=slot.reference)
        slot.check_kernel(kernel)
        fitted = fit_layer(operator, kernel.binding, recorded[name], restarts=restarts, seed=seed)
        set_weights(kernel, fitted)
        rows[name] = FittedSlot(name, fitted.error, fitted.seconds)
        return kernel

    fill(found, pack)
    return [
        rows.get(name) or FittedSlot(name, float("nan"), 0.0, slot.kept_because or "")
        for name, slot in found.items()
    ]


def set_weights(kernel: Layer, fitted: Fit) -> None:
    """Give a kernel the weights of a fit."""
    with torch.no_grad():
        for parameter, weight in zip(kernel.kernel.parameters(), fitted.weights, strict=True):
            parameter.copy_(weight)


def refresh_batch_norm(net: nn.Module, batches: Iterable[Inputs]) -> None:
    """Compute the running statistics of all batch normalizations again, as means over batches.

    UserError when there are batch normalizations, but no batches.
    """
    layers = [
        module
        for module in net.modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats
    ]
    if not layers:
        return
    training = {module: module.training for module in net.modules()}
    momentum = {layer: layer.momentum for layer in layers}
    net.eval()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
        layer.train()
    seen = False
    try:
        with torch.no_grad():
            for batch in batches:
                net(*arguments(batch))
                seen = True
    finally:
        for layer in layers:
            layer.momentum = momentum[layer]
        for module, mode in training.items():
            module.training = mode
    if not seen:
        raise UserError("there are no inputs to compute the statistics of batch normalization from")


def _initial(
    operator: Operator, binding: Mapping[str, int], restarts: int, seed: int
) -> list[list[torch.Tensor]]:
    """Weights drawn as the emitted module draws them, without touching torch's generator."""
    made = []
    with torch.random.fork_rng(devices=[]):
        for number in range(restarts):
            torch.manual_seed(seed * 1000 + number)
            kernel = operator.kernel_pack(binding).kernel
            made.append([parameter.detach() for parameter in kernel.parameters()])
    return made
