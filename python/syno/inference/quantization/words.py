"""Layers that read fewer channels than a word has codes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import fx

from syno.inference.codes import WORD
from syno.inference.layer import TracedLayer

_CHANNELS = "C_in"
# The entry of `meta` of a node that adds channels of zeros.
WORDS = "syno_words"


def pad_channels(graph: fx.GraphModule, node: fx.Node, layer: TracedLayer) -> None:
    """Lets a convolution of fewer than four channels read channels of zeros, too.

    The products of a word of four codes are computed by one instruction.
    """
    found = layer.computation
    operator, count = found.operator, found.binding.get(_CHANNELS, WORD)
    before = operator.shapes(found.binding)
    if count >= WORD or len(before.input) < 3 or before.input[1] != count:
        return
    larger = dataclasses.replace(found, binding={**found.binding, _CHANNELS: WORD})
    after = operator.shapes(larger.binding)
    if len(layer.weights) != 1 or list(after.input[2:]) != list(before.input[2:]):
        return
    layer.computation = larger
    layer.set_weights([_extended(layer.weights[0], after.weights[0])])
    source = node.args[0]
    assert isinstance(source, fx.Node)
    zeros = [*[0] * 2 * (len(before.input) - 2), 0, WORD - count]
    with graph.graph.inserting_before(node):
        padded = graph.graph.call_function(torch.ops.aten.constant_pad_nd.default, (source, zeros))
    value = source.meta["val"]
    padded.meta = {**source.meta, "val": value.new_empty([value.shape[0], WORD, *value.shape[2:]])}
    padded.meta[WORDS] = True
    node.update_arg(0, padded)


def _extended(weight: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A weight with zeros behind its elements in every dimension."""
    made = weight.new_zeros(list(shape))
    made[tuple(slice(0, size) for size in weight.shape)] = weight
    return made
