"""What a model has for operators: its slots, their sizes, its costs. Without its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.network.models.registry import build, built, describe
from syno.network.models.substitution import slots

if TYPE_CHECKING:
    from torch import nn

    from syno.network.layers import LayerReport


@dataclass(frozen=True)
class Summary:
    """A model with slots.

    input_shape: of one sample: (channels, size, size), or (context,) for token ids.
    report: every layer; bindings: (sizes, how many slots have them).
    macs, params: of the whole original network for one sample; slot_macs, slot_params: of the
        layers that operators may replace.
    """

    name: str
    input_shape: tuple[int, ...]
    report: LayerReport
    bindings: list[tuple[dict[str, int], int]]
    macs: int
    params: int
    slot_macs: int
    slot_params: int

    @property
    def slots(self) -> int:
        """How many layers an operator may replace."""
        return len(self.report.slots)

    def to_json(self) -> JsonObject:
        """The numbers, as data."""
        info = describe(self.name)
        return {
            "name": self.name,
            "summary": info.summary,
            "package": info.package,
            "preset": info.preset,
            "input_shape": list(self.input_shape),
            "slots": self.slots,
            "bindings": [sizes for sizes, _ in self.bindings],
            "multiplicities": [count for _, count in self.bindings],
            "macs": self.macs,
            "params": self.params,
            "slot_macs": self.slot_macs,
            "slot_params": self.slot_params,
        }


def summarise(name: str, **given: Any) -> Summary:
    """The summary of a model; `given` are arguments of `build`. UserError as there."""
    from syno.network.surgery import layer_report

    net = slots(_without_weights(name, given))
    report = layer_report(net)
    rows = report.slots
    return Summary(
        name=name,
        input_shape=built(net).input_shape,
        report=report,
        bindings=report.bindings(),
        macs=report.macs or 0,
        params=report.params or 0,
        slot_macs=sum(row.macs or 0 for row in rows),
        slot_params=sum(row.params for row in rows),
    )


def _without_weights(name: str, given: Mapping[str, Any]) -> nn.Module:
    """The model on torch's meta device, which draws and keeps no weights."""
    import torch

    if "weights" in given:
        return build(name, **given)
    try:
        with torch.device("meta"):
            return build(name, **given)
    except (RuntimeError, NotImplementedError):
        # Some networks of timm look at values while they are built.
        return build(name, **given)


Entry = dict[str, Any]  # a row of the list of models: as `Summary.to_json`, or what is missing


def entry(name: str) -> Entry:
    """A model as plain values; one whose package is missing with what brings it."""
    try:
        return summarise(name).to_json()
    except UserError as error:
        info = describe(name)
        return {
            "name": name,
            "summary": info.summary,
            "package": info.package,
            "preset": info.preset,
            "missing": str(error),
        }
