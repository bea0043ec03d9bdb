"""A network with layers to compile, in the graph that both ways to run it begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import fx, nn

from syno._util.errors import UserError
from syno.inference.passes.clean import (
    fold_constants,
    merge_equal,
    merge_sizes,
    remove_identities,
    remove_writes,
)
from syno.inference.passes.epilogues import fold_epilogues
from syno.inference.passes.gelu import fuse_gelu
from syno.inference.passes.layers import Kept, put_layers
from syno.inference.passes.results import origins, separate_results
from syno.inference.passes.shapes import merge_reshapes
from syno.inference.passes.sink import sink_moves
from syno.inference.samples.place import SamplePlace
from syno.inference.samples.proof import places_of_results, readers_of_results
from syno.inference.samples.single import for_one, squeezed_batch
from syno.inference.trace import Outline, Traced, changed_inputs, trace


@dataclass(frozen=True)
class Prepared:
    """graph: with a `TracedLayer` in place of every layer that an operator can be; kept: the
    others; batch: whether the graph takes any batch size. readers: the numbers of the inputs that
    each result depends on, where there are several with a batch whose samples do not meet.
    squeezed: the module because of which it takes batches of two samples or more (see
    `squeezed_batch`), else empty."""

    graph: fx.GraphModule
    kept: list[Kept]
    batch: bool
    readers: list[frozenset[int]] | None = None
    squeezed: str = ""


def prepare(
    net: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    *,
    batch: bool,
    convolutions: bool = True,
    outline: Outline | None = None,
) -> Prepared:
    """The graph of a network in evaluation mode, with what follows a layer folded into it.

    batch: the first dimension is to take any size, where that is possible; outline: of the network,
    which then need not be traced.

    UserError where torch cannot trace the network.
    """
    traced = (outline and outline.traced(net)) or trace(net, inputs, batch=batch)
    squeezed = squeezed_batch(traced.graph) if traced.batch else ""
    if squeezed and any(len(x) == 1 for x in inputs):
        traced, squeezed = trace(net, inputs, batch=False), ""
    return replace(folded(traced, convolutions=convolutions), squeezed=squeezed)


def prepare_sample(net: nn.Module, *inputs: torch.Tensor) -> Prepared:
    """The graph of a network for a single sample, as `prepare` makes it.

    UserError where torch cannot trace the network for a batch of any size, where samples may depend
    on each other, or where the first dimension of the result is not the batch.
    """
    traced = trace(net, inputs, batch=True, loops=True)
    if not traced.batch:
        raise UserError(
            f"the network {type(net).__name__} takes one size of the batch only\n"
            "  expected: a network whose operations do not depend on the size of the batch\n"
            "  what to do: use syno.compile, which is for that size then"
        )
    changed = changed_inputs(traced.graph)
    if changed:
        raise UserError(
            f"the network {type(net).__name__} changes its input '{changed[0].name}' in place\n"
            "  expected: a network that leaves its input as it is      what to do: x = x.clone()"
        )
    remove_writes(traced.graph)
    for place in places_of_results(traced.graph):
        if place != SamplePlace(0):
            raise UserError(
                "the first dimension of the network's result is not the batch\n"
                "  expected: a result [N, ...] of an input "
                + " and ".join(f"{['N', *x.shape[1:]]}" for x in inputs)
            )
    for_one(traced.graph)
    return folded(Traced(traced.graph, traced.layers, batch=False))


def folded(traced: Traced, *, convolutions: bool = True) -> Prepared:
    """A graph with layers, and with what follows a layer folded into it."""
    readers = readers_of_results(traced.graph) if traced.batch else None
    before = origins(traced.graph)
    with torch.no_grad():
        remove_writes(traced.graph)
        remove_identities(traced.graph)
        fold_constants(traced.graph)
        merge_equal(traced.graph)
        merge_sizes(traced.graph)
        fuse_gelu(traced.graph)
        kept = put_layers(traced, convolutions=convolutions)
        merge_reshapes(traced.graph)
        sink_moves(traced.graph)
        merge_reshapes(traced.graph)
        fold_epilogues(traced.graph)
        separate_results(traced.graph, before)
    graph = traced.graph.graph
    graph._tracer_cls = None  # torch.export's own cannot read a graph again that was pickled
    # A new module lacks the weights that are part of layers now.
    return Prepared(fx.GraphModule(traced.graph, graph), kept, traced.batch, readers)
