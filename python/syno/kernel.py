"""Kernels: the emitted source of an operator as a torch module. Needs torch."""

from __future__ import annotations

import copy
import hashlib
import linecache
import sys
import types
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from syno._errors import InternalError
from syno.initial_scales import Reference, scale_weights

_CLASS = "SynoOperator"
_UNIT = Reference()


def load_kernel(source: str, *, keep: bool = True) -> type[nn.Module]:
    """The class `SynoOperator` that `source` defines.

    The module it lives in is named by the content, so equal sources share one class, and
    tracebacks show its lines. keep=False makes a class for one use, which stays nowhere: checks
    of thousands of operators would fill the memory.
    """
    name = f"syno_kernel_{source_hash(source)[:32]}"
    module = sys.modules.get(name) if keep else None
    if module is None:
        filename = f"<{name}>"
        module = types.ModuleType(name)
        exec(compile(source, filename, "exec"), module.__dict__)
        if keep:
            lines = source.splitlines(keepends=True)
            linecache.cache[filename] = (len(source), None, lines, filename)
            sys.modules[name] = module
    kernel = getattr(module, _CLASS, None)
    if not (isinstance(kernel, type) and issubclass(kernel, nn.Module)):
        raise InternalError(f"the emitted source defines no nn.Module named {_CLASS}:\n{source}")
    return kernel


def source_hash(source: str) -> str:
    """SHA-256 of emitted source, 64 hexadecimal digits: the name a verification knows it by."""
    return hashlib.sha256(source.encode()).hexdigest()


class KernelPack(nn.Module):
    """An operator under one binding, ready to take the place of a layer.

    operator: what it computes; binding: the size of every variable; plan, fold_weights: by which
    plan, see `Operator.source`; kernel: the emitted module, whose parameters are the operator's
    weights; source_hash: of the emitted source.
    reference: what its first weights and their rates are scaled like (initial_scales.py): without
    one, for results of variance 1 on data of variance 1. None leaves them as the source draws them.
    It travels (pickle, torch.save) as the operator's text, never as code.
    """

    def __init__(
        self,
        operator: Any,
        binding: Mapping[str, int],
        plan: int = 1,
        fold_weights: bool = False,
        reference: Reference | None = _UNIT,
    ) -> None:
        super().__init__()
        self.operator = operator
        self.binding = dict(binding)
        self.plan = plan
        self.fold_weights = fold_weights
        self.reference = reference
        source = operator.source(self.binding, plan=plan, fold_weights=fold_weights)
        self.source_hash = source_hash(source)
        self.kernel = load_kernel(source)()
        if reference is not None:
            chosen = operator.numbered_plan(self.binding, plan, fold_weights=fold_weights)
            scale_weights(self.kernel, operator, self.binding, chosen.fan_in, reference)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies the operator to x, a tensor of the input shape with any batch size."""
        return self.kernel(x)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """As torch's, for weights of five dimensions, too.

        `net.to(memory_format=torch.channels_last)` raises on those, whatever network they are in;
        here they keep their order and take type and device.
        """

        def applied(tensor: torch.Tensor) -> torch.Tensor:
            try:
                return fn(tensor)
            except RuntimeError:
                if tensor.dim() != 5:
                    raise
                return fn(tensor.flatten()).unflatten(0, tensor.shape)

        return super()._apply(applied, recurse)

    def extra_repr(self) -> str:
        """The binding, for printing a network."""
        return ", ".join(f"{name}={value}" for name, value in sorted(self.binding.items()))

    def __deepcopy__(self, memo: dict[int, Any]) -> KernelPack:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"weights": self.state_dict(), "training": self.training}
        settings = (self.plan, self.fold_weights, self.reference)
        return KernelPack, (self.operator, self.binding, *settings), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.load_state_dict(state["weights"])
        self.train(state["training"])
