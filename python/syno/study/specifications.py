"""The spaces of operators that a search takes where none is given: for images and for text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syno.spec import Specification

if TYPE_CHECKING:
    from syno.study.network import Network


def small_vision(**changes: Any) -> Specification:
    """Square convolutions of networks for images of 8 to 64 pixels; bindings from the network.

    The paper's setting for vision with what small networks need: windows of 3 on maps of 4 pixels
    (the paper asks for maps of 2.3 windows), smaller weights. Few variables and no Merge: a small
    budget of nodes then reaches the depth at which operators have windows and two weights.
    changes: arguments of Specification or limits that replace these.
    """
    settings: dict[str, Any] = {
        "input": "[N, C_in: unordered, H, H]",
        "output": "[N, C_out: unordered, H, H]",
        "primary": ["N: 0", "C_in: 2", "C_out: 4", "H: 0"],
        "coefficient": ["k=3: 2", "s=2: 1"],
        "passed_through": [(0, 0)],
        "max_depth": 10,
        "max_splits": 1,
        "max_shifts": 1,
        "min_unfold_ratio": 1.3,
        "min_weight_params": 16,
        "max_merges": 0,
    }
    return Specification(**settings | changes)


def small_text(**changes: Any) -> Specification:
    """Projections of small language models; bindings from the network.

    Positions are marked causal: windows end at their position, and an operator that reads a later
    one is no part of the space. An output is not unordered: heads are cut out of it.
    changes: arguments of Specification or limits that replace these.
    """
    settings: dict[str, Any] = {
        "input": "[N, seq_len: causal, H_in: unordered]",
        "output": "[N, seq_len: causal, H_out]",
        "primary": ["N: 0", "seq_len: 0", "H_in: 3", "H_out: 3"],
        "coefficient": ["k=3: 2", "g=8: 2"],
        "passed_through": [(0, 0)],
        "max_depth": 7,
        "max_merges": 2,
        "max_splits": 2,
        "min_weight_params": 16,
        "max_repeat": 3,
    }
    return Specification(**settings | changes)


def specification_for(
    given: Specification | str | None, limits: dict[str, Any], network: Network
) -> Specification:
    """The default asks for operators that cost no more than the layers they replace."""
    if given is None:
        usual = small_vision if network.vocabulary is None else small_text
        return usual(**{"max_macs": network.macs or 0} | limits)
    found = Specification.preset(given) if isinstance(given, str) else given
    if not limits:
        return found
    # Limits that are given here are about the network, not about the layers of a preset.
    totals = dict.fromkeys(("min_macs", "max_macs", "min_params", "max_params"), 0)
    dropped = {"bindings": [], **totals} if found.full_bindings else {}
    return found.with_changes(**dropped | limits)
