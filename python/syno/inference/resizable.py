"""A compiled network for several sizes of its inputs."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.tables import Table
from syno.inference.compiled_network import CompiledNetwork

Inputs = tuple[torch.Tensor, ...]
MOST_SIZES = 1000
# Of a network: the sizes of its inputs, without a batch that may have any size.
_Key = tuple[tuple[int, ...], ...]
# torch.export traces in one thread only, and what others call meanwhile may get into its graph.
_tracing = threading.RLock()


class ResizableNetwork(nn.Module):
    """What `syno.compile` returns for several sizes: a `CompiledNetwork` for each.

    The first call with inputs of another size compiles the network for it, and takes as long as
    `syno.compile` does. Each has weights of its own. Of more sizes than it keeps, the one that was
    not called for longest is dropped.
    """

    def __init__(
        self, compile_for: Callable[[Inputs], CompiledNetwork], inputs: Inputs, most: int
    ) -> None:
        super().__init__()
        self._compile_for = compile_for
        self._most = most
        first = compile_for(inputs)
        self._arguments = first.arguments
        self._kept = collections.OrderedDict({self._key(inputs): first})
        self.eval()

    @property
    def sizes(self) -> list[_Key]:
        """Of the inputs that it has a compiled network for, the one called last at the end.

        Without the batch, where that may have any size.
        """
        with _tracing:
            return list(self._kept)

    def forward(self, *inputs: torch.Tensor) -> object:
        """What the network computes. UserError for inputs that it cannot be compiled for."""
        return self._of(inputs)(*inputs)

    def layer_seconds(self, *inputs: torch.Tensor) -> float:
        """As `CompiledNetwork.layer_seconds`."""
        return self._of(inputs).layer_seconds(*inputs)

    def report(self) -> Table:
        """What became a kernel, and what stays PyTorch, for the size that was called last."""
        return self._last().report()

    def train(self, mode: bool = True) -> ResizableNetwork:
        """It stays in evaluation mode. UserError for training mode."""
        self._last().train(mode)  # which says why
        super().train(False)
        return self

    def _last(self) -> CompiledNetwork:
        with _tracing:
            return next(reversed(self._kept.values()))

    def _of(self, inputs: Inputs) -> CompiledNetwork:
        with _tracing:  # waits while another thread compiles
            if torch.compiler.is_compiling():
                raise UserError(
                    "a network that is compiled for several sizes cannot be traced\n"
                    "  what to do: syno.compile(net, example), which is for one size"
                )
            if not self._fits(inputs):
                return self._last()  # whose call says what is wrong
            key = self._key(inputs)
            found = self._kept.get(key) or self._made(inputs)
            self._kept[key] = found
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return found

    def _fits(self, inputs: tuple[Any, ...]) -> bool:
        """Whether arguments are of the right number, kind and rank."""
        return len(inputs) == len(self._arguments) and all(
            isinstance(x, torch.Tensor)
            and argument.is_kind_of(x)
            and x.dim() == len(argument.shape)
            for x, argument in zip(inputs, self._arguments, strict=True)
        )

    def _key(self, inputs: Inputs) -> _Key:
        return tuple(
            tuple(x.shape[1:] if argument.any_batch else x.shape)
            for x, argument in zip(inputs, self._arguments, strict=True)
        )

    def _made(self, inputs: Inputs) -> CompiledNetwork:
        with torch.inference_mode(False), torch.no_grad():
            try:
                return self._compile_for(self._examples(inputs))
            except UserError as error:
                raise UserError(
                    "the network cannot be compiled for inputs of the sizes "
                    f"{', '.join(str(list(x.shape)) for x in inputs)}: {error}"
                ) from error

    def _examples(self, inputs: Inputs) -> Inputs:
        """Copies of inputs; of two samples where there are fewer, which torch.export needs to see
        that a batch may have any size."""
        batched = [argument.any_batch for argument in self._arguments]
        pairs = list(zip(inputs, batched, strict=True))
        few = all(len(x) < 2 for x, is_batched in pairs if is_batched)
        return tuple(
            x.new_zeros(2, *x.shape[1:]) if is_batched and few else x.clone()
            for x, is_batched in pairs
        )
