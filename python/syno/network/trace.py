"""Tracing a network: the shapes at each layer, and the total MACs.

A trace runs on shapes only (fake tensors of PyTorch, as on the CPU) and takes a fraction of a
second for any network. A network that depends on values runs once with values instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from syno._util.errors import UserError

Shapes = tuple[torch.Size, torch.Size]

# The settings of attention belong to the process, so that only one thread may change them.
_turn = threading.RLock()


@dataclass(frozen=True)
class Trace:
    """calls: (input, output) shapes of each call of a layer, by the layer's id.

    batch: samples of the example.
    macs: MACs of the whole network for one sample, or for the batch of the example if they are not
        divisible by it: convolutions, linear layers, matrix products, attention.
    unbatched: ids of layers whose first dimension does not grow with the batch.
    directed: ids of layers that are called with more than their input, such as an output size.
    """

    calls: dict[int, list[Shapes]] = field(default_factory=dict)
    batch: int = 1
    macs: int = 0
    unbatched: frozenset[int] = frozenset()
    directed: frozenset[int] = frozenset()


def trace(net: nn.Module, layers: Sequence[nn.Module], example_input: object) -> Trace:
    """Run a network once in evaluation mode, and record the shapes at `layers`.

    Args:
        net: the network.
        layers: the layers to trace.
        example_input: a tensor, or a tuple of the arguments of the network. For most networks, the
            values do not matter and the tensors may be on the meta device.

    Raises:
        UserError: the network fails on the example input.
    """
    inputs = example_input if isinstance(example_input, tuple) else (example_input,)
    if not all(isinstance(x, torch.Tensor) for x in inputs):
        raise UserError("'example_input' is a tensor, or a tuple of the network's arguments")
    if any(x.numel() == 0 for x in inputs):
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        raise UserError(
            f"'example_input' is empty\n  expected: at least one sample      got: {shapes}"
        )
    batch = int(inputs[0].shape[0]) if inputs and inputs[0].dim() else 1
    found = _try_on_shapes(net, layers, batch, inputs)
    if found is None:
        return _run(net, layers, batch, inputs)
    return replace(found, unbatched=_unbatched(net, layers, inputs, found))


def _try_on_shapes(
    net: nn.Module, layers: Sequence[nn.Module], batch: int, inputs: tuple[torch.Tensor, ...]
) -> Trace | None:
    """None for a network that shapes alone do not lead through, for whatever reason.

    A run with values decides then what is wrong, if anything, and tells it.
    """
    try:
        return _watched(net, layers, batch, lambda: _run_on_shapes(net, inputs))
    except Exception:
        return None


def _run(
    net: nn.Module, layers: Sequence[nn.Module], batch: int, inputs: tuple[torch.Tensor, ...]
) -> Trace:
    try:
        return _watched(net, layers, batch, lambda: net(*inputs))
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError) as error:
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        raise UserError(
            f"the network {type(net).__name__} fails on the example input: {error}\n"
            f"  in example_input of shape {shapes}"
        ) from error


def _unbatched(
    net: nn.Module, layers: Sequence[nn.Module], inputs: tuple[torch.Tensor, ...], found: Trace
) -> frozenset[int]:
    """Layers of a sequence whose first dimension is not the batch, as in [T, N, C].

    Seen by a batch of twice the size, on shapes alone; none where the network does not take it.
    """
    sequences = [
        layer
        for layer in layers
        if isinstance(layer, nn.Linear) and len(found.calls.get(id(layer), [((), ())])[0][0]) > 2
    ]
    if not sequences or any(x.dim() == 0 or x.shape[0] != found.batch for x in inputs):
        return frozenset()
    doubled = tuple(
        torch.empty_like(x, device="meta").repeat(2, *[1] * (x.dim() - 1)) for x in inputs
    )
    second = _try_on_shapes(net, sequences, 1, doubled)
    if second is None:
        return frozenset()  # a network for one size of batch
    twice = second.calls
    return frozenset(
        id(layer)
        for layer in sequences
        if [2 * inside[0] for inside, _ in found.calls[id(layer)]]
        != [inside[0] for inside, _ in twice.get(id(layer), [])]
    )


def _run_on_shapes(net: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    def like(tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty(tensor.shape, dtype=tensor.dtype)

    tensors = [*net.named_parameters(), *net.named_buffers()]
    with FakeTensorMode():
        state = {name: like(tensor) for name, tensor in tensors}
        torch.func.functional_call(net, state, tuple(like(x) for x in inputs))


def _watched(
    net: nn.Module, layers: Sequence[nn.Module], batch: int, run: Callable[[], object]
) -> Trace:
    calls: dict[int, list[Shapes]] = {}
    directed: set[int] = set()

    def note(
        layer: nn.Module,
        args: tuple[torch.Tensor, ...],
        named: dict[str, object],
        output: torch.Tensor,
    ) -> None:
        calls.setdefault(id(layer), []).append((args[0].shape, output.shape))
        if len(args) > 1 or named:
            directed.add(id(layer))

    with _turn, ExitStack() as stack:
        for layer in layers:
            stack.callback(layer.register_forward_hook(note, with_kwargs=True).remove)
        stack.enter_context(_evaluating(net))
        stack.enter_context(torch.no_grad())
        stack.enter_context(_plain_attention())
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        counter = stack.enter_context(_Counter())
        run()
    macs = int(counter.get_total_flops()) // 2
    one = macs // batch if batch and macs % batch == 0 else macs
    return Trace(calls, batch, one, directed=frozenset(directed))


class _NoModules:
    """In place of torch's tracker, which hooks into all modules, also those that other threads run:
    gradients there fail then."""

    parents = ("Global",)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _Counter(FlopCounterMode):
    """Counts for the whole network alone."""

    def __init__(self) -> None:
        super().__init__(display=False)
        self.mod_tracker = _NoModules()  # type: ignore[assignment]  # all that is used of it


@contextmanager
def _plain_attention() -> Iterator[None]:
    """nn.MultiheadAttention as products of matrices: its fused forms are calls without a count."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def _evaluating(net: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in net.modules()}
    net.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
