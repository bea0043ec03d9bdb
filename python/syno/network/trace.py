"""Tracing a network: the shapes at each layer, and the total MACs.

A trace runs on shapes only (fake tensors of PyTorch, as on the CPU) and takes a fraction of a
second for any network. A network that depends on values runs once with values instead. What runs is
a copy: a network may change its buffers, make modules or keep results in its first run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from syno._util.errors import UserError
from syno._util.network_copy import Copies, copy_network

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
    unusual: why a layer that is called otherwise than with a tensor for a tensor stays, by its id.
    operations: those of torch in their order, with the shapes of their results.
    on_values: whether the network depends on values.
    """

    calls: dict[int, list[Shapes]] = field(default_factory=dict)
    batch: int = 1
    macs: int = 0
    unbatched: frozenset[int] = frozenset()
    unusual: dict[int, str] = field(default_factory=dict)
    operations: tuple[str, ...] = ()
    on_values: bool = False


# Makes of a copy what runs: copies of objects of the network by their ids -> the modules to watch,
# by the id that each has in the trace.
Watched = Callable[[Copies], dict[int, nn.Module]]


def trace(net: nn.Module, layers: Sequence[nn.Module], example_input: object) -> Trace:
    """Run a copy of a network once in evaluation mode, and record the shapes at `layers`.

    Args:
        net: the network, which stays as it is.
        layers: the layers to trace.
        example_input: a tensor, or a tuple of the arguments of the network. For most networks, the
            values do not matter and the tensors may be on the meta device.

    Raises:
        UserError: the network fails on the example input.
    """
    inputs = checked_example(example_input)

    def watched(copies: Copies) -> dict[int, nn.Module]:
        return {id(layer): copies[id(layer)] for layer in layers if id(layer) in copies}

    found = _try_on_shapes(net, watched, inputs)
    if found is None:
        return _run(net, watched, inputs)
    return replace(found, unbatched=_unbatched(net, layers, inputs, found))


def checked_example(example_input: object) -> tuple[torch.Tensor, ...]:
    """The arguments of a network. UserError for what is none."""
    inputs = example_input if isinstance(example_input, tuple) else (example_input,)
    if not all(isinstance(x, torch.Tensor) for x in inputs):
        raise UserError("'example_input' is a tensor, or a tuple of the network's arguments")
    if any(x.numel() == 0 for x in inputs):
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        raise UserError(
            f"'example_input' is empty\n  expected: at least one sample      got: {shapes}"
        )
    return inputs


def _try_on_shapes(
    net: nn.Module, watched: Watched, inputs: tuple[torch.Tensor, ...]
) -> Trace | None:
    """None for a network that shapes alone do not lead through, for whatever reason.

    A run with values decides then what is wrong, if anything, and tells it.
    """
    try:
        return run_copy(net, watched, inputs, on_values=False)
    except Exception:
        return None


def _run(net: nn.Module, watched: Watched, inputs: tuple[torch.Tensor, ...]) -> Trace:
    try:
        return run_copy(net, watched, inputs, on_values=True)
    except UserError:
        raise
    except Exception as error:  # whatever the code of a network raises
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
    second = _try_on_shapes(
        net, lambda copies: {id(layer): copies[id(layer)] for layer in sequences}, doubled
    )
    if second is None:
        return frozenset()  # a network for one size of batch
    twice = second.calls
    return frozenset(
        id(layer)
        for layer in sequences
        if [2 * inside[0] for inside, _ in found.calls[id(layer)]]
        != [inside[0] for inside, _ in twice.get(id(layer), [])]
    )


def run_copy(
    net: nn.Module, watched: Watched, inputs: tuple[torch.Tensor, ...], *, on_values: bool
) -> Trace:
    """Run a copy of the network once, with values or on shapes; any error of it is raised."""
    if on_values:
        copies: Copies = {}
        made = copy_network(net, copies)
        given = tuple(x.detach().clone() for x in inputs)
        return _recorded(made, watched(copies), given, nullcontext())
    # Tensors that are no part of a module are copied with their values, and taken as shapes.
    shapes = FakeTensorMode(allow_non_fake_inputs=True)
    with shapes:
        copies = {id(tensor): _like(tensor) for tensor in [*net.parameters(), *net.buffers()]}
        given = tuple(_like(x) for x in inputs)
    made = copy_network(net, copies)
    return _recorded(made, watched(copies), given, shapes)


def _like(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty(tensor.shape, dtype=tensor.dtype)
    return nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else made


def _recorded(
    net: nn.Module,
    layers: dict[int, nn.Module],
    inputs: tuple[torch.Tensor, ...],
    shapes: AbstractContextManager[object],
) -> Trace:
    calls: dict[int, list[Shapes]] = {}
    unusual: dict[int, str] = {}

    def note(number: int) -> Callable[..., None]:
        def hook(
            _: nn.Module, args: tuple[object, ...], named: dict[str, object], output: object
        ) -> None:
            if len(args) != 1 or named:
                unusual[number] = "it is called with more than its input"
            elif not isinstance(args[0], torch.Tensor) or not isinstance(output, torch.Tensor):
                unusual[number] = "its input or its result is no tensor"
            tensors = [x for x in (*args, *named.values()) if isinstance(x, torch.Tensor)]
            result = output if isinstance(output, torch.Tensor) else torch.empty(0)
            calls.setdefault(number, []).append(((tensors or [result])[0].shape, result.shape))

        return hook

    net.eval()
    for number, layer in layers.items():
        layer.register_forward_hook(note(number), with_kwargs=True)
    with _turn, ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(_plain_attention())
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(torch.random.fork_rng(devices=[]))
        torch.manual_seed(0)
        counter = stack.enter_context(_Counter())
        operations = stack.enter_context(_Operations())
        stack.enter_context(shapes)
        net(*inputs)
    batch = int(inputs[0].shape[0]) if inputs and inputs[0].dim() else 1
    macs = int(counter.get_total_flops()) // 2
    one = macs // batch if batch and macs % batch == 0 else macs
    return Trace(
        calls,
        batch,
        one,
        unusual=unusual,
        operations=tuple(operations.names),
        on_values=not isinstance(shapes, FakeTensorMode),
    )


class _Operations(TorchDispatchMode):
    """Notes the operations of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        shapes = [list(x.shape) for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        self.names.append(f"{func} {shapes}")
        return result


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
