"""Small reference networks for images, each found by name. Needs torch once a network is built."""

from syno.models.registry import ModelInfo, Option, build, describe, list_models

__all__ = ["ModelInfo", "Option", "build", "describe", "list_models"]
