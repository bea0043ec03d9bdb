"""Operators on maps of other sizes than their binding's, for images that grow in training.

The code of an operator is made for one size of its map. Where its weights do not depend on that
size, code for another size computes the same operator with the same weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from syno._util.errors import UserError
from syno.operators.emitted import load_module
from syno.operators.layer import Layer

_NAME = re.compile(r"[A-Za-z_]\w*")


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
        self._kernels: dict[tuple[int, ...], nn.Module] = {}

    def restore(self) -> None:
        """The code for the binding of the operator."""
        self._layer.kernel = self._own

    def __call__(self, layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        """Before a forward pass: puts the code for this input in."""
        shape = tuple(inputs[0].shape[1:])
        if shape not in self._kernels:
            self._kernels[shape] = self._made(shape)
        self._layer.kernel = self._kernels[shape]

    def _made(self, shape: tuple[int, ...]) -> nn.Module:
        layer = self._layer
        binding = dict(layer.binding)
        for size, extent in zip(layer.operator.input[1:], shape, strict=True):
            if _NAME.fullmatch(size):
                binding[size] = extent
        if binding == layer.binding:
            return self._own
        if tuple(self._extents(binding)) != shape:
            raise UserError(
                f"operator {layer.operator.structure[:8]} has no size for an input of "
                f"{list(shape)}\n"
                f"  expected: [{', '.join(layer.operator.input[1:])}]"
            )
        source = layer.operator.source(binding, plan=layer.plan, fold_weights=layer.fold_weights)
        with torch.random.fork_rng(devices=[]):  # its own weights are drawn for nothing
            kernel = load_module(source)()
        own = dict(self._own.named_parameters())
        found = {name: tuple(weight.shape) for name, weight in kernel.named_parameters()}
        if found != {name: tuple(weight.shape) for name, weight in own.items()}:
            raise UserError(
                f"the weights of operator {layer.operator.structure[:8]} depend on the size of its "
                "feature "
                f"map: they differ for an input of {list(shape)}"
            )
        kernel.to(next(iter(own.values())).device)
        for name, weight in own.items():
            setattr(kernel, name, weight)
        return kernel.train(self._own.training)

    def _extents(self, binding: dict[str, int]) -> list[int]:
        shapes = self._layer.operator.shapes(binding)
        return list(shapes.input[1:])
