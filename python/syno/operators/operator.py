"""Operators: linear operators with learned weights, as values, and the modules that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno import _core
from syno._util.errors import UserError
from syno.operators.specification import Binding, Specification
from syno.operators.value import OperatorValue
from syno.operators.weights import WeightNames

if TYPE_CHECKING:
    # As below: `layer` needs torch, which an operator needs only when it makes a module.
    from syno.operators.initialization import Reference
    from syno.operators.layer import Layer


class Operator(OperatorValue):
    """A complete operator in canonical form; equality and hash depend only on its content.

    An operator is stored and exchanged as text. It may have the specification under which it was
    found: this completes bindings with the values of its variables and defines `key`, `macs()` and
    `params()`. The specification is not a part of the operator and does not affect equality.
    """

    __slots__ = ()

    def kernel_pack(
        self,
        binding: Binding | str,
        *,
        plan: int = 1,
        fold_weights: bool = False,
        reference: Reference | None = None,
    ) -> Layer:
        """Return a new PyTorch module that computes the operator under a binding.

        Args:
            binding: values of the variables.
            plan, fold_weights: as in `source`; the parameters are always those of the operator.
            reference: the layer whose scale the initial weights get, as in `syno.replace`. Default:
                outputs have variance 1 for inputs of variance 1.
        """
        from syno.operators.initialization import Reference
        from syno.operators.layer import Layer

        binding = self.complete(binding)
        return Layer(self, binding, plan, fold_weights, reference or Reference())

    def construct_kernel_packs(self) -> list[Layer]:
        """Return a PyTorch module for each layer of the specification, in the order of bindings.

        Layers that the operator does not fit are omitted.

        Raises:
            UserError: the operator fits no layer.
        """
        specification = self._layers("construct_kernel_packs()")
        packs = []
        misfits = []
        for binding, count in zip(
            specification.full_bindings, specification.multiplicities, strict=True
        ):
            try:
                packs += [self.kernel_pack(binding) for _ in range(count)]
            except UserError as error:
                misfits.append(f"  {binding}: {str(error).splitlines()[0]}")
        if not packs:
            raise UserError(
                "\n".join(["the operator fits no layer of its specification", *misfits])
            )
        return packs

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.text, self._specification, self._names)


def _restored(
    text: str, specification: Specification | None, names: WeightNames | None
) -> Operator:
    """Restore a pickled operator."""
    return Operator(_core.Operator.parse(text), specification, names=names)
