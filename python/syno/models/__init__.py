"""Small reference networks for images, each found by name. Needs torch once one is built."""

from syno.models.registry import ModelInfo, Option, build, describe, list_models
from syno.models.substitution import slots

__all__ = ["ModelInfo", "Option", "build", "describe", "list_models", "slots"]
