"""A standalone .py with a whole network as PyTorch code, and a .safetensors with its weights."""

from __future__ import annotations

import textwrap
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.codegen.export import files
from syno.codegen.export.formats import Exported, ExportSubject
from syno.codegen.export.programs import TOLERANCE, examples, quietly, traced
from syno.codegen.export.torch_files import PythonFiles

if TYPE_CHECKING:
    import torch
    from torch import fx

# What the generated code may name: what the file imports, and what torch lists in any case.
_KNOWN = {"torch", "device", "inf", "nan", "NoneType", "fx_pytree", "pytree"}


class TorchNetwork(PythonFiles):
    """A .py with the operations of a network, and its weights."""

    name = "torch-network"
    networks = several_inputs = True

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Writes both files; the examples are what the network gives now."""
        code = files.with_suffix(path, self.suffix)
        graph = _graph(subject)
        tensors = _tensors(graph)
        held = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
        for number, (inputs, y) in enumerate(examples(subject)):
            if y.numel() == 0 or not y.is_floating_point():
                raise UserError("the network gives no tensor of real numbers")
            held |= {f"example.x{number}_{k}": x.clone() for k, x in enumerate(inputs)}
            held[f"example.y{number}"] = y.clone()
        return self.write_both(code, _source(subject, graph, tensors), held)


FORMATS = {"torch-network": TorchNetwork()}


def _graph(subject: ExportSubject) -> fx.GraphModule:
    """The network as a graph of operators of torch, without the forms of arguments and results."""
    from torch import fx

    program = traced(subject)
    with quietly():
        module = program.run_decompositions({}).module(check_guards=False)
        graph = fx.GraphModule(module, module.graph)  # type: ignore[arg-type]
    for node in reversed(list(graph.graph.nodes)):
        if node.op in ("get_attr", "call_module") and not node.users:
            graph.graph.erase_node(node)
        if node.op == "output":
            results = node.args[0]
            if not isinstance(results, fx.Node) and len(results) != 1:
                raise UserError(
                    f"the network gives {len(results)} results\n"
                    "  expected: one tensor      what to do: export a module that returns one"
                )
            node.args = (results if isinstance(results, fx.Node) else results[0],)
    graph.graph.set_codegen(fx.graph.CodeGen())
    graph.recompile()
    return graph


def _tensors(graph: fx.GraphModule) -> dict[str, torch.Tensor]:
    """The tensors that the graph reads, by their names in the network."""
    found: dict[str, torch.Tensor] = {}
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            holder, _, last = str(node.target).rpartition(".")
            found[str(node.target)] = getattr(graph.get_submodule(holder), last)
    return found


def _source(subject: ExportSubject, graph: fx.GraphModule, tensors: dict[str, torch.Tensor]) -> str:
    from torch import nn

    code = graph.graph.python_code("self")
    unknown = sorted(set(code.globals) - _KNOWN)
    if unknown:
        raise UserError(
            f"the network uses {', '.join(unknown)}, which PyTorch code without Syno cannot name\n"
            "  what to do: use the format torch-export"
        )
    lines = [
        f'    "{name}": ({list(tensor.shape)}, "{str(tensor.dtype).removeprefix("torch.")}", '
        f"{isinstance(tensor, nn.Parameter)}),"
        for name, tensor in tensors.items()
    ]
    template = resources.files(__package__) / "network.py.txt"
    inputs = [
        f"[{', '.join(['N', *map(str, x.shape[1:])])}] {str(x.dtype).removeprefix('torch.')}"
        for x in subject.inputs
    ]
    forward = textwrap.indent(code.src.strip("\n").rstrip(), "    ")
    return (
        template.read_text(encoding="utf-8")
        .replace("@NAME@", type(subject.module).__name__)
        .replace("@INPUTS@", ", ".join(inputs))
        .replace("@COUNT@", str(len(inputs)))
        .replace("@TENSORS@", "\n".join(lines))
        .replace("@TOLERANCE@", str(TOLERANCE))
        .replace("@FORWARD@", forward)
    )
