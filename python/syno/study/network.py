"""The network under study: the same initial weights for every operator. Needs torch."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from syno import models
from syno._errors import UserError
from syno.data import DataSet, Records, TextData
from syno.layers import LayerReport, LayerRow
from syno.placeholder import checked_slots, slots
from syno.substitute import layer_report, replace, substitute


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch draws from `seed` inside and goes on outside as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


class Network:
    """A template with slots; copies of it are trained, the template never is.

    All copies start from the same weights, so that operators differ by what they are and not by
    the luck of the stem; an operator's own weights are drawn from `seed`.
    `macs` and `params` count the layers that operators replace, all together, for one sample.
    """

    def __init__(self, template: nn.Module, input_shape: tuple[int, ...], seed: int) -> None:
        found = checked_slots(template)
        bare = [name for name, slot in found.items() if slot.original is None]
        if bare:
            raise UserError(
                f"slot '{bare[0]}' of the network has no original layer to compare operators with\n"
                "  what to do: let syno.substitute make the slots, or give each Placeholder the "
                "layer it stands for: Placeholder(binding, original=layer)"
            )
        self.template = template
        self.input_shape = input_shape
        self._seed = seed
        self._names = set(found)
        self._weights = {
            name: _weight(slot.original)
            for name, slot in found.items()
            if slot.original is not None
        }
        self.macs = _macs([row for row in layer_report(template).rows if row.name in found])
        self.params = sum(self._weights.values())

    @classmethod
    def named(
        cls,
        name: str,
        options: dict[str, Any],
        dataset: DataSet | Records | TextData,
        seed: int,
        *,
        size: int | None = None,
        context: int | None = None,
    ) -> Network:
        """A model of the catalogue for the images of `dataset`, or for its tokens.

        size: side in pixels that the network sees (default: that of the images); records need it.
        context: tokens of the longest sequence (default: the model's).
        """
        images = models.describe(name).images is not None
        if isinstance(dataset, TextData) is images:
            kinds = ("text", "images") if images else ("images", "text")
            raise UserError(
                f"model '{name}' is for {kinds[1]}, and '{_name_of(dataset)}' is {kinds[0]}\n"
                f"  expected: {kinds[1]}, or a model for {kinds[0]} (`syno models` lists them)"
            )
        if isinstance(dataset, TextData):
            given = {"vocabulary": dataset.vocabulary} | options
            given |= {} if context is None or "context" in options else {"context": context}
            with seeded(seed):
                net = models.build(name, **given)
            return cls(models.slots(net), models.built(net).input_shape, seed)
        size = size or (dataset.size if isinstance(dataset, DataSet) else None)
        if size is None:
            raise UserError(f"'{_name_of(dataset)}' has images of several sizes: say size=")
        channels = dataset.channels
        with seeded(seed):
            net = models.build(
                name, classes=len(dataset.classes), channels=channels, size=size, **options
            )
        return cls(models.slots(net), (channels, size, size), seed)

    @classmethod
    def given(
        cls, net: nn.Module, dataset: DataSet, seed: int, *, size: int | None = None
    ) -> Network:
        """A network of the user's, with slots of its own or with its 3x3 convolutions as slots."""
        if not isinstance(net, nn.Module):
            raise UserError(
                f"the network must be a torch.nn.Module or the name of a model, got {net!r}\n"
                f"  expected: one of {', '.join(models.list_models())}, or a module"
            )
        shape = (dataset.channels, size or dataset.size, size or dataset.size)
        example = torch.zeros(1, *shape)
        if not slots(net):
            return cls(substitute(net, example_input=example), shape, seed)
        net = copy.deepcopy(net).eval()
        with torch.no_grad():
            net(example)  # slots learn the sizes of their maps
        return cls(net, shape, seed)

    def original(self) -> nn.Module:
        """A copy in which every slot holds its original layer."""
        return copy.deepcopy(self.template)

    def with_operator(self, operator: Any, *, scaled: bool = True) -> tuple[nn.Module, LayerReport]:
        """A copy with the operator in its slots, and what became of each slot.

        scaled: as in `syno.replace`. UserError when the operator fits none.
        """
        net = copy.deepcopy(self.template)
        with seeded(self._seed):
            report = replace(net, operator, scaled=scaled)
        return net, report

    def kept(self, report: LayerReport) -> list[LayerRow]:
        """The slots that kept their layer."""
        return [row for row in report.kept if row.name in self._names]

    def cost(self, operator: Any, report: LayerReport) -> tuple[int | None, int]:
        """(macs, params) of the replaced layers and of those slots that kept their layer."""
        kept = self.kept(report)
        rest = _macs(kept)
        params = operator.params() + sum(self._weights[row.name] for row in kept)
        return (None if rest is None else operator.macs() + rest), params


def _name_of(dataset: DataSet | Records | TextData) -> str:
    return dataset.folder.name if isinstance(dataset, Records) else dataset.name


def _weight(layer: nn.Module) -> int:
    """Elements of a layer's weight; its bias stays in the slot."""
    weight = getattr(layer, "weight", None)
    return weight.numel() if isinstance(weight, torch.Tensor) else 0


def _macs(rows: list[LayerRow]) -> int | None:
    counts = [row.macs for row in rows]
    return None if None in counts else sum(count or 0 for count in counts)
