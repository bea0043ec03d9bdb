"""A network library of a graph, compiled and loaded."""

from __future__ import annotations

import tempfile
from pathlib import Path

from torch import fx

from syno.inference.library.load import NetworkLibrary, load
from syno.inference.library.lower import lower
from syno.inference.library.source import emit


def built(graph: fx.GraphModule, precision: str) -> NetworkLibrary:
    """The library of a graph that was traced for a single sample; the cache keeps its code."""
    source = emit(lower(graph), "net", precision, tuned=True)
    with tempfile.TemporaryDirectory(prefix="syno-network-") as folder:
        code = Path(folder) / "net.cpp"
        code.write_text(source.code, encoding="utf-8")
        code.with_suffix(".bin").write_bytes(source.weights)
        return load(code)
