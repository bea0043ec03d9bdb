"""Operators as files that run without Syno. Needs torch and safetensors to write them."""

from syno.export.torch_files import Exported, export, export_slots

__all__ = ["Exported", "export", "export_slots"]
