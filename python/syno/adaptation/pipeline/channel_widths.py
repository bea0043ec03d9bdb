"""The groups of channels of the original network, what widths cost, and networks that have them.

A block of the network that is left out is a group of one, of width 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import nn

from syno._util.hooks import removed_after
from syno._util.inputs import Inputs, arguments
from syno.adaptation.blocks import (
    chosen_blocks,
    gives_shapes,
    removable_blocks,
    result_shapes,
    without_blocks,
)
from syno.adaptation.pipeline.assembly import plain
from syno.adaptation.pipeline.delivery import Delivery
from syno.adaptation.pipeline.journal import AdaptationJournal
from syno.adaptation.pipeline.results import BlockRow, WidthRow
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.adaptation.widths import Elimination, eliminations, narrowed
from syno.inference.precision import INT8
from syno.network.channels.groups import channel_groups, without
from syno.network.surgery import layer_report
from syno.study.fronts import LATENCY, MACS, PARAMS

# Channels of a step, where a group has at least four times as many.
_STEPS = (16, 8, 4, 2, 1)

# Samples that layers are fitted to while networks are compared.
_FEW = 128
# Samples by which blocks are compared with those that lie in them.
_LOOKED_AT = 32

# Terms of a word of 8-bit integers. Layers of so many different numbers of terms give the constant
# of outputs, which is at most so many words.
_WORD, _FEWEST_LAYERS, _MOST_CONSTANT = 4, 3, 64.0

Widths = Mapping[str, int]


class ChannelWidths:
    """Groups by name, in which order their channels go, and what that costs.

    fit_images: samples that layers are fitted to again.
    """

    def __init__(
        self,
        subject: AdaptationSubject,
        fit_images: int,
        journal: AdaptationJournal,
        delivery: Delivery,
    ) -> None:
        self._subject, self._fit_images = subject, fit_images
        self._journal, self._delivery = journal, delivery

    @cached_property
    def original(self) -> nn.Module:
        """The original network without slots."""
        return plain(self._subject.original)

    @cached_property
    def inputs(self) -> list[Inputs]:
        """Samples that layers are fitted to."""
        return self._subject.inputs(self._fit_images)

    @cached_property
    def few(self) -> list[Inputs]:
        """The first of them, for networks that are compared."""
        return self._subject.inputs(min(_FEW, self._fit_images))

    @cached_property
    def eliminations(self) -> dict[str, Elimination]:
        """Of each group; the journal remembers the order and the errors."""
        inputs = arguments(self._subject.example)
        groups = {
            group.name: group
            for group in channel_groups(self.original, *inputs)
            if all(name not in self._subject.frozen for name, _ in group.indices)
        }

        def find() -> dict[str, list[list[float]]]:
            found = eliminations(self.original, list(groups.values()), self.inputs)
            return {e.group.name: [list(e.order), list(e.errors)] for e in found}

        known = self._journal.once("eliminations", "", find)
        return {
            name: Elimination(group, tuple(map(int, known[name][0])), tuple(known[name][1]))
            for name, group in groups.items()
            if name in known
        }

    @cached_property
    def blocks(self) -> dict[str, float]:
        """The distance of the network without each block that can be left out."""

        def find() -> dict[str, float]:
            found = {}
            for name in removable_blocks(self.original, self._subject.example):
                if not self.parameters_of_block(name).isdisjoint(self._subject.frozen):
                    continue
                net = without_blocks(self.original, [name])
                found[name] = self._subject.quality(net, _LOOKED_AT).divergence
            finite = {name: far for name, far in found.items() if math.isfinite(far)}
            return {name: finite[name] for name in chosen_blocks(finite)}

        found: dict[str, float] = self._journal.once("blocks", "", find)
        return found

    def parameters_of_group(self, name: str) -> set[str]:
        """The parameters of which a group of channels has a part."""
        return {parameter for parameter, _ in self.eliminations[name].group.indices}

    def parameters_of_block(self, name: str) -> set[str]:
        """The parameters in a block."""
        inside = self.original.get_submodule(name).named_parameters()
        return {f"{name}.{each}" for each, _ in inside}

    @cached_property
    def _costs(self) -> _Costs:
        seconds = self._delivery.layer_seconds
        lanes, word = (_lanes(), _WORD) if INT8 in self._delivery.formats else (1, 1)
        return _Costs(self.original, self._subject.example, seconds, lanes, word)

    @property
    def whole(self) -> dict[str, float]:
        """What the layers of the original need; a latency of 0 where the engine cannot say."""
        return self._costs.whole

    @cached_property
    def rest(self) -> dict[str, float]:
        """What is not of layers, such as products of attention, and stays."""
        report, whole = layer_report(self._subject.network.template), self.whole
        return {
            MACS: (report.macs or 0) - whole[MACS],
            PARAMS: (report.params or 0) - whole[PARAMS],
        }

    def costs(self, widths: Widths) -> dict[str, float]:
        """What the layers need with these widths: seconds, MACs and parameters."""
        return self._costs.of(self._gone(widths), self._left_out(widths))

    def step(self, name: str, width: int) -> int:
        """How many channels of a group go next: widths are multiples of so many."""
        size = self.eliminations[name].group.size
        step = next(each for each in _STEPS if size >= 4 * each or each == 1)
        rest = width % step or step
        return rest if width - rest >= max(step, 1) and width > rest else 0

    def fitted(
        self, widths: Widths, base: nn.Module, inputs: Sequence[Inputs] | None = None
    ) -> nn.Module:
        """A network with these widths, whose layers are fitted again.

        base: the original network, or with operators in layers that read none of these channels.
        """
        groups, blocks = self._apart(widths)
        plans = [(self.eliminations[name], width) for name, width in groups.items()]
        if plans:
            base = narrowed(base, plans, inputs or self.inputs, wanted=self.original)
        return without_blocks(base, blocks)

    def network(self, widths: Widths) -> nn.Module:
        """The original network with these widths, fitted."""
        made = self.fitted(widths, self.original)
        self._subject.refresh(made)
        return made

    def structure(self, widths: Widths, base: nn.Module | None = None) -> nn.Module:
        """A network with these widths and any weights; base: as `fitted` has it."""
        groups, blocks = self._apart(widths)
        removed = [self.eliminations[name].removed(width) for name, width in groups.items()]
        return without_blocks(without(base or self.original, removed), blocks)

    def fits(self, widths: Widths) -> bool:
        """Whether the network runs with these widths, and gives results of its shapes."""
        make = functools.partial(self.structure, widths)
        return gives_shapes(make, self._subject.example, self._shapes)

    @cached_property
    def _shapes(self) -> list[torch.Size]:
        return result_shapes(self.original, self._subject.example)

    def share_left(self, layer: str, widths: Widths) -> float:
        """Which share of the elements of a layer's weight these widths leave."""
        if not widths:
            return 1.0
        weight = f"{layer}.weight"
        if weight in self._left_out(widths):
            return 0.0
        shape = dict(self.original.named_parameters())[weight].shape
        gone = self._gone(widths)
        return math.prod((n - gone.get((weight, d), 0)) / n for d, n in enumerate(shape))

    def rows(self, widths: Widths) -> tuple[WidthRow, ...]:
        """Which groups lose channels, and what that costs."""
        groups, _ = self._apart(widths)
        if not groups:
            return ()
        return tuple(
            WidthRow(name, e.group.size, groups[name], e.without(e.group.size - groups[name]))
            for name, e in self.eliminations.items()
            if name in groups
        )

    def block_rows(self, widths: Widths) -> tuple[BlockRow, ...]:
        """Which blocks are left out, and what they were."""
        rows = []
        for name in self._apart(widths)[1]:
            parameters = self.parameters_of_block(name)
            left = self._costs.of({}, parameters)
            macs, params = (round(self.whole[each] - left[each]) for each in (MACS, PARAMS))
            layers = sum(f"{each}.weight" in parameters for each in self._layers)
            rows.append(BlockRow(name, layers, macs, params, self.blocks[name]))
        return tuple(rows)

    @cached_property
    def _layers(self) -> list[str]:
        return [row.name for row in layer_report(self.original).rows]

    def _apart(self, widths: Widths) -> tuple[dict[str, int], list[str]]:
        """The widths of groups of channels, and the blocks that are left out."""
        groups = {name: width for name, width in widths.items() if width > 0}
        return groups, [name for name in widths if name not in groups]

    def _left_out(self, widths: Widths) -> set[str]:
        """The parameters of blocks that are left out."""
        return {each for name in self._apart(widths)[1] for each in self.parameters_of_block(name)}

    def _gone(self, widths: Widths) -> dict[tuple[str, int], int]:
        """Of each dimension of a parameter how many elements are gone."""
        gone: dict[tuple[str, int], int] = {}
        for name, width in self._apart(widths)[0].items():
            group = self.eliminations[name].group
            for place, indices in group.indices.items():
                lost = (group.size - width) * indices.shape[1]
                gone[place] = gone.get(place, 0) + lost
        return gone


class _Costs:
    """What the layers of a network need without some elements of its parameters.

    A layer computes vectors of `lanes` outputs, each of which takes a constant, in which it is
    written, and so much for each of its terms, in words of `word`. The constant, which layers of
    few terms consist of, follows from the times of all layers.

    seconds: of layers by name.
    whole: of the network as it is.
    """

    def __init__(
        self,
        net: nn.Module,
        example: Inputs,
        seconds: Mapping[str, float],
        lanes: int = 1,
        word: int = 1,
    ) -> None:
        self._lanes, self._word = lanes, word
        self._shapes = {name: tuple(p.shape) for name, p in net.named_parameters()}
        self._places = _places(net, example)
        self._seconds = {f"{name}.weight": spent for name, spent in seconds.items()}
        self._constant = self._fitted()
        self.whole = self.of({})

    def _fitted(self) -> float:
        """The constant of a vector of outputs, in words of terms."""
        from scipy.optimize import nnls

        rows, times = [], []
        for name, shape in self._shapes.items():
            spent, places = self._seconds.get(name, 0.0), self._places.get(name, 0)
            # Layers of channels by themselves all have as many terms as their window has places.
            if spent > 0.0 and places and shape[1] > 1:
                vectors, words = self._parts(shape)
                computed = places * vectors
                # Relative errors count, those of long layers more.
                weight = 1.0 / math.sqrt(spent)
                rows.append([weight * computed, weight * computed * words])
                times.append(weight * spent)
        if len({words / computed for computed, words in rows}) < _FEWEST_LAYERS:
            return 0.0
        (constant, word), _ = nnls(np.array(rows), np.array(times))
        return min(float(constant / word), _MOST_CONSTANT) if word > 0.0 else _MOST_CONSTANT

    def of(
        self, gone: Mapping[tuple[str, int], int], left_out: Collection[str] = ()
    ) -> dict[str, float]:
        """The costs without so many elements of dimensions of parameters, and without some."""
        macs = params = time = 0.0
        for name, shape in self._shapes.items():
            if name in left_out:
                continue
            left = [n - gone.get((name, dim), 0) for dim, n in enumerate(shape)]
            size = math.prod(left)
            params += size
            macs += self._places.get(name, 0) * size
            if name in self._seconds:
                time += self._seconds[name] * self._work(left) / self._work(shape)
        return {LATENCY: time, MACS: macs, PARAMS: params}

    def _work(self, shape: Sequence[int]) -> float:
        """What the time of a layer is proportional to, from the shape of its weight."""
        vectors, words = self._parts(shape)
        return vectors * (self._constant + words)

    def _parts(self, shape: Sequence[int]) -> tuple[int, int]:
        """Vectors of outputs, and words of terms of each."""
        terms = math.prod(shape[1:])
        return math.ceil(shape[0] / self._lanes), math.ceil(terms / self._word)


def _lanes() -> int:
    """How many outputs a vector of sums of 8-bit integers has."""
    return {"AVX512": 16, "AVX2": 8}.get(torch.backends.cpu.get_cpu_capability(), 4)


def _places(net: nn.Module, example: Inputs) -> dict[str, int]:
    """How often each element of a weight is multiplied for one sample: the places of a map."""
    found: dict[str, int] = {}

    def count(name: str) -> Callable[..., None]:
        def look(module: nn.Module, _: object, result: torch.Tensor) -> None:
            weight = module.weight
            assert isinstance(weight, torch.Tensor)
            found[f"{name}.weight"] = result[0].numel() // len(weight)

        return look

    layers = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
    hooks = [
        module.register_forward_hook(count(name))
        for name, module in net.named_modules()
        if isinstance(module, layers)
    ]
    with removed_after(hooks), torch.no_grad():
        net(*arguments(example))
    return found
