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
from syno.operators.kernel import KernelPack, load_kernel

_NAME = re.compile(r"[A-Za-z_]\w*")


@contextmanager
def any_size(net: nn.Module) -> Iterator[None]:
    """The operators of the network run on maps of any size for which they are legal.

    Inside, a KernelPack makes code for a size when it first meets it; afterwards each has its own
    code again. The weights are the same throughout. UserError, when it runs, for an operator that
    is not legal at a size, or has other weights there.
    """
    packs = [module for module in net.modules() if isinstance(module, KernelPack)]
    made = {pack: _Sizes(pack) for pack in packs}
    hooks = [pack.register_forward_pre_hook(made[pack]) for pack in packs]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for sizes in made.values():
            sizes.restore()


class _Sizes:
    """The code of one operator by the shape of its input."""

    def __init__(self, pack: KernelPack) -> None:
        self._pack = pack
        self._own = pack.kernel
        self._kernels: dict[tuple[int, ...], nn.Module] = {}

    def restore(self) -> None:
        """The code for the binding of the operator."""
        self._pack.kernel = self._own

    def __call__(self, pack: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        """Before a forward pass: puts the code for this input in."""
        shape = tuple(inputs[0].shape[1:])
        if shape not in self._kernels:
            self._kernels[shape] = self._made(shape)
        self._pack.kernel = self._kernels[shape]

    def _made(self, shape: tuple[int, ...]) -> nn.Module:
        pack = self._pack
        binding = dict(pack.binding)
        for size, extent in zip(pack.operator.input[1:], shape, strict=True):
            if _NAME.fullmatch(size):
                binding[size] = extent
        if binding == pack.binding:
            return self._own
        if tuple(self._extents(binding)) != shape:
            raise UserError(
                f"operator {pack.operator.structure[:8]} has no size for an input of "
                f"{list(shape)}\n"
                f"  expected: [{', '.join(pack.operator.input[1:])}]"
            )
        source = pack.operator.source(binding, plan=pack.plan, fold_weights=pack.fold_weights)
        with torch.random.fork_rng(devices=[]):  # its own weights are drawn for nothing
            kernel = load_kernel(source)()
        own = dict(self._own.named_parameters())
        found = {name: tuple(weight.shape) for name, weight in kernel.named_parameters()}
        if found != {name: tuple(weight.shape) for name, weight in own.items()}:
            raise UserError(
                f"the weights of operator {pack.operator.structure[:8]} depend on the size of its "
                "feature "
                f"map: they differ for an input of {list(shape)}"
            )
        kernel.to(next(iter(own.values())).device)
        for name, weight in own.items():
            setattr(kernel, name, weight)
        return kernel.train(self._own.training)

    def _extents(self, binding: dict[str, int]) -> list[int]:
        shapes = self._pack.operator.shapes(binding)
        return list(shapes.input[1:])
