"""The catalogue of models: name, options with defaults, builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._errors import UserError

if TYPE_CHECKING:
    from syno.models.blocks import SmallNetwork


@dataclass(frozen=True)
class Option:
    """A whole-number option of a model."""

    default: int
    least: int
    most: int
    doc: str


@dataclass(frozen=True)
class ModelInfo:
    """A model: `builder(classes, channels, size, **options)` makes it."""

    name: str
    summary: str
    options: Mapping[str, Option]
    builder: Callable[..., SmallNetwork]


def _resnet_small(classes: int, channels: int, size: int, **options: int) -> SmallNetwork:
    from syno.models.resnet import SmallResNet

    return SmallResNet(classes, channels, size, **options)


def _cnn_small(classes: int, channels: int, size: int, **options: int) -> SmallNetwork:
    from syno.models.cnn import SmallCnn

    return SmallCnn(classes, channels, size, **options)


_WIDTH = Option(16, 4, 512, "channels of the first stage; doubled at each further stage")
_STAGES = Option(3, 1, 5, "stages; the map is halved between two of them while it stays >= 4")

_MODELS = (
    ModelInfo(
        name="resnet-small",
        summary="CIFAR-style residual network (He et al. 2015, sec. 4.2), pooled, not strided",
        options={
            "width": _WIDTH,
            "blocks": Option(1, 1, 18, "residual blocks of two convolutions a stage"),
            "stages": _STAGES,
        },
        builder=_resnet_small,
    ),
    ModelInfo(
        name="cnn-small",
        summary="plain convolutional network without shortcuts",
        options={
            "width": _WIDTH,
            "layers": Option(2, 1, 18, "convolutions a stage"),
            "stages": _STAGES,
        },
        builder=_cnn_small,
    ),
)


def list_models() -> tuple[str, ...]:
    """The names that `build` knows."""
    return tuple(model.name for model in _MODELS)


def describe(name: str) -> ModelInfo:
    """The catalogue's entry. Raises UserError that lists what exists."""
    for model in _MODELS:
        if model.name == name:
            return model
    raise UserError(f"unknown model '{name}'\n  expected one of: {', '.join(list_models())}")


def build(name: str, *, classes: int, channels: int, size: int, **options: int) -> SmallNetwork:
    """Builds a network from images [N, channels, size, size] to scores [N, classes].

    Every 3x3 convolution keeps the size of its map (stride 1, padding 1, no bias) and is followed
    by batch normalisation; the first one, the stem, is meant to stay as it is. Weights come from
    torch's global generator: seed it for a reproducible start.
    Raises UserError for an unknown model or option and for a value out of range, listing what is
    accepted.
    """
    model = describe(name)
    known = "\n".join(
        f"  {option} = {o.default} ({o.least} to {o.most}): {o.doc}"
        for option, o in model.options.items()
    )
    for option, value in options.items():
        if option not in model.options:
            raise UserError(f"unknown option '{option}' of model '{name}'\n  expected:\n{known}")
        bounds = model.options[option]
        if not (isinstance(value, int) and bounds.least <= value <= bounds.most):
            raise UserError(
                f"option '{option}' of model '{name}' cannot be {value!r}\n"
                f"  expected: a whole number from {bounds.least} to {bounds.most}"
            )
    for quantity, value, least in (
        ("classes", classes, 2),
        ("channels", channels, 1),
        ("size", size, 4),
    ):
        if not (isinstance(value, int) and value >= least):
            raise UserError(
                f"model '{name}' cannot have {quantity} = {value!r}\n"
                f"  expected: a whole number of at least {least}"
            )
    values = {option: o.default for option, o in model.options.items()} | options
    return model.builder(classes, channels, size, **values)
