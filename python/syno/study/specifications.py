"""The default specifications of a search, for images and for text."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from syno import _core
from syno._util.errors import InternalError, UserError
from syno.operators.specification import NO_TOTALS, Specification

if TYPE_CHECKING:
    from syno.study.evaluate.network import Network

# The ranges of MACs in the experiments of the paper: shares of the MACs of the whole network,
# including the layers that no operator replaces.
PAPER_MACS_SHARES = {
    "paper/resnet18": (0.15, 0.9),
    "paper/resnet34": (0.15, 0.9),
    "paper/resnext29_2x64d": (0.15, 0.95),
    "paper/efficientnet_v2_s": (0.5, 0.9),
    "paper/densenet121": (0.15, 1.0),
    "paper/gpt2": (0.1, 1.2),
}

_DEPTH = 10


def small_vision(**changes: object) -> Specification:
    """Return a specification of square convolutions for images of 8 to 64 pixels.

    It is the specification of the paper for vision, adapted to small networks: windows of 3 fit
    feature maps of 4 pixels (the paper requires maps of 2.3 windows), and weights may be smaller.
    It has few variables and no Merge, so that a small budget of nodes reaches the depth at which
    operators have windows and two weights. The bindings come from the network.

    Args:
        changes: arguments of Specification, or limits, that replace these.
    """
    return _small_map("H, H", "H, H", changes)


def small_text(**changes: object) -> Specification:
    """Return a specification of the projections of small language models.

    Positions are marked `causal`: a window ends at its position, and an operator that reads a later
    position is not in the space. The output is not marked `unordered`, because attention heads are
    slices of it. The bindings come from the network.

    Args:
        changes: arguments of Specification, or limits, that replace these.
    """
    return _small_linear("seq_len: causal", **changes)


def small_strided(maps: str = "H, H", **changes: object) -> Specification:
    """Return a specification of convolutions with a stride inside of the operator.

    It is for slots of `syno.conv2d(stride=2, pool=False)`. Their stride is the variable s.

    Args:
        maps: the sizes of the output's feature map, such as "L" or "D, H, W".
        changes: as in `small_vision`.
    """
    more = {"max_strides": _dimensions(maps), "max_depth": _depth(maps)}
    return _small_map(_larger(maps), maps, {**more, **changes}, f"s=2: {_dimensions(maps)}")


def small_transposed(maps: str = "H, H", **changes: object) -> Specification:
    """Return a specification of transposed convolutions, whose operators make a map larger.

    It is for slots of `syno.conv_transpose2d()`. Their stride is the variable s. A Merge divides an
    output position by s, and the remainder may become an index of a weight. With one weight, that
    is a transposed convolution of kernel s, and with windows besides a sub-pixel convolution.

    Args:
        maps: the sizes of the input's feature map, such as "L" or "D, H, W".
        changes: as in `small_vision`.
    """
    more = {"max_merges": _dimensions(maps), "max_depth": _depth(maps)}
    return _small_map(maps, _larger(maps), {**more, **changes}, "s=2: 2")


def _larger(maps: str) -> str:
    return ", ".join(f"s*{size}" for size in maps.split(", "))


def _dimensions(maps: str) -> int:
    return maps.count(",") + 1


def _depth(maps: str) -> int:
    """At least a sum over channels, a contraction, and three steps for each dimension: a window."""
    return max(_DEPTH, 2 + 3 * _dimensions(maps))


def _small_map(
    inside: str, outside: str, changes: Mapping[str, object], factor: str = "s=2: 1"
) -> Specification:
    """Return a specification of convolutions between maps of these sizes, such as `D, H, W`."""
    names = dict.fromkeys(size.removeprefix("s*") for size in inside.split(", "))
    specification = Specification(
        f"[N, C_in: unordered, {inside}]",
        f"[N, C_out: unordered, {outside}]",
        ["N: 0", "C_in: 2", "C_out: 4", *(f"{name}: 0" for name in names)],
        [f"k=3: {_dimensions(inside)}", factor],
        passed_through=[(0, 0)],
        max_depth=_DEPTH,
        max_splits=1,
        max_shifts=1,
        min_unfold_ratio=1.3,
        min_weight_params=16,
        max_merges=0,
    )
    return specification.with_changes(**changes) if changes else specification


def _small_linear(positions: str, **changes: object) -> Specification:
    """Return a specification of linear layers.

    Args:
        positions: `seq_len` for positions without an order in time, `seq_len: causal` for others;
            empty for vectors.
        changes: as in `small_text`.
    """
    inside = f"{positions}, " if positions else ""
    specification = Specification(
        f"[N, {inside}H_in: unordered]",
        f"[N, {inside}H_out]",
        ["N: 0", *(["seq_len: 0"] if positions else []), "H_in: 3", "H_out: 3"],
        [*(["k=3: 2"] if positions else []), "g=8: 2"],
        passed_through=[(0, 0)],
        max_depth=7,
        max_merges=2,
        max_splits=2,
        min_weight_params=16,
        max_repeat=3,
    )
    return specification.with_changes(**changes) if changes else specification


_MAPS = {"feature maps": "H, W", "signals": "L", "volumes": "D, H, W"}
_LARGER = {"square feature maps": "H, H", **_MAPS}
# The default specifications by the kind of layer that they are for. Of equal ones, the first is
# chosen.
USUAL: Mapping[str, Callable[..., Specification]] = {
    "square feature maps": small_vision,
    **{kind: functools.partial(_small_map, maps, maps, {}) for kind, maps in _MAPS.items()},
    **{f"smaller {kind}": functools.partial(small_strided, maps) for kind, maps in _LARGER.items()},
    **{
        f"larger {kind}": functools.partial(small_transposed, maps)
        for kind, maps in _LARGER.items()
    },
    "causal positions": small_text,
    "positions": functools.partial(_small_linear, "seq_len"),
    "vectors": functools.partial(_small_linear, ""),
}


def usual_specification(network: Network) -> Specification | None:
    """Return the default specification that fits the layers with the most MACs.

    Layers that it does not fit keep their original. Without any that fits, the result is None.
    """
    from syno.network.surgery import slot_bindings

    found: tuple[int, Specification] | None = None
    for kind, make in USUAL.items():
        if kind == ("positions" if network.causal else "causal positions"):
            continue
        specification = make()
        try:
            layers = slot_bindings(network.template, specification)
        except UserError:
            continue
        weight = int(sum(layers["layer_macs"] or layers["multiplicities"]))
        if found is None or weight > found[0]:
            found = weight, specification
    return None if found is None else found[1]


def specification_for(
    given: Specification | str | None,
    limits: Mapping[str, object],
    network: Network,
    coefficient: Sequence[str] = (),
) -> Specification:
    """Return the specification of a search in a network.

    The default specification admits operators with at most the MACs of the layers that they
    replace. A preset of the paper gets its range of MACs for this network, not for its own layers.

    Args:
        given: a specification or the name of a preset; None for the default.
        limits: limits and other fields that replace those of the specification.
        network: the network with the layers to replace.
        coefficient: other values of coefficients of the specification, such as "g=4".

    Raises:
        UserError: for a coefficient that the specification does not have.
    """
    if given is None:
        from syno.network.surgery import slot_bindings

        usual = usual_specification(network)
        if usual is None:
            # Its message names the layers and their shapes.
            slot_bindings(network.template, small_text() if network.causal else small_vision())
            raise InternalError("no default specification fits slots that fit one")
        changed = _coefficients(usual, coefficient)
        return usual.with_changes(**{"max_macs": network.macs or 0, **changed, **limits})
    if isinstance(given, str):
        found = Specification.preset(given)
        limits = {**macs_window(given, network), **limits}
    else:
        found = given
    limits = {**_coefficients(found, coefficient), **limits}
    if not limits:
        return found
    # These limits hold for the network, not for the layers of a preset.
    dropped: Mapping[str, object] = {"bindings": [], **NO_TOTALS} if found.full_bindings else {}
    return found.with_changes(**{**dropped, **limits})


def _coefficients(found: Specification, given: Sequence[str]) -> dict[str, list[str]]:
    return {"coefficient": found.changed_coefficients(given)} if given else {}


def check_fit(given: Specification, network: Network) -> None:
    """Check that a specification fits a slot of a network.

    Raises:
        UserError: if it fits none, with the default one if that does.
    """
    from syno.network.surgery import slot_bindings

    try:
        slot_bindings(network.template, given)
    except UserError as error:
        other = usual_specification(network)
        if other is None or "no slot of the network fits" not in str(error):
            raise
        raise UserError(
            f"{error}\n              or leave the specification out: the default one, "
            f"{other.input} -> {other.output}, fits"
        ) from error


def without_windows(specification: Specification) -> str | None:
    """Say that no layer is large enough for a window, if that is so.

    `min_unfold_ratio` holds for all layers, so that a single small feature map, as at a low
    resolution, excludes convolutions from the whole space.

    Args:
        specification: with the layers of the network.
    """
    ratio = specification.limits["min_unfold_ratio"]
    coefficients = [text.partition("=")[0].strip() for text in specification.coefficient]
    if not specification.limits["max_unfolds"]:
        return None
    passed = {place for _, place in specification.passed_through}
    # Size and mark of every dimension, such as "s*H" and "causal".
    shape = [text.partition(":") for text in specification.input.strip("[] ").split(",")]
    ordered = [
        size.strip()
        for place, (size, _, mark) in enumerate(shape)
        if place not in passed and "unordered" not in mark
    ]
    for layer in specification.full_bindings:
        extents = [_core.evaluate_size(size, layer) for size in ordered]
        windows = [n for name in coefficients if (n := layer[name]) % 2 and n > 1]
        if extents and windows and max(extents) < ratio * min(windows):
            return (
                f"no operator reads neighboring positions: a window of {min(windows)} is not legal "
                f"in a layer with {max(extents)} positions (min_unfold_ratio {ratio:g})\n"
                "  what to do, if there should be convolutions: a higher --resolution, or "
                f"--min-unfold-ratio {math.floor(10 * max(extents) / min(windows)) / 10}"
            )
    return None


def macs_window(preset: str, network: Network) -> dict[str, int]:
    """Compute `min_macs` and `max_macs` of operators in a network by the shares of a preset.

    Returns:
        The limits for one sample. They are empty for a preset without shares, and for a network
        whose MACs are unknown.
    """
    if preset not in PAPER_MACS_SHARES or network.macs is None or network.all_macs is None:
        return {}
    kept = network.all_macs - network.macs
    low, high = (round(share * network.all_macs - kept) for share in PAPER_MACS_SHARES[preset])
    # At least 1, because 0 means no limit.
    return {"min_macs": max(low, 0), "max_macs": max(high, 1)}


def usual_model(preset: str | None, data: str, data_dir: str | None) -> str:
    """Return the model that a preset of the paper is for, or else a small model for the data."""
    from syno.data import is_text_data
    from syno.network.models.catalogue import MODELS

    found = [model.name for model in MODELS if preset is not None and model.preset == preset]
    if found:
        return found[0]
    return "gpt2-small" if is_text_data(data, data_dir) else "resnet-small"
