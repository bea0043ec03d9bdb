"""What `syno.compile` returns: a network in which layers are compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import fx, nn

from syno._util.errors import UserError
from syno._util.tables import Table
from syno.inference.arguments import Argument, check_call, check_several, with_one_batch
from syno.inference.compiled_region import Fast, timed


class ReportRow(NamedTuple):
    """A layer of the report, or what is none. kernel: whether it is one; epilogue: what is part of
    the kernel behind the operator; reason: why a layer stays PyTorch; region: whether C++ of a
    region computes it in calls that nothing observes."""

    name: str
    kind: str
    kernel: bool
    epilogue: str
    reason: str
    region: bool = False

    @property
    def by(self) -> str:
        """What computes it."""
        return "kernel" if self.kernel else "C++" if self.region else "PyTorch"


class CompiledNetwork(nn.Module):
    """What `syno.compile` returns: kernels in the place of layers, and the rest in PyTorch.

    It is for inference: it has no parameters to train, and computes as in evaluation mode.
    arguments: what it takes.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        rows: Sequence[ReportRow],
        arguments: Sequence[Argument],
        readers: Sequence[frozenset[int]] | None,
        fast: Fast | None,
        squeezed: str,
    ) -> None:
        super().__init__()
        self.network = graph
        self.rows = tuple(rows)
        self.arguments = tuple(arguments)
        self._readers = readers  # as `with_one_batch` takes them
        self._several = sum(argument.any_batch for argument in arguments) > 1
        self._fast = fast
        self._squeezed = squeezed
        self.eval()

    def forward(self, *inputs: torch.Tensor) -> object:
        """What the network computes. UserError for inputs of another number, shape or kind."""
        check_call(inputs, self.arguments)
        if self._several:
            inputs = with_one_batch(inputs, self.arguments, self._readers)
        if self._squeezed:
            check_several(inputs, self.arguments, self._squeezed)
        # What is traced is the network that everybody sees.
        if torch.compiler.is_compiling() or self._fast is None or not self._fast.takes(inputs):
            return self.network(*inputs)
        return self._fast(*inputs)

    def layer_seconds(self, *inputs: torch.Tensor) -> float:
        """Compute the network; the seconds that this call took in the kernels of its layers.

        Several threads may measure calls of one network at the same time.

        Raises:
            UserError: the call is one whose kernels are called one by one, which are not timed.
        """
        with timed() as timing:
            self(*inputs)
        if self._fast is not None and not timing.calls:
            raise UserError(
                "the seconds in layers cannot be measured in this call\n"
                "  expected: samples, no hooks in the network, and no tensor that requires a "
                "gradient\n"
                "  what to do: call it under torch.inference_mode(), without hooks"
            )
        return timing.seconds

    def train(self, mode: bool = True) -> CompiledNetwork:
        """It stays in evaluation mode: there is nothing to train. UserError for training mode."""
        if mode:
            raise UserError(
                "a compiled network cannot be trained\n"
                "  what to do: train the network, and compile it again"
            )
        super().train(False)
        return self

    def report(self) -> Table:
        """What became a kernel, and what stays PyTorch, and why."""
        return Table.of(
            self.rows,
            ("layer", lambda row: row.name),
            ("kind", lambda row: row.kind),
            ("computed by", lambda row: row.by),
            ("with", lambda row: row.epilogue),
            ("because~", lambda row: row.reason),
        ).without_empty()
