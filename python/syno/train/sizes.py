"""Operators on maps of other sizes than their binding's, for images that grow in training.

The code of an operator is made for one size of its map. Where its weights do not depend on that
size, code for another size computes the same operator with the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from syno.operators.emitted import load_module
from syno.operators.layer import Layer
from syno.operators.resizing import resized


@contextmanager
def any_size(net: nn.Module) -> Iterator[None]:
    """The operators of the network run on maps of any size for which they are legal.

    Inside, a Layer makes code for a size when it first meets it; afterwards each has its own
    code again. The weights are the same throughout. UserError, when it runs, for an operator that
    is not legal at a size, or has other weights there.
    """
    layers = [module for module in net.modules() if isinstance(module, Layer)]
    made = {layer: _Sizes(layer) for layer in layers}
    hooks = [layer.register_forward_pre_hook(made[layer]) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for sizes in made.values():
            sizes.restore()


class _Sizes:
    """The code of one operator by the shape of its input."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._own = layer.kernel
        self._first = 0 if layer.operator.batch is None else 1
        shape = layer.operator.shapes(layer.binding).input[self._first :]
        self._kernels: dict[tuple[int, ...], nn.Module] = {tuple(shape): self._own}

    def restore(self) -> None:
        """The code for the binding of the operator."""
        self._layer.kernel = self._own

    def __call__(self, layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        """Before a forward pass: puts the code for this input in."""
        shape = tuple(inputs[0].shape[self._first :])
        if shape not in self._kernels:
            self._kernels[shape] = self._made(shape)
        self._layer.kernel = self._kernels[shape]

    def _made(self, shape: tuple[int, ...]) -> nn.Module:
        layer = self._layer
        binding = resized(layer.operator, layer.binding, shape)
        source = layer.operator.source(binding, plan=layer.plan, fold_weights=layer.fold_weights)
        with torch.random.fork_rng(devices=[]):  # its own weights are drawn for nothing
            kernel = load_module(source)()
        own = dict(self._own.named_parameters())
        kernel.to(next(iter(own.values())).device)
        for name, weight in own.items():
            setattr(kernel, name, weight)
        return kernel.train(self._own.training)
