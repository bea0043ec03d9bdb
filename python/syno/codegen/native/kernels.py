"""Networks whose operators run as compiled code while they are trained. Needs torch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from syno import _core
from syno.codegen.native.autograd import apply
from syno.codegen.native.compiler import TRAINING_FLAGS
from syno.codegen.native.training import TrainingFunction, compile_trainings
from syno.operators.kernel import KernelPack

_NAME = "syno_operator"
# Integers of so small a range that every sum is exact in float32.
_LARGEST = 2
# Batch sizes of the comparison with the emitted module: full blocks, and blocks that are not.
_BATCHES = (1, 5)


class WrongKernelError(Exception):
    """Compiled code whose value or gradients are not those of the emitted module."""


@contextmanager
def compiled_kernels(net: nn.Module) -> Iterator[int]:
    """Run the operators of a network as compiled code, with gradients, inside of the block.

    Copies of the network that are made in the block run the same code until the block ends.

    Calls that the compiled code does not take (another device or precision, tracing) run the
    emitted module, as do operators with pre-multiplied weights. Under autocast to bfloat16, the
    code computes in float32, and only its input and its value are in bfloat16. All operators are
    compiled in one translation unit, and each is compared with its emitted module on integers
    before it is used.

    Args:
        net: the network. Its parameters remain those of the emitted modules.

    Yields:
        The number of operators that were compiled.

    Raises:
        WrongKernelError: compiled code differs from the emitted module.
        UserError: there is no C++ compiler.
    """
    packs, kinds = _packs(net)
    if not kinds:
        yield 0
        return
    functions = dict(zip(kinds, _compiled(list(kinds.values())), strict=True))
    for kind, pack in kinds.items():
        _check(pack, functions[kind])
    compiled = {kind: CompiledKernel(function) for kind, function in functions.items()}
    try:
        for pack in packs:
            pack.compiled = compiled[_kind(pack)]
        yield len(kinds)
    finally:
        for pack in packs:
            pack.compiled = None
        for kernel in compiled.values():  # copies of the network have it, too
            kernel.close()


def compile_kernels(net: nn.Module) -> None:
    """Compile what `compiled_kernels` loads, so that it finds it in the cache.

    Raises:
        UserError: there is no C++ compiler.
    """
    _, kinds = _packs(net)
    if kinds:
        _compiled(list(kinds.values()))


def _packs(net: nn.Module) -> tuple[list[KernelPack], dict[tuple[str, str, int], KernelPack]]:
    """The operators of a network that are compiled, and one of each kind."""
    packs = [
        module
        for module in net.modules()
        if isinstance(module, KernelPack) and not module.fold_weights
    ]
    kinds: dict[tuple[str, str, int], KernelPack] = {}
    for pack in packs:
        kinds.setdefault(_kind(pack), pack)
    return packs, kinds


class CompiledKernel:
    """The compiled code of an operator in a network."""

    def __init__(self, function: TrainingFunction) -> None:
        self._function = function
        self._closed = False

    def close(self) -> None:
        """Take no more calls."""
        self._closed = True

    def __deepcopy__(self, memo: dict[int, object]) -> CompiledKernel:
        return self  # copies of a network share code, but not weights

    def takes(self, x: torch.Tensor, weights: Sequence[torch.Tensor]) -> bool:
        """Return whether the code computes this call."""
        if self._closed:
            return False
        shape = self._function.input_shape
        first = 1 if self._function.batched else 0
        return (
            tuple(x.shape[first:]) == shape[first:]
            and x.dim() == len(shape)
            and x.dtype in ((torch.float32, torch.bfloat16) if _autocast() else (torch.float32,))
            and not torch.compiler.is_compiling()
            and not torch.jit.is_tracing()
            and all(tensor.device.type == "cpu" for tensor in (x, *weights))
            and all(weight.dtype == torch.float32 for weight in weights)
        )

    def __call__(self, x: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """Apply the operator."""
        dtype = _autocast()
        if dtype is None:
            return apply(self._function, x, weights)
        with torch.autocast("cpu", enabled=False):
            return apply(self._function, x, weights, dtype)


def _autocast() -> torch.dtype | None:
    """The type of autocast on the CPU; None outside of it."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None


def _kind(pack: KernelPack) -> tuple[str, str, int]:
    return pack.operator.text, json.dumps(pack.binding, sort_keys=True), pack.plan


def _compiled(packs: Sequence[KernelPack]) -> list[TrainingFunction]:
    sources = []
    for number, pack in enumerate(packs):
        plan = pack.operator.numbered_plan(pack.binding, pack.plan, fold_weights=False)
        name = f"{_NAME}_{number}"
        source, manifest = _core.emit_training(plan, name=name, with_runtime=False)
        sources.append((name, source, json.loads(manifest)))
    return compile_trainings(sources, flags=TRAINING_FLAGS)


@torch.enable_grad()  # type: ignore[untyped-decorator]
@torch.autocast("cpu", enabled=False)  # type: ignore[untyped-decorator]
def _check(pack: KernelPack, function: TrainingFunction) -> None:
    """Compare value and gradients with those of the emitted module, on integers in float32."""
    random = torch.Generator().manual_seed(0)

    def drawn(shape: Sequence[int]) -> torch.Tensor:
        whole = torch.randint(-_LARGEST, _LARGEST + 1, tuple(shape), generator=random)
        return whole.to(torch.float32).requires_grad_()

    names = [name for name, _ in pack.kernel.named_parameters()]
    for batch in _BATCHES if function.batched else (1,):
        x = drawn((batch, *function.input_shape[1:]) if function.batched else function.input_shape)
        weights = [drawn(shape) for shape in function.weight_shapes]
        given = dict(zip(names, weights, strict=True))
        emitted = torch.func.functional_call(pack.kernel, given, (x,))
        compiled = apply(function, x, weights)
        dy = drawn(emitted.shape).detach()
        wanted = torch.autograd.grad(
            emitted, [x, *weights], dy, allow_unused=True, materialize_grads=True
        )
        found = torch.autograd.grad(compiled, [x, *weights], dy)
        results = [("the value", emitted, compiled)]
        for name, one, other in zip(["x", *names], wanted, found, strict=True):
            results.append((f"the gradient of {name}", one, other))
        for what, one, other in results:
            # Libraries may compute convolutions of integers with fractions.
            if not torch.equal(one.round(), other.round()):
                raise WrongKernelError(
                    f"{what} in the compiled code differs from the emitted module\n"
                    f"  in batch size {batch}, binding {pack.binding}\n"
                    f"  of operator\n{pack.operator.text}"
                )
