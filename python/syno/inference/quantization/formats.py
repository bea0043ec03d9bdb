"""A number format for each layer of a network, by measured latencies and errors."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence, Set

import torch
from torch import nn

from syno._util.inputs import Inputs, samples_of
from syno.data import progress
from syno.inference.library.built import built
from syno.inference.library.load import NetworkLibrary
from syno.inference.precision import AUTO, BFLOAT16, FLOAT32, INT8
from syno.inference.quantization.costs import LayerCosts, costs_of
from syno.inference.quantization.layers import KEPT
from syno.inference.quantization.network import (
    SAMPLES,
    QuantizedNetwork,
    in_formats,
    quantized,
)
from syno.network.choice import Choices

MOST_ERROR = 0.05
# How often a choice is made again, with a lower bound, whose errors together are above the bound.
_ROUNDS = 4
_SAFE = 0.97
# Calls of each network that is compared, in turns.
_CALLS = 48


def with_formats(
    net: nn.Module, batches: Sequence[Inputs], *, keep: Sequence[str], most_error: float
) -> QuantizedNetwork:
    """`syno.quantize` with a format for each layer.

    Of what the integer program chooses and the networks with one format everywhere, it returns the
    one that was measured to be the fastest among those within the bound.
    """
    threads = torch.get_num_threads()
    samples = [x for batch in batches for x in samples_of(batch)][:SAMPLES]
    with progress.bar("choosing number formats", 5) as advance:
        whole, graph = quantized(net, batches, keep=keep)
        kept = {row.name for row in whole.rows if row.reason == KEPT}
        names = [row.name for row in whole.rows]
        if not names:
            return whole

        def everywhere(form: str) -> QuantizedNetwork:
            formats = {name: FLOAT32 if name in kept else form for name in names}
            return in_formats(net, samples, formats, keep=keep)

        uniform = {INT8: whole} | {form: everywhere(form) for form in (FLOAT32, BFLOAT16)}
        advance(1)
        libraries = {form: built(made.graph, INT8) for form, made in uniform.items()}
        advance(1)
        costs = costs_of(graph, uniform, libraries, samples, threads)
        advance(1)

        def made(formats: Mapping[str, str]) -> QuantizedNetwork:
            reasons = {name: (form, _why(costs, name, form)) for name, form in formats.items()}
            return quantized(net, batches, keep=keep, formats=reasons)[0]

        tried = {form: (uniform[form], libraries[form]) for form in uniform}
        if (found := chosen(costs, kept, most_error, made)) is not None:
            tried[AUTO] = found, built(found.graph, INT8)
        advance(1)
        within = [
            both for form, both in tried.items() if form == FLOAT32 or both[0].error <= most_error
        ]
        best = _fastest(within, samples[0], threads)
        advance(1)
    best.rows = tuple(
        dataclasses.replace(
            row,
            seconds=costs.seconds[row.name],
            errors={form: math.sqrt(square) for form, square in costs.errors[row.name].items()},
        )
        for row in best.rows
    )
    return best


def chosen(
    costs: LayerCosts,
    kept: Set[str],
    most_error: float,
    made: Callable[[Mapping[str, str]], QuantizedNetwork],
) -> QuantizedNetwork | None:
    """The network that the integer program chooses; None where none is within the bound.

    kept: layers that stay in float32; made: returns the network with formats of its layers. Errors
    of layers are added as if they were independent, and the bound is lowered where they are not.
    """
    allowed = {
        name: [FLOAT32] if name in kept else list(seconds)
        for name, seconds in costs.seconds.items()
    }
    names = list(allowed)
    places = {name: place for place, name in enumerate(names)}
    choices = Choices(
        [[costs.seconds[name][form] for form in allowed[name]] for name in names],
        {"error": [[costs.errors[name][form] for form in allowed[name]] for name in names]},
        {
            (places[a], places[b]): [
                [seconds * ((one == INT8) != (other == INT8)) for other in allowed[b]]
                for one in allowed[a]
            ]
            for (a, b), seconds in costs.conversions.items()
        },
    )
    bound = most_error
    for _ in range(_ROUNDS):
        best = choices.best({"error": bound**2})
        found = made({name: allowed[name][c] for name, c in zip(names, best.choice, strict=True)})
        if found.error <= most_error:
            return found
        bound = math.sqrt(best.costs["error"]) * _SAFE * most_error / found.error
    return None


def _why(costs: LayerCosts, name: str, form: str) -> str:
    """Why a layer has this format and no integers."""
    if INT8 not in costs.seconds[name] or form == INT8:
        return ""
    if costs.seconds[name][form] < costs.seconds[name][INT8]:
        return "it is faster"
    return "integers change more, or need conversions"


def _fastest(
    networks: Sequence[tuple[QuantizedNetwork, NetworkLibrary]],
    sample: tuple[torch.Tensor, ...],
    threads: int,
) -> QuantizedNetwork:
    """The network whose library has the least median latency, in turns."""
    arrays = [x.numpy() for x in sample]
    seconds: list[list[float]] = [[] for _ in networks]
    for _ in range(_CALLS):
        for times, (_, library) in zip(seconds, networks, strict=True):
            library(*arrays, threads=threads)
            began = time.perf_counter()
            library(*arrays, threads=threads)
            times.append(time.perf_counter() - began)
    medians = [sorted(times)[len(times) // 2] for times in seconds]
    return networks[medians.index(min(medians))][0]
