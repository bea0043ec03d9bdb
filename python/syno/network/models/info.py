"""What a model is, before it is built. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from syno.network.layers import LayerFilter

if TYPE_CHECKING:
    import torch
    from torch import nn


# Arguments of `build` by name: the options of a model, its sizes, and the file of its weights.
ModelOptions: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class ModelOption:
    """A whole-number option of a model."""

    default: int
    least: int
    most: int
    doc: str


@dataclass(frozen=True)
class Images:
    """Inputs [N, channels, size, size] with scores [N, classes], and what they are by default.

    A size is at least `least` and a multiple of `multiple`.
    """

    classes: int
    size: int
    channels: int = 3
    least: int = 4
    multiple: int = 1


@dataclass(frozen=True)
class ModelInfo:
    """A model of the catalogue.

    builder: `builder(classes, channels, size, **options)` makes one for images;
        `builder(**options)` one for token ids [N, context] with scores [N, context, vocabulary].
    images: what it works on; None for token ids.
    rules: which layers become slots: those of the first filter that takes a quarter of the
        MACs, or else most of them. For the models of the paper there is one: the layers
        that it replaces.
    preset: the specification of the paper's experiment with it, or of one with its layers.
    package: what it comes from, where it needs an extra.
    """

    name: str
    summary: str
    builder: Callable[..., nn.Module]
    rules: tuple[LayerFilter, ...]
    options: Mapping[str, ModelOption] = field(default_factory=dict)
    images: Images | None = None
    preset: str | None = None
    package: str | None = None


@dataclass(frozen=True)
class Built:
    """What `build` made, kept by the network as `syno_model`.

    input_shape: of one sample: (channels, size, size), or (context,) for token ids.
    """

    name: str
    options: Mapping[str, int]
    input_shape: tuple[int, ...]

    def example(self) -> torch.Tensor:
        """One sample of the right shape and type, of zeros."""
        import torch

        ids = len(self.input_shape) == 1
        return torch.zeros(1, *self.input_shape, dtype=torch.long if ids else torch.float32)
