"""What a model has for operators: its slots, their sizes, its costs. Without its weights."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, TypedDict

from syno.network.models.extras import missing_package
from syno.network.models.info import ModelInfo, ModelOptions
from syno.network.models.registry import build, built, describe, list_models
from syno.network.models.substitution import slots

if TYPE_CHECKING:
    from torch import nn

    from syno.network.layers import LayerReport


class Entry(TypedDict, total=False):
    """A row of the list of models: a `Summary` as plain values, or what is missing."""

    name: str
    summary: str
    package: str | None
    preset: str | None
    input_shape: list[int]
    slots: int
    bindings: list[dict[str, int]]
    multiplicities: list[int]
    macs: int
    params: int
    slot_macs: int
    slot_params: int
    missing: str


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

    def to_json(self) -> Entry:
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


def summarise(name: str, **given: int | str) -> Summary:
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


def _without_weights(name: str, given: ModelOptions) -> nn.Module:
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


def entries() -> list[Entry]:
    """Every model as plain values; one whose package is missing with what brings it.

    The values are those of `summarise`, read from a file that a test compares with it, because
    building all models takes many seconds.
    """
    stored = json.loads(files("syno.network.models").joinpath("summaries.json").read_text("utf-8"))
    return [_entry(describe(name), stored[name]) for name in list_models()]


def _entry(info: ModelInfo, stored: Entry) -> Entry:
    package = info.package
    if package is None or importlib.util.find_spec(package) is not None:
        return {"name": info.name, **stored}
    return {
        "name": info.name,
        "summary": info.summary,
        "package": package,
        "preset": info.preset,
        "missing": missing_package(package, f"model '{info.name}'", package),
    }
