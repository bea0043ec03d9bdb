"""A network as a graph of torch's operators, each operator of a slot as one node."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from syno._util.errors import UserError
from syno.network.placeholder import Placeholder
from syno.operators.kernel import KernelPack

# Batch size that a network of any batch size is traced with; torch takes 1 as fixed.
_TRACED_BATCH = 3

_library = torch.library.Library("syno_inference", "DEF")
_library.define("slot(Tensor x, int number, SymInt[] shape) -> Tensor")


@torch.library.register_fake("syno_inference::slot", lib=_library)
def _slot(x: torch.Tensor, number: int, shape: Sequence[int]) -> torch.Tensor:
    return x.new_empty(shape)


SLOT = torch.ops.syno_inference.slot.default


@dataclass(frozen=True)
class Traced:
    """graph: in evaluation mode, without in-place operators. A call of `SLOT` has the number of the
    kernel pack in `packs`. batch: whether the graph takes any size of the first dimension."""

    graph: fx.GraphModule
    packs: list[TracedPack]
    batch: bool


@dataclass(frozen=True)
class TracedPack:
    """A kernel pack with its name in the network; channel: the dimension of channels in its output,
    where the slot around it says so."""

    name: str
    pack: KernelPack
    channel: int | None = None


class _Marker(nn.Module):
    """In place of a kernel pack while the network is traced."""

    def __init__(self, number: int, pack: KernelPack) -> None:
        super().__init__()
        self.number = number
        self.batched = pack.operator.batch is not None
        self.shape = list(pack.operator.shapes(pack.binding).output)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = [x.shape[0], *self.shape[1:]] if self.batched else self.shape
        return torch.ops.syno_inference.slot(x, self.number, shape)  # type: ignore[no-any-return]


def checked_inputs(net: object, example_input: object) -> tuple[torch.Tensor, ...]:
    """The arguments of the network. UserError for what cannot be compiled."""
    if not isinstance(net, nn.Module):
        raise UserError(f"expected a torch.nn.Module, got {type(net).__name__}")
    inputs = example_input if isinstance(example_input, tuple) else (example_input,)
    if not inputs or not all(isinstance(x, torch.Tensor) for x in inputs):
        raise UserError(
            "'example_input' is a tensor, or a tuple of the network's arguments\n"
            f"  got: {type(example_input).__name__}"
        )
    if net.training:
        raise UserError(
            f"the network {type(net).__name__} is in training mode\n"
            "  expected: evaluation mode      what to do: call net.eval() first"
        )
    tensors = [*net.named_parameters(), *net.named_buffers()]
    tensors += [(f"example_input[{number}]", x) for number, x in enumerate(inputs)]
    for name, tensor in tensors:
        if tensor.device.type != "cpu":
            raise UserError(
                f"'{name}' is on the device {tensor.device}\n"
                "  expected: cpu, which kernels are compiled for      what to do: use .cpu()"
            )
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            raise UserError(
                f"'{name}' has the type {tensor.dtype}\n"
                "  expected: torch.float32      what to do: use .float()"
            )
    for number, x in enumerate(inputs):
        if x.dim() == 0 or x.numel() == 0:
            raise UserError(
                f"'example_input[{number}]' has the shape {list(x.shape)}\n"
                "  expected: a batch of at least one sample"
            )
    return inputs


def trace(net: nn.Module, inputs: tuple[torch.Tensor, ...], *, batch: bool) -> Traced:
    """The graph of a network; the network stays as it is.

    batch: the first dimension may take any size, where torch can trace the network so; else sizes
    are those of `inputs`.

    UserError where torch cannot trace the network.
    """
    marked = copy.deepcopy(net)
    with torch.no_grad():
        _run(marked, inputs)  # slots learn the sizes of their maps
    packs: list[TracedPack] = []
    for name, pack in [(n, m) for n, m in marked.named_modules() if isinstance(m, KernelPack)]:
        channel = None
        marker = _Marker(len(packs), pack)
        if name:
            path, _, last = name.rpartition(".")
            holder = marked.get_submodule(path)
            channel = holder.channel if isinstance(holder, Placeholder) else None
            setattr(holder, last, marker)
        else:
            marked = marker
        packs.append(TracedPack(name.removesuffix(".layer") or "network", pack, channel))
    with _quiet(), torch.no_grad():
        if batch:
            more = tuple(torch.cat([x[:1]] * _TRACED_BATCH) for x in inputs)
            sizes = tuple({0: torch.export.Dim("batch")} for _ in inputs)
            try:
                return Traced(_graph(marked, more, sizes), packs, True)
            except Exception as error:
                # A network for one size of batch, or one that cannot be traced at all.
                logging.getLogger(__name__).debug("not for any batch size: %s", error)
        try:
            return Traced(_graph(marked, inputs, None), packs, False)
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            raise UserError(
                f"torch.export cannot trace the network {type(net).__name__}: {first}\n"
                "  expected: a network whose operations do not depend on the values of its input"
            ) from error


def _graph(
    net: nn.Module, inputs: tuple[torch.Tensor, ...], sizes: tuple[dict[int, Any], ...] | None
) -> fx.GraphModule:
    program = torch.export.export(net, inputs, dynamic_shapes=sizes, strict=False)
    # An empty table takes nothing apart, and leaves no operator that changes its input.
    found = program.run_decompositions({}).module(check_guards=False)
    assert isinstance(found, fx.GraphModule)
    return fx.GraphModule(found, found.graph)  # an ordinary one, which can be copied and called


def _run(net: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    try:
        net(*inputs)
    except UserError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError) as error:
        shapes = ", ".join(str(list(x.shape)) for x in inputs)
        raise UserError(
            f"the network {type(net).__name__} fails on the example input: {error}\n"
            f"  in example_input of shape {shapes}"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch says on the way: it concerns its own internals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


def module_name(node: fx.Node) -> str:
    """The module of the network that a node belongs to, such as layer1.0.conv1."""
    stack = node.meta.get("nn_module_stack") or {}
    names = [path for path, _ in stack.values()]
    return names[-1].removesuffix(".layer") if names and names[-1] else node.name


def shape_of(node: fx.Node) -> list[int | torch.SymInt]:
    """The shape of the tensor that a node computes."""
    return list(node.meta["val"].shape)
