"""Networks whose operators run as compiled code while they are trained. Needs torch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from syno import _core
from syno.codegen.native.compiler import TRAINING_FLAGS
from syno.codegen.native.training import TrainingKernel, compile_trainings
from syno.operators.layer import Layer

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
    layers, kinds = _layers(net)
    if not kinds:
        yield 0
        return
    compiled = dict(zip(kinds, _compiled(list(kinds.values())), strict=True))
    for kind, layer in kinds.items():
        _check(layer, compiled[kind])
    try:
        for layer in layers:
            layer.compiled = compiled[_kind(layer)]
        yield len(kinds)
    finally:
        for layer in layers:
            layer.compiled = None
        for kernel in compiled.values():  # copies of the network have it, too
            kernel.close()


def compile_kernels(net: nn.Module) -> None:
    """Compile what `compiled_kernels` loads, so that it finds it in the cache.

    Raises:
        UserError: there is no C++ compiler.
    """
    _, kinds = _layers(net)
    if kinds:
        _compiled(list(kinds.values()))


def _layers(net: nn.Module) -> tuple[list[Layer], dict[tuple[str, str, int], Layer]]:
    """The operators of a network that are compiled, and one of each kind."""
    layers = [
        module for module in net.modules() if isinstance(module, Layer) and not module.fold_weights
    ]
    kinds: dict[tuple[str, str, int], Layer] = {}
    for layer in layers:
        kinds.setdefault(_kind(layer), layer)
    return layers, kinds


def _kind(layer: Layer) -> tuple[str, str, int]:
    return layer.operator.text, json.dumps(layer.binding, sort_keys=True), layer.plan


def _compiled(layers: Sequence[Layer]) -> list[TrainingKernel]:
    sources = []
    for number, layer in enumerate(layers):
        plan = layer.operator.numbered_plan(layer.binding, layer.plan, fold_weights=False)
        name = f"{_NAME}_{number}"
        source, manifest = _core.emit_training(plan, name=name, with_runtime=False)
        sources.append((name, source, json.loads(manifest)))
    return compile_trainings(sources, flags=TRAINING_FLAGS)


@torch.enable_grad()  # type: ignore[untyped-decorator]
@torch.autocast("cpu", enabled=False)  # type: ignore[untyped-decorator]
def _check(layer: Layer, kernel: TrainingKernel) -> None:
    """Compare value and gradients with those of the emitted module, on integers in float32."""
    random = torch.Generator().manual_seed(0)

    def drawn(shape: Sequence[int]) -> torch.Tensor:
        whole = torch.randint(-_LARGEST, _LARGEST + 1, tuple(shape), generator=random)
        return whole.to(torch.float32).requires_grad_()

    names = [name for name, _ in layer.kernel.named_parameters()]
    for batch in _BATCHES if kernel.batched else (1,):
        x = drawn((batch, *kernel.input_shape[1:]) if kernel.batched else kernel.input_shape)
        weights = [drawn(shape) for shape in kernel.weight_shapes]
        given = dict(zip(names, weights, strict=True))
        emitted = torch.func.functional_call(layer.kernel, given, (x,))
        compiled = kernel(x, weights)
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
                    f"  in batch size {batch}, binding {layer.binding}\n"
                    f"  of operator\n{layer.operator.text}"
                )
