"""PyTorch: eager mode, channels-last memory, and TorchInductor with frozen weights."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments, mapped
from syno._util.network_copy import copy_network
from syno._util.torch_code import with_own_code
from syno.codegen.native import no_compiler
from syno.engines.engine import Engine, Outputs, Prepared
from syno.runs.cache_folder import use_private_compiler_caches


class Eager(Engine):
    """PyTorch in eager mode.

    layout: how images lie in memory.
    """

    def __init__(self, name: str, layout: torch.memory_format) -> None:
        self.name = name
        self._layout = layout

    def prepare(self, net: nn.Module, example: Inputs, threads: int) -> Callable[[], Outputs]:
        """Return the network as it is, with weights and input in the memory layout."""
        if self._layout is not torch.contiguous_format:
            net = copy_network(net)
            if any(each.dim() == 4 for each in arguments(example)):
                net = net.to(memory_format=self._layout)  # type: ignore[call-overload]
                example = mapped(self._laid, example)
        given = arguments(example)
        return Prepared(lambda: _tensors(net(*given)), on=lambda *xs: _tensors(net(*xs)))

    def _laid(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(memory_format=self._layout) if x.dim() == 4 else x


class Inductor(Engine):
    """`torch.compile` with constant weights, which it may fold and reorder."""

    name = "inductor"

    def missing(self) -> str | None:
        """Return None, or that there is no C++ compiler."""
        return no_compiler()

    def prepare(self, net: nn.Module, example: Inputs, threads: int) -> Callable[[], Outputs]:
        """Return the compiled network; compilation takes from seconds to minutes."""
        use_private_compiler_caches()
        from torch._inductor import config

        def call() -> Outputs:
            # Both of the compilation and of all calls: in another mode it would compile again, and
            # then without constant weights. Inference tensors are another kind of input, too.
            with torch.inference_mode(False), torch.no_grad():
                return _tensors(compiled(*given))

        with torch.inference_mode(False):
            # No reset of Dynamo: networks compiled before would be compiled again.
            compiled = torch.compile(with_own_code(copy_network(net)), dynamic=False)
            given = arguments(mapped(torch.clone, example))
        try:
            with config.patch(freezing=True):
                call()
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"TorchInductor cannot compile the network: {error}") from error
        return call


def _tensors(output: object) -> Outputs:
    if isinstance(output, torch.Tensor):
        return output
    several = list(output) if isinstance(output, (tuple, list)) else []
    if not several or not all(isinstance(each, torch.Tensor) for each in several):
        raise UserError(
            "the network does not return tensors\n"
            f"  expected: a tensor, or a tuple of tensors      got: {type(output).__name__}"
        )
    return tuple(several)


ENGINES: dict[str, Engine] = {
    each.name: each
    for each in (
        Eager("eager", torch.contiguous_format),
        Eager("channels-last", torch.channels_last),
        Inductor(),
    )
}
