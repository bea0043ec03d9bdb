"""A network in INT8 as a module of PyTorch that calls its C++."""

from __future__ import annotations

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.tables import Table
from syno._util.trial_calls import difference, tensors_of
from syno.inference.arguments import Argument, check_call
from syno.inference.library.built import built
from syno.inference.library.load import NetworkLibrary
from syno.inference.precision import INT8, TOLERANCES
from syno.inference.quantization.network import QuantizedNetwork


class CompiledQuantizedNetwork(nn.Module):
    """What `syno.compile` returns for a quantized network: one call of C++, with PyTorch's threads.

    It is for inference: results have no gradient, and it cannot be traced.
    """

    def __init__(self, quantized: QuantizedNetwork, arguments: tuple[Argument, ...]) -> None:
        super().__init__()
        self.quantized = quantized
        self._arguments = arguments
        self._library: NetworkLibrary | None = None
        self.eval()

    def forward(self, *inputs: torch.Tensor) -> object:
        """What the network computes. UserError for inputs of another number, shape or kind."""
        check_call(inputs, self._arguments)
        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            raise UserError(
                "a compiled network in INT8 cannot be traced\n"
                "  expected: a call      what to do: export the network in the format cpp-network"
            )
        arrays = [x.detach().numpy() for x in inputs]
        found = self.library()(*arrays, threads=torch.get_num_threads())
        if isinstance(found, list):
            return tuple(map(torch.from_numpy, found))
        return torch.from_numpy(found)

    def library(self) -> NetworkLibrary:
        """Its C++, which is compiled when it is first asked for, or found in the cache."""
        if self._library is None:
            self._library = built(self.quantized.graph, INT8)
        return self._library

    def report(self) -> Table:
        """That of the quantized network."""
        return self.quantized.report()

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_library": None}


def compile_quantized(
    net: QuantizedNetwork, inputs: tuple[torch.Tensor, ...], *, verify: bool
) -> CompiledQuantizedNetwork:
    """`syno.compile` of a quantized network."""
    made = CompiledQuantizedNetwork(net, tuple(Argument.of(x, True) for x in inputs))
    made.library()
    if verify:
        with torch.no_grad():
            pairs = zip(tensors_of(made(*inputs)), tensors_of(net(*inputs)), strict=True)
            worst = max(difference(found, expected) for found, expected in pairs)
        if worst > TOLERANCES[INT8]:
            raise UserError(
                "the compiled network differs from the quantized network: "
                f"by {worst:.1e} of the largest output\n"
                f"  expected: at most {TOLERANCES[INT8]:.0e}\n"
                "  what to do: report this, with the network; verify=False skips the comparison"
            )
    return made
