"""Operators, kernel packs and networks, written in any format."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.arguments import SEED, checked, flag, integer, optional, path, text
from syno._util.errors import UserError, first_line
from syno.codegen.export import formats
from syno.codegen.export.formats import Exported, ExportSubject
from syno.operators.operator import Operator
from syno.operators.specification import Binding

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno.operators.layer import Layer

# Batch size that a module is traced with: more than one, which torch would take as fixed.
_TRACED_BATCH = 3


@checked(path=path, format=text, seed=SEED, plan=optional(integer(1)), fold_weights=flag)
def export(
    operator: Operator | Layer,
    path: str | os.PathLike[str],
    *,
    binding: Binding | str | None = None,
    format: str = "torch",
    seed: int = 0,
    plan: int | None = None,
    fold_weights: bool = False,
) -> Exported:
    """Write an operator as files that run without Syno.

    Args:
        operator: an Operator, which requires a binding and gets initial weights from `seed`; or a
            kernel pack of a network (`syno.slots(net)[name].kernel`) with its weights.
        path: the file; the suffix of the format is added. The format `torch` also writes a
            .safetensors file, and `python FILE.py` checks the module against an example of the
            reference interpreter.
        format: one of `syno.codegen.export.formats.names()`.
        plan: the number of the plan in `Operator.plans`; 1 is the cheapest. Default: that of the
            kernel pack, or 1.
        fold_weights: multiply weights with each other beforehand if this saves MACs. `cpp` does
            this in `pack`; `torch-export`, `onnx` and `aoti` store the products; the other formats
            do not support it.

    Raises:
        UserError: the format is unknown, cannot be written here or does not fold weights; the path
            cannot be written; or the binding or the plan is missing.
    """
    chosen = formats.get(format, fold_weights=fold_weights)
    subject = operator_subject(operator, binding, seed, plan, fold_weights)
    return chosen.write(subject, Path(path))


@checked(path=path, format=text, fold_weights=flag, precision=text)
def export_network(
    net: nn.Module,
    path: str | os.PathLike[str],
    example_input: torch.Tensor | tuple[torch.Tensor, ...],
    *,
    format: str = "torch-export",
    fold_weights: bool = False,
    precision: str = "float32",
) -> Exported:
    """Write a network with its operators and trained weights, so that it runs without Syno.

    The network is traced in evaluation mode on the CPU. `example_input` is a tensor, or a tuple of
    the arguments of the network. The first dimension of each is the batch, which may have any size
    afterwards, unless the network takes that of the example only. The format cpp-network also has
    the precision `bfloat16`, in which convolutions, linear layers and operators multiply bfloat16
    numbers; they add in float32, and all other numbers are float32. What `syno.quantize` returns is
    written in INT8, as cpp-network, or as onnx for a batch of one sample. The other arguments
    and errors are those of `export`.
    """
    precision = getattr(net, "syno_precision", precision)  # that of syno.quantize
    chosen = formats.get(format, networks=True, fold_weights=fold_weights, precision=precision)
    subject = network_subject(net, example_input, fold_weights=fold_weights)
    formats.check_inputs(chosen, subject)
    return chosen.write(replace(subject, precision=precision), Path(path))


@checked(folder=path, format=text, seed=SEED)
def export_slots(
    net: nn.Module, folder: str | os.PathLike[str], *, format: str = "torch", seed: int = 0
) -> list[Exported]:
    """Write every operator of a network with its weights to a separate file.

    Files have the names of the slots, with underscores instead of dots. They do not include the
    pooling before the operator and the bias after it.

    Raises:
        UserError: the network contains no operator.
    """
    from torch import nn

    from syno.operators.layer import Layer

    if not isinstance(net, nn.Module):
        raise UserError(f"expected a torch.nn.Module, got {type(net).__name__}")
    layers = {
        name.removesuffix(".layer"): module
        for name, module in net.named_modules()
        if isinstance(module, Layer)
    }
    if not layers:
        raise UserError(
            f"the network {type(net).__name__} contains no operator to export\n"
            "  what to do: use syno.replace(net, operator) to fill its slots"
        )
    return [
        export(
            layer, Path(folder) / (name.replace(".", "_") or "network"), format=format, seed=seed
        )
        for name, layer in layers.items()
    ]


def operator_subject(
    operator: Operator | Layer,
    binding: Binding | str | None,
    seed: int,
    plan: int | None = None,
    fold_weights: bool = False,
) -> ExportSubject:
    """An operator as something to write. UserError as in `export`."""
    import torch

    plain = _layer(operator, binding, seed)
    layer = _under(plain, plan or plain.plan, fold_weights or plain.fold_weights)
    shape = layer.operator.shapes(layer.binding).input
    batch = layer.operator.batch is not None
    x = torch.zeros([_TRACED_BATCH, *shape[1:]] if batch else shape)
    return ExportSubject(
        module=_written(layer.kernel),
        inputs=(x,),
        batch=batch,
        layer=layer,
        seed=seed,
        reference=_written(_under(plain, 1, False).kernel),
        fold_weights=layer.fold_weights,
    )


def network_subject(
    net: nn.Module,
    example_input: torch.Tensor | tuple[torch.Tensor, ...],
    seed: int = 0,
    *,
    plan_of: Callable[[Layer], int] = lambda layer: layer.plan,
    fold_weights: bool = False,
) -> ExportSubject:
    """A network as something to write; it stays as it is.

    plan_of: the number of the plan of each operator in it.
    """
    import torch

    from syno._util.network_copy import copy_network
    from syno._util.tensors import check_network
    from syno.operators.layer import Layer

    check_network(net, any_device=True, complex_numbers=True)
    module = copy_network(net).cpu().eval()
    example = _arguments(example_input)
    _run_first(module, example)
    several = tuple(torch.cat([x[:1]] * _TRACED_BATCH) for x in example)
    batch = _takes(module, several)
    reference = copy_network(module)
    for name, layer in [*module.named_modules()]:
        if isinstance(layer, Layer):
            holder, _, last = name.rpartition(".")
            made = _under(layer, plan_of(layer), fold_weights or layer.fold_weights)
            setattr(module.get_submodule(holder), last, made)
    inputs = several if batch else example
    return ExportSubject(module, inputs, batch, None, seed, reference, fold_weights)


def _arguments(
    example_input: torch.Tensor | tuple[torch.Tensor, ...],
) -> tuple[torch.Tensor, ...]:
    """The example on the CPU, with zeros for real numbers. UserError where it has no one batch."""
    import torch

    from syno._util.tensors import check_float32

    is_one = not isinstance(example_input, tuple)
    made = []
    for number, each in enumerate((example_input,) if is_one else example_input):
        what = "'example_input'" if is_one else f"'example_input[{number}]'"
        x = check_float32(what, each, any_device=True).detach().cpu()
        if x.dim() == 0:
            raise UserError(f"{what} is a tensor whose first dimension is the batch")
        # Tokens stay: any others may be out of range.
        made.append(torch.zeros(x.shape) if x.is_floating_point() else x)
    sizes = [len(x) for x in made]
    if len(set(sizes)) != 1:
        raise UserError(
            "'example_input' has different sizes of the first dimension, which is the batch\n"
            f"  expected: one size      got: {', '.join(map(str, sizes)) or 'no tensor'}"
        )
    return tuple(made)


def _run_first(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    """Run a network, so that its slots learn the sizes of their maps.

    UserError where it fails, or keeps something from call to call.
    """
    import torch

    from syno._util.trial_calls import keeps_state, random_like

    with torch.no_grad():
        try:
            module(*(x.clone() for x in inputs))
            before = {name: tensor.clone() for name, tensor in module.named_buffers()}
            module(*random_like(inputs))
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"the network {type(module).__name__} fails on inputs like the example: "
                f"{first_line(error)}\n"
                "  in a batch " + " and ".join(f"{list(x.shape)} of {x.dtype}" for x in inputs)
            ) from error
    after = dict(module.named_buffers())
    for buffer, tensor in before.items():
        if buffer in after and not _same(after[buffer], tensor):
            raise keeps_state(buffer)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and bool(((one == other) | ((one != one) & (other != other))).all())


def _takes(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> bool:
    """Whether a network takes this batch; it takes that of its example."""
    import torch

    try:
        with torch.no_grad():
            module(*(x.clone() for x in inputs))
    except Exception as error:  # whatever its code raises
        logging.getLogger(__name__).debug("for one size of the batch: %s", error)
        return False
    return True


def _written(kernel: nn.Module) -> nn.Module:
    from syno._util.network_copy import copy_network

    return copy_network(kernel).cpu().float().eval()


def _under(layer: Layer, plan: int, fold_weights: bool) -> Layer:
    """The kernel pack with another plan and the same weights."""
    if (plan, fold_weights) == (layer.plan, layer.fold_weights):
        return layer
    made = type(layer)(layer.operator, layer.binding, plan, fold_weights)
    for own, other in zip(made.kernel.parameters(), layer.kernel.parameters(), strict=True):
        own.data = other.detach().clone()
    return made.train(layer.training)


def _layer(operator: Operator | Layer, binding: Binding | str | None, seed: int) -> Layer:
    import torch

    from syno.operators.layer import Layer

    if isinstance(operator, Layer):
        if binding is not None:
            raise UserError("a kernel pack has its own binding: omit `binding`")
        return operator
    if not isinstance(operator, Operator):
        raise UserError(f"expected an Operator or a kernel pack, got {type(operator).__name__}")
    if binding is None:
        raise UserError(
            "a binding is required to export an operator\n"
            "  expected: a value for each of "
            f"{', '.join(operator.variables)}      got: no binding"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return operator.kernel_pack(binding)
