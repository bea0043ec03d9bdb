"""A network as a graph of torch's operators, each operator of a slot as one node."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram

from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno._util.silence import quiet
from syno._util.tensors import check_float32, check_network
from syno._util.torch_code import WHOLE, exportable, shapes_by_parameter
from syno._util.trial_calls import agree, copies, keeps_state, random_like
from syno._util.value_numbering import first_other_call
from syno.inference.decompose import decomposed
from syno.inference.decompositions import LOOPS, SIMPLER, check_steps
from syno.network.placeholder import Placeholder, slots
from syno.operators.layer import Layer

# Batch size that a network of any batch size is traced with; torch takes 1 as fixed. It also fixes
# the batch where that is compared with a number and this is the number: so it is a prime that
# hardly any dimension is a multiple of.
_TRACED_BATCH = 61

_library = torch.library.Library("syno_inference", "DEF")
_library.define("slot(Tensor x, int number, SymInt[] shape) -> Tensor")


@torch.library.register_fake("syno_inference::slot", lib=_library)
def _slot(x: torch.Tensor, number: int, shape: Sequence[int]) -> torch.Tensor:
    return x.new_empty(shape)


@torch.library.impl("syno_inference::slot", "CPU", lib=_library)
def _stand_in(x: torch.Tensor, number: int, shape: Sequence[int]) -> torch.Tensor:
    """Some result of that shape, which a graph and the network that it was traced from share."""
    rows = x.reshape(shape[0] if x.shape[0] == shape[0] else 1, -1)
    places = torch.arange(math.prod(shape) // len(rows)) % rows.shape[1]
    return rows[:, places].reshape(list(shape))


SLOT = torch.ops.syno_inference.slot.default


@dataclass(frozen=True)
class Traced:
    """graph: in evaluation mode, without operators in place but the last ones, which change inputs
    as the network does. A call of `SLOT` has the number of the kernel pack in `layers`. batch:
    whether the inputs that `batched_inputs` names take any size of their first dimension."""

    graph: fx.GraphModule
    layers: list[TracedOperator]
    batch: bool


@dataclass(frozen=True)
class TracedOperator:
    """A kernel pack with its name in the network; channel: the dimension of channels in its output,
    where the slot around it says so."""

    name: str
    layer: Layer
    channel: int | None = None


class _Marker(nn.Module):
    """In place of a kernel pack while the network is traced."""

    def __init__(self, number: int, shape: Sequence[int], batched: bool) -> None:
        super().__init__()
        self.number = number
        self.shape = list(shape)
        self.batched = batched

    @classmethod
    def of(cls, number: int, layer: Layer) -> _Marker:
        shape = layer.operator.shapes(layer.binding).output
        return cls(number, shape, layer.operator.batch is not None)

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
    check_network(net, complex_numbers=True)
    for number, x in enumerate(inputs):
        check_float32(f"'example_input[{number}]'", x)
        if x.dim() == 0 or x.numel() == 0:
            raise UserError(
                f"'example_input[{number}]' has the shape {list(x.shape)}\n"
                "  expected: a batch of at least one sample"
            )
    return inputs


def trace(
    net: nn.Module, inputs: tuple[torch.Tensor, ...], *, batch: bool, loops: bool = False
) -> Traced:
    """The graph of a network; the network stays as it is.

    batch: the first dimension may take any size, where torch can trace the network so; else sizes
    are those of `inputs`. loops: recurrent layers are the calls of all of their steps.

    UserError where torch cannot trace the network.
    """
    marked = copy_network(net)
    with torch.no_grad():
        _run(marked, inputs)  # slots learn the sizes of their maps
    layers: list[TracedOperator] = []
    for name, layer in _layers(marked):
        marker = _Marker.of(len(layers), layer)
        layers.append(_traced_operator(marked, name, layer))
        if name:
            path, _, last = name.rpartition(".")
            setattr(marked.get_submodule(path), last, marker)
        else:
            marked = marker
    graph, any_batch = _exported(marked, inputs, batch=batch, loops=loops)
    return Traced(graph, layers, any_batch)


def _layers(net: nn.Module) -> list[tuple[str, Layer]]:
    return [(name, each) for name, each in net.named_modules() if isinstance(each, Layer)]


def _traced_operator(net: nn.Module, name: str, layer: Layer) -> TracedOperator:
    holder = net.get_submodule(name.rpartition(".")[0]) if name else None
    channel = holder.channel if isinstance(holder, Placeholder) else None
    return TracedOperator(name.removesuffix(".layer") or "network", layer, channel)


class Outline:
    """The graph of a network with operators in all of its slots, which is the same for all.

    It takes a second to trace, and serves every network that differs from the template in its
    operators and weights alone. The template stays as it is, and its slots have run.

    UserError where torch cannot trace the network, or nothing ran through a slot.
    """

    def __init__(self, template: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        marked = copy_network(template).eval()
        with torch.no_grad():
            _run(marked, inputs)
        self._shapes: dict[str, tuple[int, ...]] = {}
        for name, slot in slots(marked).items():
            if slot.shapes is None:
                raise UserError(f"nothing ran through the slot '{name}'")
            marker = _Marker(len(self._shapes), (1, *slot.shapes[1]), batched=True)
            self._shapes[f"{name}.layer"] = slot.shapes[1]
            slot.replace(marker)
        self._prefix = "" if exportable(marked) is marked else f"{WHOLE}."
        self._graph, self._batch = _exported(marked, inputs, batch=True)

    def traced(self, net: nn.Module) -> Traced | None:
        """The graph of a network; None where not all of its slots hold operators."""
        layers = _layers(net)
        shapes = {
            name: tuple(layer.operator.shapes(layer.binding).output)[1:]
            for name, layer in layers
            if layer.operator.batch is not None
        }
        if list(shapes.items()) != list(self._shapes.items()) or len(layers) != len(shapes):
            return None
        state = {
            **dict(net.named_parameters(remove_duplicate=False)),
            **dict(net.named_buffers(remove_duplicate=False)),
        }
        graph = copied(self._graph.graph)
        held = {
            path: state.get(path.removeprefix(self._prefix), attribute(self._graph, path))
            for path in [str(node.target) for node in graph.nodes if node.op == "get_attr"]
        }
        found = [_traced_operator(net, name, layer) for name, layer in layers]
        return Traced(fx.GraphModule(held, graph), found, self._batch)


def copied(graph: fx.Graph, values: dict[fx.Node, fx.Node] | None = None) -> fx.Graph:
    """A copy of a graph, whose nodes are put into `values` by those of the graph.

    `copy.deepcopy` also copies what torch says not to look at.
    """
    made = fx.Graph(tracer_cls=graph._tracer_cls)
    returned = made.graph_copy(graph, {} if values is None else values)
    made.output(returned).meta = dict(graph.output_node().meta)
    made._codegen = graph._codegen
    return made


def attribute(graph: fx.GraphModule, path: str) -> object:
    """What a node of the kind get_attr gives."""
    held: object = graph
    for name in path.split("."):
        held = getattr(held, name)
    return held


def _exported(
    marked: nn.Module, inputs: tuple[torch.Tensor, ...], *, batch: bool, loops: bool = False
) -> tuple[fx.GraphModule, bool]:
    """The graph, and whether it takes any size of the first dimension."""
    name, marked = type(marked).__name__, exportable(marked)
    # Views that are changed in place are not traced in inference mode.
    with quiet(), torch.inference_mode(False), torch.no_grad():
        for batched in _batches(inputs) if batch else ():
            more = tuple(
                # Nothing reads the elements, and memory that nothing writes is not taken.
                x.new_empty((_TRACED_BATCH, *x.shape[1:])) if any_size else x.clone()
                for x, any_size in zip(inputs, batched, strict=True)
            )
            sizes = shapes_by_parameter(
                marked, [{0: torch.export.Dim("batch")} if any_ else None for any_ in batched]
            )
            try:
                program = _program(marked, more, sizes, loops)
                module = program.module(check_guards=False)
                graph = _graph(program, module, loops)
                why: object = _other_for_one(module, graph, marked, inputs, batched)
                if why is None:
                    return graph, True
            except UserError:
                raise
            except Exception as error:
                # A network for one size of batch, or one that cannot be traced at all.
                why = error
            logging.getLogger(__name__).debug("not for any batch size: %s", why)
        try:
            program = _program(marked, copies(inputs), None, loops)
            return _graph(program, program.module(check_guards=False), loops), False
        except UserError:
            raise
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            raise UserError(
                f"torch.export cannot trace the network {name}: {first}\n"
                "  expected: a network whose operations do not depend on the values of its input, "
                "and that keeps no state from call to call"
            ) from error


def _batches(inputs: tuple[torch.Tensor, ...]) -> list[tuple[bool, ...]]:
    """Which inputs may have the batch as first dimension: as many as can come first."""
    alike = tuple(len(x) == len(inputs[0]) for x in inputs)
    first = tuple(number == 0 for number in range(len(inputs)))
    return [alike] if alike == first else [alike, first]


def _other_for_one(
    program: fx.GraphModule,
    graph: fx.GraphModule,
    marked: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    batched: tuple[bool, ...],
) -> str | None:
    """What the network does for a batch of one that its program or graph for any batch does not.

    While it traces, torch takes a size that is not fixed to be another than one; so a branch of
    `forward` on a batch of one is not in the program. The graph calls other operators than the
    program, so these two are compared by their results.
    """
    one = random_like(tuple(x[:1] if any_ else x for x, any_ in zip(inputs, batched, strict=True)))
    call = first_other_call(program, copy_network(marked), one)
    if call is not None:
        return f"one sample alone is computed in another way, beginning with {call}"
    if not agree(graph, copy_network(marked), one):
        return "the graph computes something else for one sample alone"
    return None


def _program(
    net: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    sizes: tuple[object, ...] | None,
    loops: bool,
) -> ExportedProgram:
    # What fails on the way may leave traces in the module.
    program = torch.export.export(copy_network(net), inputs, dynamic_shapes=sizes, strict=False)
    if loops:
        check_steps(program.graph)
    return program


def _graph(program: ExportedProgram, module: fx.GraphModule, loops: bool) -> fx.GraphModule:
    graph, changed = decomposed(program, module, SIMPLER | LOOPS if loops else SIMPLER)
    if changed:
        raise keeps_state(changed.removeprefix(f"{WHOLE}."))
    return graph


def outline_of(graph: fx.GraphModule, value: torch.Tensor) -> torch.Tensor:
    """A constant as the entry `val` of a node has it: its shape and type without its elements."""
    for node in graph.graph.nodes:
        if node.op == "placeholder" and isinstance(node.meta["val"], FakeTensor):
            mode = node.meta["val"].fake_mode
            return mode.from_tensor(value.detach(), static_shapes=True)
    return value


def batched_inputs(graph: fx.GraphModule) -> list[bool]:
    """Of each input whether its first dimension is a batch of any size."""
    return [
        isinstance(node.meta["val"].shape[0], torch.SymInt)
        for node in graph.graph.nodes
        if node.op == "placeholder"
    ]


def changed_inputs(graph: fx.GraphModule) -> list[fx.Node]:
    """The inputs that a graph changes, as its network does."""
    return [
        node.args[0]
        for node in graph.graph.nodes
        if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder"
    ]


def _run(net: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    try:
        net(*copies(inputs))
    except UserError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError) as error:
        shapes = ", ".join(str(list(x.shape)) for x in inputs)
        raise UserError(
            f"the network {type(net).__name__} fails on the example input: {error}\n"
            f"  in example_input of shape {shapes}"
        ) from error


def module_name(node: fx.Node) -> str:
    """The module of the network that a node belongs to, such as layer1.0.conv1."""
    stack = node.meta.get("nn_module_stack") or {}
    names = [path for path, _ in stack.values()]
    name = names[-1].removeprefix(f"{WHOLE}.").removesuffix(".layer") if names else ""
    return name or node.name


def each_dimension(value: int | Sequence[int], rank: int) -> list[int]:
    """An argument of torch that has one value for each of `rank` dimensions, or one for all."""
    values = [int(v) for v in value] if isinstance(value, Sequence) else [int(value)]
    return values * rank if len(values) == 1 else values


def shape_of(node: fx.Node) -> list[int | torch.SymInt]:
    """The shape of the tensor that a node computes."""
    return list(node.meta["val"].shape)
