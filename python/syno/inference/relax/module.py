"""A traced network as a module of TVM's Relax, with each operator as a call of its TensorIR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import fx

from syno import _core
from syno._util.errors import UserError
from syno.codegen.emitters.tvm import imported
from syno.codegen.emitters.tvm_types import Foreign, Module, PrimFunc
from syno.inference.layer import TracedLayer
from syno.inference.relax.program import RelaxProgram
from syno.inference.trace import SLOT, module_name


def relax_module(program: RelaxProgram) -> Module:
    """The module; its function `main` takes the inputs of the network and returns its outputs.

    Weights are constants in it. An operator is a call of the function that the emitter `tvm` writes
    for it, `operator_0` and so on, with its weights as arguments.

    Raises:
        UserError: the front end of Relax does not know an operation.
    """
    imported()
    from tvm.relax.frontend import torch as front_end
    from tvm.relax.frontend.torch import exported_program_translator as translator

    own = {_name(SLOT): _converter(program.layers)}
    known = set(translator.ExportedProgramImporter().convert_map) | set(own)
    _check_operations(program.exported.graph, known)
    try:
        made: Module = front_end.from_exported_program(
            program.exported, custom_convert_map=own, run_ep_decomposition=False
        )
    except Exception as error:  # of TVM, which raises whatever it likes
        raise UserError(
            f"the front end of Relax cannot convert the network: {_words(error)}"
        ) from error
    return made


def _check_operations(graph: fx.Graph, known: set[str]) -> None:
    """UserError that names what Relax does not know, and where it is."""
    unknown: dict[str, list[str]] = {}
    for node in graph.nodes:
        if node.op == "call_function" and _name(node.target) not in known:
            unknown.setdefault(str(node.target), []).append(module_name(node))
    if unknown:
        each = [f"{target} in {', '.join(dict.fromkeys(at))}" for target, at in unknown.items()]
        raise UserError(
            f"the front end of Relax does not know {'; '.join(each)}\n"
            "  what to do: use another operation there, or another engine or format"
        )


def _name(target: object) -> str:
    """How the front end calls an operation."""
    return str(getattr(target, "__name__", target))


def _words(error: Exception) -> str:
    """The line of an error of TVM that says what it is: the last one."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


def _converter(layers: Sequence[TracedLayer]) -> Callable[[fx.Node, Foreign], object]:
    """What turns the call of an operator into a call of its function."""
    from tvm import relax

    functions: dict[str, object] = {}

    def convert(node: fx.Node, importer: Foreign) -> object:
        builder = importer.block_builder
        x = importer.env[node.args[0]]
        layer = layers[int(node.args[1])]  # type: ignore[arg-type]
        key, function = _function(layer, node.meta["val"].shape[0])
        if key not in functions:
            functions[key] = builder.add_func(function, f"operator_{len(functions)}")
        shape = list(layer.computation.operator.shapes(layer.computation.binding).output)
        if layer.computation.operator.batch is not None:
            shape[0] = x.ty.shape[0]
        weights = [relax.const(each.contiguous().numpy()) for each in layer.weights]
        out = relax.TensorType(shape, "float32")
        return builder.emit(relax.call_tir(functions[key], [x, *weights], out))

    return convert


def _function(layer: TracedLayer, batch: int | torch.SymInt) -> tuple[str, PrimFunc]:
    """What is equal for equal functions, and the function for a size of the batch, or for any."""
    from tvm import te

    operator, binding = layer.computation.operator, dict(layer.computation.binding)
    if operator.batch is not None and isinstance(batch, int):
        binding[operator.batch] = batch
    source, _ = _core.emit_tvm(operator.numbered_plan(binding, layer.computation.plan))
    namespace: dict[str, Any] = {}
    exec(compile(source, "<emitted for tvm>", "exec"), namespace)
    namespace["te"] = _LongIndices(te)
    if operator.batch is None or isinstance(batch, int):
        found = namespace["prim_func"]()
    else:
        found = namespace["prim_func"](batch=te.var("batch", "int64"))
    return source, found.without_attr("global_symbol")  # it is "main" in every emitted file


class _LongIndices:
    """`tvm.te` for emitted code, of which it makes functions with indices of 64 bits.

    Those of Relax have such indices, and it joins no functions of different ones.
    """

    def __init__(self, te: ModuleType) -> None:
        self._te = te

    def __getattr__(self, name: str) -> object:
        return getattr(self._te, name)

    def create_prim_func(self, tensors: list[object]) -> PrimFunc:
        found: PrimFunc = self._te.create_prim_func(tensors, index_dtype_override="int64")
        return found
