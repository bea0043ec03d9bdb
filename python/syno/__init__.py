"""Syno: operator synthesis for neural networks.

`import syno` needs no torch; what builds a module imports it then.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from syno import _helper_process as _helper_process  # notes the current folder
from syno._core import __version__
from syno._errors import InternalError, UserError
from syno.explanation import explain, why_not
from syno.operator import Operator
from syno.rule_check import check_rule
from syno.rules import PartialGraph, Rule, rule
from syno.sampler import Sampler
from syno.space import Space
from syno.spec import Specification
from syno.substitute import LayerReport, conv2d, layer_report, linear, replace, substitute
from syno.tree import Tree, TreeNode
from syno.walks import Walks, walk

if TYPE_CHECKING:
    from syno.placeholder import Placeholder, slots
    from syno.study.search import resume, search

# Names of modules that need torch or the database, loaded when they are asked for.
_LAZY = {
    "Placeholder": "syno.placeholder",
    "resume": "syno.study.search",
    "search": "syno.study.search",
    "slots": "syno.placeholder",
}

__all__ = [
    "InternalError",
    "LayerReport",
    "Operator",
    "PartialGraph",
    "Placeholder",
    "Rule",
    "Sampler",
    "Space",
    "Specification",
    "Tree",
    "TreeNode",
    "UserError",
    "Walks",
    "__version__",
    "check_rule",
    "conv2d",
    "explain",
    "layer_report",
    "linear",
    "replace",
    "resume",
    "rule",
    "search",
    "slots",
    "substitute",
    "walk",
    "why_not",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'syno' has no attribute '{name}'")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
