"""Imports torchvision beside a torch its compiled part was not built for.

torchvision's wheels carry operators compiled against one build of torch. Beside another, such as a
torch for the CPU alone, these do not load, and then `import torchvision` fails, because it
registers shape rules for the operators `torchvision::nms` and `torchvision::qnms` that do not
exist. Models, transforms and data sets need neither. Declaring the schemas of both, without code,
lets the import go through; calling them is an error as before. Where the compiled part loads,
nothing is declared.

timm imports torchvision, too: import it after this.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

# As in torchvision/csrc/ops/nms.cpp and its quantized form.
_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}

# The declarations live as long as this object.
_library: object = None


def import_torchvision() -> ModuleType:
    """The package torchvision. ImportError where it is not installed."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    # Half of the package is imported; the other half comes anew.
    for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    _declare()
    return importlib.import_module("torchvision")


def _declare() -> None:
    global _library
    import torch

    if _library is not None:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in _SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            library.define(schema)
    _library = library
