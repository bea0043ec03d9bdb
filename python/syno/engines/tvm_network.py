"""Whole networks in TVM: from `torch.export` to Relax, with operators as their own TensorIR.

An operator of Syno is one node of the exported graph, whose function in the module is what the
emitter `tvm` writes; all else is translated by TVM's importer. Weights are constants of the module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from syno._util.errors import UserError, first_line
from syno.codegen import emitters
from syno.codegen.emitters.tvm import imported
from syno.network.placeholder import KernelPack

_TVM = "tvm"
_OPERATOR = "syno_tvm::operator"
_NODE = "operator.default"


@dataclass(frozen=True)
class RelaxNetwork:
    """A network as a module of Relax, whose function `main` takes the input.

    any_batch: whether it takes any size of the first dimension.
    """

    module: Any
    any_batch: bool


@torch.library.custom_op(_OPERATOR, mutates_args=())
def _operator(
    x: torch.Tensor, weights: Sequence[torch.Tensor], number: int, output: Sequence[int]
) -> torch.Tensor:
    raise UserError("an operator in a network for TVM is translated, and not run")


@_operator.register_fake
def _(
    x: torch.Tensor, weights: Sequence[torch.Tensor], number: int, output: Sequence[int]
) -> torch.Tensor:
    return x.new_empty((x.shape[0], *output))


class _Node(nn.Module):
    """In the place of an operator while a network is exported."""

    def __init__(self, pack: KernelPack, number: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList(pack.kernel.parameters())
        self._number = number
        self._output = list(pack.operator.shapes(pack.binding).output[1:])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.ops.syno_tvm.operator(
            x, list(self.weights), self._number, self._output
        )
        return found


def relax_network(
    net: nn.Module, example: torch.Tensor, *, any_batch: bool = False
) -> RelaxNetwork:
    """Translate a network in evaluation mode.

    Args:
        net: the network, which is not changed.
        example: an input, with the batch as first dimension.
        any_batch: whether the module takes any batch size; it cannot be tuned then.

    Raises:
        UserError: torch.export or TVM cannot translate the network.
    """
    prepared, cases = _with_nodes(net)
    dynamic = ({0: torch.export.Dim("batch", min=1, max=1 << 20)},) if any_batch else None
    given = example.clone() if len(example) > 1 or not any_batch else torch.cat([example, example])
    imported()
    from tvm.relax.frontend.torch import from_exported_program

    functions: dict[int, Any] = {}

    def converted(node: Any, importer: Any) -> Any:
        x, weights, number, output = importer.retrieve_args(node)
        return _called(importer.block_builder, functions, cases[number], number, x, weights, output)

    try:
        with torch.no_grad():
            program = torch.export.export(prepared, (given,), dynamic_shapes=dynamic)
        module = from_exported_program(
            program,
            custom_convert_map={_NODE: converted},
            unwrap_unit_return_tuple=True,
        )
    except UserError:
        raise
    except Exception as error:  # of PyTorch and TVM, which raise whatever they like
        raise UserError(f"TVM cannot translate the network: {first_line(error)}") from error
    return RelaxNetwork(module, any_batch)


def _with_nodes(net: nn.Module) -> tuple[nn.Module, list[emitters.Case]]:
    """A copy of a network with a node for each operator, and what the nodes compute."""
    made = copy.deepcopy(net).eval()
    cases: list[emitters.Case] = []
    seen: dict[str, int] = {}
    packs = [(name, m) for name, m in made.named_modules() if isinstance(m, KernelPack)]
    for name, pack in packs:
        if pack.operator.batch is None:
            continue  # TVM gets what the operator's PyTorch code does
        case = emitters.Case(pack.operator, dict(pack.binding))
        source = emitters.get(_TVM).source(case)
        number = seen.setdefault(source, len(cases))
        if number == len(cases):
            cases.append(case)
        if not name:
            return _Node(pack, number), cases
        parent, _, last = name.rpartition(".")
        setattr(made.get_submodule(parent), last, _Node(pack, number))
    return made, cases


def _called(
    builder: Any,
    functions: dict[int, Any],
    case: emitters.Case,
    number: int,
    x: Any,
    weights: Sequence[Any],
    output: Sequence[int],
) -> Any:
    """The call of an operator's function, which is added to the module once."""
    from tvm import relax, te

    batch = x.ty.shape[0]
    if number not in functions:
        source = emitters.get(_TVM).source(case)
        namespace: dict[str, Callable[..., Any]] = {}
        exec(compile(source, "<emitted for tvm>", "exec"), namespace)
        fixed = getattr(batch, "value", None)
        size = te.var("batch", "int64") if fixed is None else int(fixed)
        function = namespace["prim_func"](batch=size)
        functions[number] = builder.add_func(function, f"syno_operator_{number}")
    result = relax.TensorType([batch, *output], "float32")
    return builder.emit(relax.call_tir(functions[number], [x, *weights], result))


def compiled(
    network: RelaxNetwork, target: Mapping[str, object], *, database: str | None = None
) -> Any:
    """Fuse and compile a network for a target; with the schedules of a database, if there is one.

    Raises:
        UserError: TVM cannot compile it.
    """
    tvm = imported()
    from tvm import relax

    transform = relax.transform
    passes = [
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        relax.get_pipeline("zero"),
    ]
    if database is not None:
        passes.append(transform.MetaScheduleApplyDatabase(database))
    try:
        with tvm.target.Target(dict(target)) as device, tvm.transform.PassContext(opt_level=3):
            module = tvm.transform.Sequential(passes)(network.module)
            return tvm.compile(module, target=device)
    except Exception as error:  # of TVM, which raises whatever it likes
        raise UserError(f"TVM cannot compile the network: {first_line(error)}") from error
