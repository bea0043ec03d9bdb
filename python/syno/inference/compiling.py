"""`syno.compile`: an inference copy of a network in which layers are compiled kernels."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch
from torch import fx, nn

from syno._util.arguments import checked, flag, integer, text
from syno._util.checks import shown
from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno._util.threads import usable_cores
from syno._util.trial_calls import copies, difference, random_like, tensors_of
from syno.codegen.native import find_tuning, no_compiler
from syno.codegen.torch_op import Kernel, register
from syno.codegen.torch_op.library import kernel_compiler
from syno.data import progress
from syno.inference.arguments import Argument
from syno.inference.compiled_layer import CompiledLayer
from syno.inference.compiled_network import CompiledNetwork, ReportRow
from syno.inference.compiled_region import Fast, source_of
from syno.inference.decompose import draws
from syno.inference.layer import TracedLayer
from syno.inference.operators import CONVOLUTIONS, LINEAR_LAYERS
from syno.inference.passes.layers import layers_of
from syno.inference.passes.pools import put_pools
from syno.inference.prepare import Prepared, prepare
from syno.inference.quantization.compiled import CompiledQuantizedNetwork, compile_quantized
from syno.inference.quantization.network import QuantizedNetwork
from syno.inference.regions import Region, own_copy, regions_of
from syno.inference.resizable import MOST_SIZES, ResizableNetwork
from syno.inference.trace import batched_inputs, checked_inputs, module_name

COMPILE, PYTORCH = "compile", "pytorch"
# Largest difference of a layer from the operator in PyTorch, relative to its largest output.
TOLERANCE = 1e-4
# The same of a whole network whose layers are all right: small differences add up.
_NETWORK_TOLERANCE = 1e-2
# How many times the difference of kernels that are called one by one a network may differ by that
# computes the same sums in another order.
_AMPLIFIED = 30.0


@checked(
    convolutions=flag,
    missing=text,
    tuned=flag,
    verify=flag,
    sizes=integer(1, MOST_SIZES),
)
def compile(
    net: nn.Module,
    example_input: torch.Tensor | tuple[torch.Tensor, ...],
    *,
    convolutions: bool = True,
    missing: str = COMPILE,
    tuned: bool = True,
    verify: bool = True,
    sizes: int = 1,
) -> CompiledNetwork | CompiledQuantizedNetwork | ResizableNetwork:
    """Return an inference copy of a network in which layers are compiled kernels.

    Operators in slots, convolutions and linear layers become kernels, together with BatchNorm,
    bias, residual and activation behind them. What is no layer that a kernel can compute stays
    PyTorch; `report` of the result lists both. torch.compile, torch.export and AOTInductor accept
    the result.

    What `syno.quantize` returned becomes a module that calls its C++ in INT8, which cannot be
    traced; only `verify` matters for it.

    Args:
        net: a network in evaluation mode on the CPU; it stays as it is.
        example_input: a tensor, or a tuple of the arguments of the network. The first dimension is
            the batch, which may have any size afterwards if torch.export can trace the network so.
        convolutions: also compile convolutions and linear layers, not only operators.
        missing: what happens to a layer whose kernel is not in the cache: "compile" compiles it,
            "pytorch" leaves it to PyTorch, as is done without a compiler, and says so in a warning.
        tuned: use schedules that `syno tune` found on this machine for PyTorch's number of threads,
            where the cache has them.
        verify: compare the result with the network on the example and on random input.
        sizes: for how many sizes of the inputs, such as heights and widths of images, the result
            keeps kernels. With more than one, the first call with another size than that of the
            example compiles the network for it, and the result cannot be traced.

    Raises:
        UserError: the network or the example is not of a kind that can be compiled, torch.export
            cannot trace the network, or the result differs from it.
    """
    inputs = checked_inputs(net, example_input)
    if isinstance(net, QuantizedNetwork):
        if sizes > 1:
            raise UserError(
                "a quantized network takes inputs of one size\n"
                "  expected: sizes=1, or a network in float32"
            )
        return compile_quantized(net, inputs, verify=verify)
    if missing not in (COMPILE, PYTORCH):
        raise UserError(
            f"unknown value of 'missing': {shown(missing)}\n  expected: {COMPILE} or {PYTORCH}"
        )
    compile_for = functools.partial(
        _compiled_for,
        copy_network(net) if sizes > 1 else net,
        convolutions=convolutions,
        missing=missing,
        verify=verify,
        tuned=tuned,
    )
    if sizes > 1:
        return ResizableNetwork(compile_for, inputs, sizes)
    return compile_for(inputs)


def _compiled_for(
    net: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    *,
    convolutions: bool,
    missing: str,
    verify: bool,
    tuned: bool,
) -> CompiledNetwork:
    """`compile` for the sizes of some inputs."""
    prepared = prepare(net, inputs, batch=True, convolutions=convolutions)
    return compile_prepared(net, inputs, prepared, missing=missing, verify=verify, tuned=tuned)


def compile_prepared(
    net: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    prepared: Prepared,
    *,
    missing: str = COMPILE,
    verify: bool = True,
    tuned: bool = True,
) -> CompiledNetwork:
    """`compile`, with the graph of the network, which is changed."""
    graph = prepared.graph
    graph.requires_grad_(False)
    calls = layers_of(graph)
    references = {str(node.target): layer for node, layer in calls.items()}
    copy = own_copy(graph)
    regions = regions_of(copy, references)
    sources = [source_of(region) for region in regions]
    made = _compiled(references, sources, missing, tuned)
    for name, layer in made.items():
        setattr(graph, name, layer)
        setattr(copy, name, layer)
    graph.eval()
    fast = _fast(graph, copy, references, made, regions, sources, missing) if made else None
    rows = [_row(layer, name in made) for name, layer in references.items()]
    if made:  # with a compiler
        register()
        rows += [ReportRow(pool.name, pool.kind, True, "", "") for pool in put_pools(graph)]
    stay = len(references) - len(made)
    if stay:
        warnings.warn(f"{stay} of {len(references)} layers stay PyTorch: {_why()}", stacklevel=2)
    rows += [ReportRow(kept.name, kept.kind, False, "", kept.reason) for kept in prepared.kept]
    rows += _others(prepared.graph, set() if fast is None else fast.computed)
    batched = batched_inputs(graph)
    arguments = [Argument.of(x, any_) for x, any_ in zip(inputs, batched, strict=True)]
    compiled = CompiledNetwork(graph, rows, arguments, prepared.readers, fast, prepared.squeezed)
    if verify:
        net = copy_network(net)  # calls may leave something in it
        with torch.no_grad():
            for given in (inputs, _more(inputs, batched)):
                _check(net, compiled, references, given)
    return compiled


def compile_layers(prepared: Prepared) -> None:
    """Compile the kernels of the layers of a network, so that `compile_prepared` finds them."""
    layers = layers_of(prepared.graph)
    by_name = {str(node.target): layer for node, layer in layers.items()}
    regions = regions_of(own_copy(prepared.graph), by_name)
    _compiled(by_name, [source_of(region) for region in regions], COMPILE, tuned=True)


def _compiled(
    layers: dict[str, TracedLayer], sources: Sequence[str], missing: str, tuned: bool
) -> dict[str, CompiledLayer]:
    """The layers as kernels, each of which is compiled once, several at the same time.

    sources: of regions, which are compiled beside them.
    """
    groups: dict[tuple[str, str, int], list[str]] = {}
    for name, layer in layers.items():
        key = (layer.computation.key, layer.parts.text, layer.channel)
        groups.setdefault(key, []).append(name)
    made: dict[str, CompiledLayer] = {}
    with (
        warnings.catch_warnings(),
        _team() as pool,
        progress.bar("compiling kernels", len(groups) + len(sources)) as advance,
    ):
        warnings.simplefilter("ignore")  # of single kernels: one warning is about all of them
        programs = [pool.submit(_prepare_program, source, missing) for source in sources]
        first = [layers[names[0]] for names in groups.values()]
        kernels = pool.map(lambda layer: _kernel(layer, missing, tuned), first)
        for kernel, names in zip(kernels, groups.values(), strict=True):
            if kernel is not None:
                made |= {name: CompiledLayer(kernel, layers[name]) for name in names}
            advance(1)
        for program in programs:
            program.result()
            advance(1)
    return made


def _prepare_program(source: str, missing: str) -> None:
    """Compile the program of a region, so that the cache has it when it is first called."""
    if missing == COMPILE and no_compiler() is None:
        kernel_compiler().file(source)


def _fast(
    graph: fx.GraphModule,
    copy: fx.GraphModule,
    layers: dict[str, TracedLayer],
    made: dict[str, CompiledLayer],
    regions: Sequence[Region],
    sources: Sequence[str],
    missing: str,
) -> Fast:
    """What computes calls that nothing observes. A region is one where its program can be had."""
    if len(made) < len(layers):
        regions = regions_of(copy, {name: layers[name] for name in made})
        sources = [source_of(region) for region in regions]
    compiler = kernel_compiler()
    there = [
        (region, source)
        for region, source in zip(regions, sources, strict=True)
        if missing == COMPILE or compiler.has(source)
    ]
    return Fast(graph, copy, [region for region, _ in there], [source for _, source in there])


@contextmanager
def _team() -> Iterator[ThreadPoolExecutor]:
    """Threads that wait for compilers. What has not begun is not begun after an error."""
    pool = ThreadPoolExecutor(usable_cores())
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _kernel(layer: TracedLayer, missing: str, tuned: bool) -> Kernel | None:
    """The compiled kernel of a layer; None where there is none."""
    found = layer.computation
    tuning = find_tuning(found.planned(), threads=torch.get_num_threads()) if tuned else ""
    kernel = Kernel.of(
        found.operator,
        found.binding,
        epilogue=layer.parts.text,
        channel=layer.channel,
        plan=found.plan,
        fold_weights=found.fold_weights,
        tuning=tuning,
        missing=missing,
    )
    return kernel if kernel.compiled else None


def _why() -> str:
    """Why a layer has no kernel."""
    return (no_compiler() or "its kernel is not in the cache").partition("\n")[0]


def _row(layer: TracedLayer, kernel: bool) -> ReportRow:
    return ReportRow(layer.name, layer.kind, kernel, layer.parts.text, "" if kernel else _why())


def _others(graph: fx.GraphModule, computed: Set[str]) -> list[ReportRow]:
    """All operations that are no layers, by their kind. computed: in regions, by name."""
    found: dict[tuple[str, bool], list[str]] = {}
    for node in graph.graph.nodes:
        known = node.target in CONVOLUTIONS or node.target in LINEAR_LAYERS
        if getattr(node.target, "namespace", "") == "aten" and not known:
            kind = str(node.target).removeprefix("aten.").partition(".")[0].strip("_")
            if not kind.startswith("sym_"):
                found.setdefault((kind, node.name in computed), []).append(module_name(node))
    return [
        ReportRow(
            names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
            kind,
            kernel=False,
            epilogue="",
            reason="",
            region=region,
        )
        for (kind, region), names in found.items()
    ]


def _more(inputs: tuple[torch.Tensor, ...], batched: Sequence[bool]) -> tuple[torch.Tensor, ...]:
    """Random inputs, and of another batch size where that may be any."""
    return random_like(
        tuple(
            torch.cat([x[:1], x]) if any_size else x
            for x, any_size in zip(inputs, batched, strict=True)
        )
    )


def _check(
    net: nn.Module,
    compiled: CompiledNetwork,
    references: dict[str, TracedLayer],
    inputs: tuple[torch.Tensor, ...],
) -> None:
    """UserError naming the first layer that differs, if the results of both networks do."""
    expected = tensors_of(net(*copies(inputs)))
    worst = _worst(compiled, expected, inputs)
    if worst <= TOLERANCE:
        return
    _Compare(compiled.network, references).run(*copies(inputs))
    if (random := next(filter(draws, compiled.network.graph.nodes), None)) is not None:
        raise UserError(
            f"the network draws random numbers in '{module_name(random)}' ({random.target}), so "
            "its outputs cannot be compared\n"
            "  what to do: verify=False where that is meant; otherwise a network that draws none "
            "in evaluation mode, such as dropout with training=self.training"
        )
    # What amplifies small differences does so whatever computes it.
    alone = _worst(compiled.network, expected, inputs)
    if worst > TOLERANCE + _AMPLIFIED * alone:
        raise UserError(
            f"the compiled network differs by {worst:.1e} of the largest output, and by "
            f"{alone:.1e} where its kernels are called one by one\n"
            "  what to do: report this, with the network; verify=False skips the comparison"
        )
    if worst > _NETWORK_TOLERANCE:
        raise UserError(
            "the compiled network differs from the network: "
            f"by {worst:.1e} of the largest output\n"
            "  though each layer differs by no more than "
            f"{TOLERANCE:.0e} from its operator: the network amplifies differences"
        )


def _worst(
    network: nn.Module, expected: Sequence[torch.Tensor], inputs: tuple[torch.Tensor, ...]
) -> float:
    """The largest difference of the results of a network; infinity where there are others."""
    found = tensors_of(network(*copies(inputs)))
    if len(found) != len(expected):
        return math.inf
    return max((difference(a, b) for a, b in zip(found, expected, strict=True)), default=0.0)


class _Compare(fx.Interpreter):
    """Runs a graph, and compares each compiled layer with the operator in PyTorch."""

    def __init__(self, graph: fx.GraphModule, references: dict[str, TracedLayer]) -> None:
        super().__init__(graph)
        self.extra_traceback = False  # the error is about the layer, not about this graph
        self.references = references

    def call_module(self, target, args, kwargs):  # type: ignore[no-untyped-def]
        found = super().call_module(target, args, kwargs)
        layer = self.references.get(target)
        if layer is not None:
            error = difference(found, layer(*args, **kwargs))
            if error > TOLERANCE:
                raise UserError(
                    f"the kernel of the layer '{layer.name}' differs from its operator: "
                    f"by {error:.1e} of the largest output\n"
                    f"  expected: at most {TOLERANCE:.0e}\n"
                    "  what to do: report this, with the network; verify=False skips the comparison"
                )
        return found
