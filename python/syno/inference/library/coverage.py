"""Which operators of ATen the network library computes, and how."""

from __future__ import annotations

from collections.abc import Iterable

from syno.inference.library import lower
from syno.inference.library.registry import CODE
from syno.inference.operators import CONVOLUTIONS, LINEAR_LAYERS
from syno.inference.passes.clean import IDENTITIES
from syno.inference.passes.epilogues import ACTIVATIONS


def covered() -> dict[str, tuple[str, ...]]:
    """The names of operators, without `aten.` and overload, by the way they are computed.

    What depends on weights alone is computed beforehand, whatever it is.
    """
    return {
        "compiled operators, in the shapes above": _names([*CONVOLUTIONS, *LINEAR_LAYERS]),
        "parts of a layer, or plain code": _names(ACTIVATIONS),
        "plain code": _names(CODE),
        "views": _names([*lower.VIEWS, *lower.RESHAPES]),
        "nothing: without effect at inference": _names(IDENTITIES),
    }


def _names(targets: Iterable[object]) -> tuple[str, ...]:
    return tuple(sorted({str(target).split(".")[1] for target in targets}))
