"""Networks by name: small ones, those of the paper, and those of timm.

Needs torch once one is built, and the extras `vision` and `language` for those of other packages.
"""

from syno.network.models.info import Built, Images, ModelInfo, ModelOption
from syno.network.models.registry import build, built, describe, list_models
from syno.network.models.substitution import slots
from syno.network.models.summary import Summary, summarise

__all__ = [
    "Built",
    "Images",
    "ModelInfo",
    "ModelOption",
    "Summary",
    "build",
    "built",
    "describe",
    "list_models",
    "slots",
    "summarise",
]
