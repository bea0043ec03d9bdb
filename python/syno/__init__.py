"""Syno: operator synthesis for neural networks.

`import syno` needs no torch; what builds a module imports it then.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from syno._core import __version__
from syno._util.errors import InternalError, UserError
from syno.network.sampler import Sampler
from syno.network.substitute import (
    LayerReport,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    layer_report,
    linear,
    replace,
    substitute,
)
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.runs import helper_process as _helper_process  # noqa: F401  (notes the current folder)
from syno.space.explanation import explain, why_not
from syno.space.options import SpaceOptions
from syno.space.rule_check import check_rule
from syno.space.rules import PartialGraph, Rule, rule
from syno.space.space import Space
from syno.space.tree import Tree, TreeNode
from syno.space.walks import Walks, walk

if TYPE_CHECKING:
    from syno.adaptation.pipeline.adapt import adapt
    from syno.adaptation.pipeline.adaptation import Adaptation
    from syno.inference.compiling import compile
    from syno.inference.quantization.quantize import quantize
    from syno.network import models
    from syno.network.placeholder import Placeholder, slots
    from syno.operators import zoo
    from syno.options import (
        AdaptOptions,
        IsolationOptions,
        RayOptions,
        TimingOptions,
        TrainOptions,
    )
    from syno.store import Outcome
    from syno.study.export_network import export_network
    from syno.study.results import StudyResults, load_study
    from syno.study.search import resume, search
    from syno.study.selection import select
    from syno.study.training.train import train_operators
    from syno.study_options import StudyOptions

# Names of modules that need torch or the database, loaded when they are asked for, and two modules.
_LAZY = {
    "AdaptOptions": "syno.options",
    "Adaptation": "syno.adaptation.pipeline.adaptation",
    "adapt": "syno.adaptation.pipeline.adapt",
    "IsolationOptions": "syno.options",
    "Outcome": "syno.store",
    "Placeholder": "syno.network.placeholder",
    "RayOptions": "syno.options",
    "StudyOptions": "syno.study_options",
    "StudyResults": "syno.study.results",
    "TimingOptions": "syno.options",
    "TrainOptions": "syno.options",
    "compile": "syno.inference",
    "export_network": "syno.study.export_network",
    "load_study": "syno.study.results",
    "models": "syno.network",
    "quantize": "syno.inference",
    "resume": "syno.study.search",
    "search": "syno.study.search",
    "select": "syno.study.selection",
    "slots": "syno.network.placeholder",
    "train_operators": "syno.study.training.train",
    "zoo": "syno.operators",
}
# Packages that nobody reaches as `syno.NAME`, as those whose names begin with "_".
_INTERNAL = ("cli", "launch", "operands")

__all__ = [
    "AdaptOptions",
    "Adaptation",
    "InternalError",
    "IsolationOptions",
    "LayerReport",
    "Operator",
    "Outcome",
    "PartialGraph",
    "Placeholder",
    "RayOptions",
    "Rule",
    "Sampler",
    "Space",
    "SpaceOptions",
    "Specification",
    "StudyOptions",
    "StudyResults",
    "TimingOptions",
    "TrainOptions",
    "Tree",
    "TreeNode",
    "UserError",
    "Walks",
    "__version__",
    "adapt",
    "check_rule",
    "compile",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "explain",
    "export_network",
    "layer_report",
    "linear",
    "load_study",
    "models",
    "quantize",
    "replace",
    "resume",
    "rule",
    "search",
    "select",
    "slots",
    "substitute",
    "train_operators",
    "walk",
    "why_not",
    "zoo",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        parent = importlib.import_module(_LAZY[name])
        if not hasattr(parent, name):
            importlib.import_module(f"{_LAZY[name]}.{name}")
        return getattr(parent, name)
    if name in _packages():
        return importlib.import_module(f"syno.{name}")
    # With the module, Python adds a similar name to the message.
    message = f"module 'syno' has no attribute '{name}'"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*__all__, *_packages()})


@functools.cache
def _packages() -> frozenset[str]:
    """The packages that pages name by their place in `syno`, loaded when they are asked for."""
    import pkgutil

    packages = (found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)
    return frozenset(p for p in packages if not p.startswith("_") and p not in _INTERNAL)
