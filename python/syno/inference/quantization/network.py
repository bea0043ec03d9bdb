"""A trained network in INT8, for code that runs its layers on integers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx, nn
from torch.utils._pytree import tree_map, tree_map_only

from syno._util.arguments import checked, texts
from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno._util.tables import Table
from syno._util.tensors import check_network
from syno.inference.layer import TracedLayer
from syno.inference.passes.layers import layers_of
from syno.inference.precision import FLOAT32, INT8
from syno.inference.prepare import prepare_sample
from syno.inference.quantization.choose import Chosen, Recorder
from syno.inference.trace import module_name
from syno.network.calibration import checked_batches


@dataclass(frozen=True)
class QuantizedRow:
    """A layer in the report. format: "int8" or "float32"; reason: why it is no integers; error: the
    root of the mean square of what quantization changes in its result, as a share of that of the
    result."""

    name: str
    kind: str
    format: str
    reason: str
    error: float


class QuantizedNetwork(nn.Module):
    """What `syno.quantize` returns: the network with values rounded to codes of 8 bits.

    It computes in float32 what code for it computes on integers, sample by sample. Code in the
    format cpp-network is fast.

    rows: the report; images: on how many samples the ranges were taken.
    """

    # What `export_network` writes it in.
    syno_precision = INT8

    def __init__(self, graph: fx.GraphModule, rows: Sequence[QuantizedRow], images: int) -> None:
        super().__init__()
        self.graph = graph
        self.rows = tuple(rows)
        self.images = images
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
        """Which layers compute on integers, what that changes, and why others do not."""
        return Table.of(
            self.rows,
            ("layer", lambda row: row.name),
            ("kind", lambda row: row.kind),
            ("format", lambda row: row.format),
            ("error", lambda row: f"{100 * row.error:.2f} %"),
            ("because~", lambda row: row.reason),
        ).without_empty()


def _outline(x: torch.Tensor) -> torch.Tensor:
    """The shape and the type of a tensor."""
    return torch.empty(x.shape, dtype=x.dtype, device="meta")


@checked(keep=texts)
def quantize(
    net: nn.Module, calibration: Iterable[torch.Tensor], *, keep: Sequence[str] = ()
) -> QuantizedNetwork:
    """Return a trained network in INT8, by post-training quantization; `net` stays as it is.

    Operators in slots, convolutions and linear layers multiply integers of 8 bits: weights with a
    scale for each output channel, and data as codes with a scale and a zero for each tensor, which
    are those of least square error on the samples. Values between layers are stored as codes.
    `syno.export.export_network` writes the result in the format cpp-network.

    Args:
        net: in evaluation mode on the CPU, with one input.
        calibration: batches [n, ...] as the network sees them; about 300 samples are enough.
        keep: names of modules whose layers stay in float32.

    Raises:
        UserError: calibration data that is no batches of finite numbers, a network that cannot be
            traced for a single sample, one without a layer to quantize, an unknown name in `keep`.
    """
    if isinstance(net, QuantizedNetwork):
        raise UserError(
            "the network is quantized already\n  expected: the network that it was made from"
        )
    check_network(net)
    if net.training:
        raise UserError(
            f"the network {type(net).__name__} is in training mode\n"
            "  expected: evaluation mode      what to do: call net.eval() first"
        )
    batches = checked_batches(calibration)
    first = next(batches)
    graph = prepare_sample(net, first).graph
    plain = copy_network(graph)
    chosen = Chosen(graph, keep)
    images = 0
    recorder = Recorder(graph, chosen)
    with torch.no_grad():
        for batch in itertools.chain([first], batches):
            for sample in batch.split(1):
                recorder.run(sample)
                images += 1
        chosen.apply(recorder)
        rows = _rows(plain, graph, chosen.reasons, first[:8])
    if not any(row.format == INT8 for row in rows):
        raise UserError(
            f"the network {type(net).__name__} has no layer to quantize\n"
            "  expected: a convolution, a linear layer or an operator that has a kernel"
        )
    return QuantizedNetwork(graph, rows, images)


class _Kept(fx.Interpreter):
    """Runs a graph, and keeps the results of layers by their names."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        self.found: dict[str, torch.Tensor] = {}

    def call_module(self, target, args, kwargs):  # type: ignore[no-untyped-def]
        """The value of a layer."""
        self.found[target] = value = super().call_module(target, args, kwargs)
        return value


def _rows(
    plain: fx.GraphModule,
    graph: fx.GraphModule,
    reasons: Mapping[str, str],
    samples: torch.Tensor,
) -> list[QuantizedRow]:
    """The report, with the errors for some samples."""
    errors: dict[str, list[float]] = {}
    for sample in samples.split(1):
        both = [_Kept(plain), _Kept(graph)]
        for each in both:
            each.run(sample)
        for name, exact in both[0].found.items():
            size = float(exact.square().mean()) or 1.0
            off = float((both[1].found[name] - exact).square().mean()) / size
            errors.setdefault(name, []).append(off)
    rows = []
    for node, layer in layers_of(graph).items():
        assert isinstance(layer, TracedLayer)
        found = errors[str(node.target)]
        form = FLOAT32 if layer.codes is None else INT8
        error = (sum(found) / len(found)) ** 0.5
        rows.append(QuantizedRow(layer.name, layer.kind, form, reasons.get(layer.name, ""), error))
    return rows
