"""A trained network in INT8, for code that runs its layers on integers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx, nn
from torch.utils._pytree import tree_map, tree_map_only

from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments, samples_of
from syno._util.network_copy import copy_network
from syno._util.tables import Table
from syno._util.trial_calls import relative_square, tensors_of
from syno.inference.passes.layers import layers_of
from syno.inference.precision import BFLOAT16, INT8, PRECISIONS
from syno.inference.prepare import prepare_sample
from syno.inference.quantization.choose import Chosen, Recorder
from syno.inference.trace import module_name

# Samples that errors are computed for.
SAMPLES = 8
# Samples on which the two kinds of ranges are compared.
_COMPARED = 32
# Of layers by name: a number format, and why it is that.
Formats = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class QuantizedRow:
    """A layer in the report. format: "int8", "bfloat16" or "float32"; reason: why it is no
    integers; error: the root of the mean square of what quantization changes in its result, as a
    share of that of the result; macs: for one sample.

    seconds, errors: where formats were chosen, what the layer takes in each, and what it alone
    changes in the network's result, as such a share."""

    name: str
    kind: str
    format: str
    reason: str
    error: float
    macs: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)


class QuantizedNetwork(nn.Module):
    """What `syno.quantize` returns: the network with values rounded to codes of 8 bits.

    It computes in float32 what code for it computes on integers, sample by sample. Code in the
    format cpp-network is fast.

    rows: the report; images: on how many samples the ranges were taken; error: the root of the mean
    square of what it changes in the results for some of them, as a share of that of the results.
    """

    # What `export_network` writes it in.
    syno_precision = INT8

    def __init__(
        self, graph: fx.GraphModule, rows: Sequence[QuantizedRow], images: int, error: float
    ) -> None:
        super().__init__()
        self.graph = graph
        self.rows = tuple(rows)
        self.images = images
        self.error = error
        self.eval()

    def forward(self, *inputs: torch.Tensor) -> object:
        """The results for a batch of any size: the graph is that of a single sample."""
        if not inputs or not len(inputs[0]):
            raise UserError("the batch has no samples\n  expected: at least one")
        found = [self.graph(*(x[n : n + 1] for x in inputs)) for n in range(len(inputs[0]))]
        return tree_map(lambda *of_samples: torch.cat(of_samples), *found)

    def __getstate__(self) -> dict[str, object]:
        # A graph that is pickled is written as code, which says neither shapes nor modules.
        metas = [
            {
                "val": tree_map_only(torch.Tensor, _outline, node.meta.get("val")),
                "nn_module_stack": {"": (module_name(node), "")},
            }
            for node in self.graph.graph.nodes
        ]
        return self.__dict__ | {"_metas": metas}

    def __setstate__(self, state: dict[str, object]) -> None:
        metas = state.pop("_metas")
        super().__setstate__(state)
        for node, meta in zip(self.graph.graph.nodes, metas, strict=True):  # type: ignore[call-overload]
            node.meta = meta

    def report(self) -> Table:
        """Which layers compute on integers, what that changes, and why others do not.

        error: of what a layer gives, with those before it; in FORMAT: what the layer takes, and
        what it alone changes in the results, where formats were chosen.
        """
        return Table.of(
            self.rows,
            ("layer", lambda row: row.name),
            ("kind", lambda row: row.kind),
            ("format", lambda row: row.format),
            ("error", lambda row: _percent(row.error)),
            *((f"in {name}", lambda row, name=name: _cost(row, name)) for name in PRECISIONS),
            ("because~", lambda row: row.reason),
        ).without_empty()


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _cost(row: QuantizedRow, name: str) -> str:
    if name not in row.seconds:
        return ""
    return f"{1e6 * row.seconds[name]:.1f} us, {_percent(row.errors[name])}"


def _outline(x: torch.Tensor) -> torch.Tensor:
    """The shape and the type of a tensor."""
    return torch.empty(x.shape, dtype=x.dtype, device="meta")


def quantized(
    net: nn.Module,
    batches: Iterable[Inputs],
    *,
    keep: Sequence[str] = (),
    formats: Formats | None = None,
) -> tuple[QuantizedNetwork, fx.GraphModule]:
    """The network with its layers in INT8, but for those that are kept, and its graph in float32.

    batches: checked ones; keep: as `syno.quantize` has it; formats: those of layers, by name; the
    others multiply integers.

    Raises:
        UserError: as `syno.quantize`, but for a network in which nothing is quantized.
    """
    batches = iter(batches)
    first = next(batches)
    graph = prepare_sample(net, *arguments(first)).graph
    macs = {
        str(node.target): layer.computation.operator.macs(layer.computation.binding)
        for node, layer in layers_of(graph).items()
    }
    formats = formats or {}
    floats = {name: reason for name, (form, reason) in formats.items() if form != INT8}
    chosen = Chosen(graph, keep, floats)
    plain = copy_network(graph)
    recorder = Recorder(graph, chosen)
    images = 0
    samples: list[tuple[torch.Tensor, ...]] = []
    with torch.no_grad():
        for batch in itertools.chain([first], batches):
            for sample in samples_of(batch):
                _check_numbers(recorder.run(*sample))
                images += 1
                if images <= _COMPARED:
                    samples.append(sample)
        for layer in layers_of(graph).values():
            if formats.get(layer.name, ("",))[0] == BFLOAT16:
                layer.multiply_bfloat16()
        _apply(chosen, recorder, plain, samples)
        rows, error = _compared(plain, graph, chosen.reasons, macs, samples[:SAMPLES])
    return QuantizedNetwork(graph, rows, images, error), plain


def _apply(
    chosen: Chosen,
    recorder: Recorder,
    plain: fx.GraphModule,
    samples: Sequence[tuple[torch.Tensor, ...]],
) -> None:
    """Quantize with whole ranges, or with those of least square error.

    Those are taken that change the results less. What rarely occurs is cut off by the latter, and
    often is what the results depend on.
    """
    if not chosen.groups:
        return
    errors = {}
    for whole in (False, True):
        chosen.apply(recorder, whole=whole)
        squares = [relative_square(chosen.graph(*sample), plain(*sample)) for sample in samples]
        errors[whole] = sum(squares)
    if errors[False] < errors[True]:
        chosen.apply(recorder, whole=False)


def in_formats(
    net: nn.Module,
    batches: Iterable[Inputs],
    formats: Mapping[str, str],
    *,
    keep: Sequence[str] = (),
    reasons: Mapping[str, str] | None = None,
) -> QuantizedNetwork:
    """The network whose layers have known formats by their names; the others multiply integers.

    reasons: for the formats, by the same names. batches, keep, UserError: as `quantized` has them.
    Without a layer of integers there are no ranges, and one sample is enough.
    """
    given = {name: (form, (reasons or {}).get(name, "")) for name, form in formats.items()}
    return quantized(net, batches, keep=keep, formats=given)[0]


class _Kept(fx.Interpreter):
    """Runs a graph, and keeps the results of layers by their names."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        self.found: dict[str, torch.Tensor] = {}

    def call_module(self, target, args, kwargs):  # type: ignore[no-untyped-def]
        """The value of a layer."""
        self.found[target] = value = super().call_module(target, args, kwargs)
        return value


def _compared(
    plain: fx.GraphModule,
    graph: fx.GraphModule,
    reasons: Mapping[str, str],
    macs: Mapping[str, int],
    samples: Sequence[tuple[torch.Tensor, ...]],
) -> tuple[list[QuantizedRow], float]:
    """The report, and the error of the results, for some samples."""
    errors: dict[str, list[float]] = {}
    of_results = []
    for sample in samples:
        exact, rounded = _Kept(plain), _Kept(graph)
        of_results.append(relative_square(rounded.run(*sample), exact.run(*sample)))
        for name, value in exact.found.items():
            errors.setdefault(name, []).append(relative_square(rounded.found[name], value))
    rows = [
        QuantizedRow(
            layer.name,
            layer.kind,
            layer.precision if layer.codes is None else INT8,
            reasons.get(layer.name, ""),
            _root(errors[str(node.target)]),
            macs[str(node.target)],
        )
        for node, layer in layers_of(graph).items()
    ]
    return rows, _root(of_results)


def _check_numbers(results: object) -> None:
    """UserError for results that are no numbers."""
    if any(bool(each.isnan().any()) for each in tensors_of(results)):
        raise UserError(
            "the network computes NaN for the calibration data\n"
            "  expected: a trained network, and the inputs that it was trained on"
        )


def _root(squares: Sequence[float]) -> float:
    return math.sqrt(sum(squares) / len(squares))
