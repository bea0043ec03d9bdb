"""Operators and networks as files that run without Syno. Needs torch to write them."""

from syno.codegen.export.formats import Exported
from syno.codegen.export.write import export, export_network, export_slots

__all__ = ["Exported", "export", "export_network", "export_slots"]
