"""An operator with packed weights, for inputs of any size that its variables allow."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from syno._util.arguments import checked, instance, optional, text
from syno._util.errors import UserError
from syno._util.tensors import dense
from syno.codegen.torch_op.kernel import Kernel
from syno.operators.operator import Operator
from syno.operators.resizing import resized
from syno.operators.specification import Binding


class ResizableLayer(nn.Module):
    """An operator with packed weights in a network, for inputs of any size. For inference.

        layer = ResizableLayer(operator, binding, [weight], epilogue="relu")
        y = layer(x)

    Inputs of another size than that of the binding take a kernel of their own, which is made when
    the first one comes, as `missing` says (see `Kernel.of`); a graph of torch.compile is traced
    again for them.
    """

    @checked(operator=instance(Operator), channel_values=optional(dense), missing=text)
    def __init__(
        self,
        operator: Operator,
        binding: Binding | str,
        weights: Sequence[torch.Tensor] | Mapping[str, torch.Tensor],
        *,
        channel_values: torch.Tensor | None = None,
        missing: str = "compile",
        epilogue: str = "",
        channel: int = 1,
        input_order: Sequence[int] | None = None,
        output_order: Sequence[int] | None = None,
        plan: int = 1,
        fold_weights: bool = True,
    ) -> None:
        """Compile the kernel for the binding, or load it.

        weights: by name, or with the shapes of `Operator.weight_shapes`; channel_values: bias and
        scale, as `Kernel.__call__` takes them; missing: for all sizes but that of the binding. The
        other arguments are those of `Kernel.of`.
        """
        super().__init__()
        weights = operator.weight_names.arranged(weights)
        self.operator = operator = operator.canonical
        self.binding = operator.complete(binding)
        self.missing = missing
        self._kernel_of = functools.partial(
            Kernel.of,
            operator,
            epilogue=epilogue,
            channel=channel,
            input_order=input_order,
            output_order=output_order,
            fold_weights=fold_weights,
        )
        for number, weight in enumerate(weights):
            dense(f"weight {number}", weight)
            # Not in the state: weights that came from one would not be packed.
            self.register_buffer(f"weight_{number}", weight.detach(), persistent=False)
        self.register_buffer("channel_values", channel_values, persistent=False)
        self._count = len(weights)
        self._first = 0 if operator.batch is None else 1
        self._kernels: list[tuple[Kernel, torch.Tensor]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._keep(self._kernel_of(self.binding, plan=plan))

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """y of `Kernel.__call__`, for x of any size that the operator allows with its weights."""
        # A range fixes a symbolic extent, so that a graph is traced again for another one.
        size = [len(range(extent)) for extent in x.shape[self._first :]]
        kernel, packed = self._kernels[self._number(*size)]
        return kernel(x, packed, self.channel_values, residual)

    @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
    def _number(self, *size: int) -> int:
        """Which of the kernels takes x of that size; it is made if there is none yet."""
        if size not in self._numbers:
            if torch.compiler.is_exporting():
                raise UserError(
                    f"the layer has no kernel for inputs of size {list(size)} yet\n"
                    "  what to do: call it with an input of this size before torch.export"
                )
            binding = resized(self.operator, self.binding, size)
            # The plan's number belongs to the binding that it was chosen for.
            self._keep(self._kernel_of(binding, missing=self.missing))
        return self._numbers[size]

    def _keep(self, kernel: Kernel) -> None:
        weights = [self.get_buffer(f"weight_{number}") for number in range(self._count)]
        shape = kernel.record.shapes.input
        size = shape[1:] if kernel.record.batched else shape
        self._numbers[size] = len(self._kernels)
        self._kernels.append((kernel, kernel.pack(weights)))
