"""Kernels: the emitted source of an operator as a torch module. Needs torch."""

from __future__ import annotations

import collections
import copy
import hashlib
import linecache
import sys
import threading
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypedDict

import torch
from torch import nn

from syno._util.errors import InternalError
from syno.operators.initialization import Reference, scale_weights

if TYPE_CHECKING:
    from syno.operators.operator import Operator

_CLASS = "SynoOperator"
_UNIT = Reference()
# So many of the classes loaded last stay, used or not: the next trial may need them again.
_MOST_UNUSED = 64

_lock = threading.RLock()  # `_forget` may run inside, whenever garbage is collected
_classes: weakref.WeakValueDictionary[str, type[nn.Module]] = weakref.WeakValueDictionary()
_last_used: collections.OrderedDict[str, type[nn.Module]] = collections.OrderedDict()


def load_kernel(source: str, *, keep: bool = True) -> type[nn.Module]:
    """The class `SynoOperator` that `source` defines.

    The module it lives in is named by the content, so equal sources share one class, and
    tracebacks show its lines. Module and lines stay while the class is in use, and those of the 64
    classes loaded last; then they go. keep=False makes a class for one use, which stays nowhere.
    """
    name = f"syno_kernel_{source_hash(source)[:32]}"
    if not keep:
        return _defined(name, source)
    with _lock:
        kernel = _classes.get(name)
    if kernel is None:
        # Without the lock: the source imports, and imports take locks of their own.
        made = _defined(name, source)
        with _lock:
            kernel = _classes.get(name)
            if kernel is None:
                _show(name, source, made)
                kernel = _classes[name] = made
    with _lock:
        _last_used[name] = kernel
        _last_used.move_to_end(name)
        if len(_last_used) > _MOST_UNUSED:
            _last_used.popitem(last=False)
    return kernel


def _defined(name: str, source: str) -> type[nn.Module]:
    namespace: dict[str, object] = {"__name__": name}
    exec(compile(source, _filename(name), "exec"), namespace)
    kernel = namespace.get(_CLASS)
    if not (isinstance(kernel, type) and issubclass(kernel, nn.Module)):
        raise InternalError(f"the emitted source defines no nn.Module named {_CLASS}:\n{source}")
    return kernel


class _KernelModule(types.ModuleType):
    """What sys.modules has for a kernel: its names by a weak reference, so that it can go.

    torch.compile and pickle look there.
    """

    def __init__(self, name: str, kernel: type[nn.Module]) -> None:
        super().__init__(name)
        self.__dict__["_kernel"] = weakref.ref(kernel)

    def __getattr__(self, name: str) -> object:
        kernel = self.__dict__["_kernel"]()
        names = {} if kernel is None else {_CLASS: kernel} | kernel.forward.__globals__
        if name not in names:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return names[name]


def _filename(name: str) -> str:
    return f"<{name}>"


class _State(TypedDict):
    """What travels beside the operator."""

    weights: dict[str, torch.Tensor]
    training: bool


def _show(name: str, source: str, kernel: type[nn.Module]) -> None:
    """Lets others find the class and its lines, until nobody uses it."""
    module = _KernelModule(name, kernel)
    filename = _filename(name)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    sys.modules[name] = module
    weakref.finalize(kernel, _forget, name, module).atexit = False


def _forget(name: str, module: types.ModuleType) -> None:
    with _lock:
        if sys.modules.get(name) is module:  # not that of a class made anew from the same source
            del sys.modules[name]
            linecache.cache.pop(_filename(name), None)


def source_hash(source: str) -> str:
    """SHA-256 of emitted source, 64 hexadecimal digits: the name a verification knows it by."""
    return hashlib.sha256(source.encode()).hexdigest()


class Compiled(Protocol):
    """Compiled code that computes what an emitted module computes, with its gradients."""

    def takes(self, x: torch.Tensor, weights: Sequence[torch.Tensor]) -> bool:
        """Whether it computes this call."""

    def __call__(self, x: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """The operator's value."""


class KernelPack(nn.Module):
    """An operator under one binding, ready to take the place of a layer.

    operator: what it computes; binding: the size of every variable; plan, fold_weights: by which
    plan, see `Operator.source`; kernel: the emitted module, whose parameters are the operator's
    weights; source_hash: of the emitted source.
    reference: what its first weights and their rates are scaled like (initial_scales.py): without
    one, for results of variance 1 on data of variance 1. None leaves them as the source draws them.
    compiled: what computes the calls that it takes, while a network is trained with compiled
    kernels, for copies as well; None elsewhere.
    It travels (pickle, torch.save) as the operator's text, never as code.
    """

    compiled: Compiled | None = None

    def __init__(
        self,
        operator: Operator,
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
        if self.compiled is not None:
            # Not `parameters()`, which searches modules and takes longer than the call.
            weights = [w for w in self.kernel._parameters.values() if w is not None]
            if self.compiled.takes(x, weights):
                return self.compiled(x, weights)
        return self.kernel(x)

    def _apply(
        self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
    ) -> KernelPack:
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

    @property
    def named_weights(self) -> dict[str, torch.Tensor]:
        """The weights by their names in the index notation of the operator, indexed as there.

        They are views: `pack.named_weights["a"].copy_(values)` under `torch.no_grad()` sets one.
        """
        return self.operator.weight_names.named([*self.kernel.parameters()])

    def extra_repr(self) -> str:
        """The binding, for printing a network."""
        return ", ".join(f"{name}={value}" for name, value in sorted(self.binding.items()))

    def __deepcopy__(self, memo: dict[int, object]) -> KernelPack:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __reduce__(self) -> tuple[object, ...]:
        state = {"weights": self.state_dict(), "training": self.training}
        settings = (self.plan, self.fold_weights, self.reference)
        return KernelPack, (self.operator, self.binding, *settings), state

    def __setstate__(self, state: _State) -> None:
        self.load_state_dict(state["weights"])
        self.train(state["training"])
