"""The spaces of operators that a search takes where none is given: for images and for text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syno.operators.specification import NO_TOTALS, Specification

if TYPE_CHECKING:
    from syno.study.evaluate.network import Network

# Windows of multiply-adds of the paper's experiments: shares of those of the whole network, the
# layers that no operator replaces counted in.
PAPER_MACS_SHARES = {
    "paper/resnet18": (0.15, 0.9),
    "paper/resnet34": (0.15, 0.9),
    "paper/resnext29_2x64d": (0.15, 0.95),
    "paper/efficientnet_v2_s": (0.5, 0.9),
    "paper/densenet121": (0.15, 1.0),
    "paper/gpt2": (0.1, 1.2),
}


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
    """What is asked for, with layers and costs of the network.

    The default asks for operators that cost no more than the layers they replace; a preset of the
    paper has its window of multiply-adds for this network, not for its own layers.
    """
    if given is None:
        usual = small_vision if network.vocabulary is None else small_text
        return usual(**{"max_macs": network.macs or 0} | limits)
    if isinstance(given, str):
        found = Specification.preset(given)
        limits = macs_window(given, network) | limits
    else:
        found = given
    if not limits:
        return found
    # Limits that are given here are about the network, not about the layers of a preset.
    dropped = {"bindings": [], **NO_TOTALS} if found.full_bindings else {}
    return found.with_changes(**dropped | limits)


def macs_window(preset: str, network: Network) -> dict[str, int]:
    """`min_macs` and `max_macs` of the operators in a network for one sample, by the paper's shares
    of the preset; none where it names none, or the network was not seen at work."""
    if preset not in PAPER_MACS_SHARES or network.macs is None or network.all_macs is None:
        return {}
    kept = network.all_macs - network.macs
    low, high = (round(share * network.all_macs - kept) for share in PAPER_MACS_SHARES[preset])
    # At least 1: a limit of 0 is none.
    return {"min_macs": max(low, 0), "max_macs": max(high, 1)}


def usual_model(preset: str | None, data: str, data_dir: str | None) -> str:
    """The model whose layers a preset of the paper is about; a small one for any other."""
    from syno.data import is_text_data
    from syno.network.models.catalogue import MODELS

    found = [model.name for model in MODELS if preset is not None and model.preset == preset]
    if found:
        return found[0]
    return "gpt2-small" if is_text_data(data, data_dir) else "resnet-small"
