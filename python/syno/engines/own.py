"""Syno's own engines: `syno.compile`, and a network as one C++ library."""

from __future__ import annotations

from syno.engines.engine import Engine

ENGINES: dict[str, Engine] = {}
