"""The model card of an adapted network: how good and how fast it is, and what it is made of."""

from __future__ import annotations

import json

from torch import nn

from syno._util.numbers import counted
from syno._util.tables import Table
from syno.adaptation.pipeline.results import (
    AdaptationResults,
    AdaptedNetwork,
    blocks_table,
    slots_table,
    widths_table,
)
from syno.inference.quantization.network import QuantizedNetwork


def card(found: AdaptationResults, adapted: AdaptedNetwork | None, net: nn.Module) -> str:
    """Sections in Markdown.

    adapted: the network, None for the original; net: as it is written, perhaps quantized.
    """
    row = found.original if adapted is None else adapted.row
    parts = [
        f"The network of the adaptation `{found.study}` "
        + ("before it was adapted." if adapted is None else f"for the goal {adapted.name}."),
        "## Results",
        _results(found, row.name).markdown(),
        _about(found),
        *(f"The network {mark}." for mark in (found.marks(row) if row.goals else [])),
    ]
    if adapted is not None and adapted.slots:
        parts += ["## Operators", slots_table(adapted.slots).markdown()]
    if adapted is not None and adapted.widths:
        parts += ["## Channels", widths_table(adapted.widths).markdown()]
    if adapted is not None and adapted.blocks:
        parts += ["## Left out", blocks_table(adapted.blocks).markdown()]
    if isinstance(net, QuantizedNetwork):
        parts += [
            "## Number formats",
            "The error is that of what a layer gives, with the layers before it, relative to that "
            "in float32.",
            net.report().markdown(),
        ]
    parts += ["## Settings", f"```json\n{json.dumps(found.settings, indent=2)}\n```"]
    return "\n\n".join(parts)


def _results(found: AdaptationResults, name: str) -> Table:
    """The original and the network."""
    whole = found.table()
    names = whole.names()
    place = names.index("network")
    rows = tuple(row for row in whole.rows if row[place] in (found.original.name, name))
    return Table(whole.headings, rows).without_empty()


def _about(found: AdaptationResults) -> str:
    """In which engine, on which machine, and with which versions."""
    facts = found.environment
    libraries = facts.get("libraries")
    versions = libraries if isinstance(libraries, dict) else {}
    commit = f", commit {facts['commit']}" if facts.get("commit") else ""
    return (
        f"Latencies are those of one sample in the engine {found.original.engine} with "
        f"{counted(int(str(facts.get('threads', 1))), 'thread')}, measured in turns with the "
        f"original on {facts.get('device')}, {facts.get('platform')}. Versions: "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + f"{commit}."
    )
