"""A network in the number format of an engine: how fast and how good it is without training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from syno.adaptation.pipeline.assembly import plain
from syno.adaptation.pipeline.results import CALIBRATION, AdaptedNetwork, NetworkRow
from syno.engines import engine as engines
from syno.engines.engine_network import EngineNetwork

if TYPE_CHECKING:
    from syno.adaptation.pipeline.run import AdaptationRun

OWN_INT8 = "syno-cpp-int8"


def in_format(
    run: AdaptationRun, engine: str, network: AdaptedNetwork | None = None
) -> tuple[NetworkRow, EngineNetwork]:
    """The original, or a network, in an engine; the journal remembers what was measured.

    Raises:
        UserError: the engine cannot run the network.
    """
    subject, options = run.subject, run.options
    name = "original" if network is None else network.name
    net = plain(subject.original) if network is None else network.net
    made = EngineNetwork(
        engines.get(engine), net, subject.example, subject.inputs(CALIBRATION), options.threads
    )

    def measure() -> dict[str, float]:
        return {"value": subject.value(made), "ratio": run.clock.ratio_of(made.once)}

    key = engine if network is None else f"{name} in {engine}"
    found = run.journal.once("int8 engine", key, measure)
    is_int8 = engines.get(engine).precision == engines.INT8
    row = NetworkRow(
        name=f"{name}, {engine}",
        about=f"calibrated on {CALIBRATION} training samples" if is_int8 else "the same network",
        value=found["value"],
        ratio=found["ratio"],
        latency_ms=found["ratio"] * run.journal.get("original", "")["latency_ms"],
        engine=engine,
        way="INT8" if engine == OWN_INT8 else "original, other number formats",
    )
    return row, made


def deliverable(row: NetworkRow, net: nn.Module | None) -> AdaptedNetwork | None:
    """A rival as a network that can be written; None for one of another engine."""
    if isinstance(net, EngineNetwork):
        own = engines.get(row.engine).own
        return AdaptedNetwork(row, (), net.net) if own else None
    return None if net is None else AdaptedNetwork(row, (), net)
