"""Networks with fewer channels, whose layers are fitted again in closed form. Needs torch.

A layer that reads channels z computes W z. Without some channels, the weights of the least squared
error are W' = B' G'^-1, where G = E[z z^T] and B = E[y z^T] without these channels, both centred,
because a bias or the next normalization takes up a constant. With S = W' and A = G'^-1, removing
channel i as well raises the squared error by S_i A_ii^-1 S_i^T, for the columns of all its taps.
Elimination removes the channel of the least such error, again and again (backward stepwise
regression; the updates are those of the inverse of a part of a matrix).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional

from syno._util.errors import UserError
from syno._util.hooks import removed_after
from syno._util.inputs import Inputs, arguments, first, samples_in
from syno.network.channels.groups import ChannelGroup, without

# Places of maps, drawn from all samples, whose values the sums are over.
_PLACES = 20_000
# Added to the diagonal of G, as a share of its mean.
_RIDGE = 1e-4
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True)
class Elimination:
    """In which order the channels of a group go, and what that costs.

    order: all channels but the last one. errors: after each of them the squared error of what the
    layers that read the group compute, fitted again, as a share of the variance of their results,
    summed over these layers.
    """

    group: ChannelGroup
    order: tuple[int, ...]
    errors: tuple[float, ...]

    def removed(self, width: int) -> tuple[ChannelGroup, tuple[int, ...]]:
        """The channels that go where so many stay."""
        return self.group, self.order[: self.group.size - width]

    def without(self, count: int) -> float:
        """The error without the first `count` channels of the order."""
        return self.errors[count - 1] if count else 0.0


def eliminations(
    net: nn.Module, groups: Sequence[ChannelGroup], batches: Sequence[Inputs], seed: int = 0
) -> list[Elimination]:
    """How each group of a trained network would lose its channels, each group alone.

    batches: inputs of the network; about a thousand samples are enough. Groups that a grouped
    convolution reads are left out.
    """
    found = []
    readers = {group.name: _readers(net, group) for group in groups}
    names = sorted({name for every in readers.values() for name in every or ()})
    sums = {name: _Sums.of(net, net, name, batches, seed) for name in names}
    for group in groups:
        reading = readers[group.name]
        if reading and group.size > 1:
            found.append(_eliminated(group, {name: sums[name] for name in reading}, net))
    return found


def narrowed(
    net: nn.Module,
    plans: Sequence[tuple[Elimination, int]],
    batches: Sequence[Inputs],
    seed: int = 0,
    *,
    wanted: nn.Module | None = None,
) -> nn.Module:
    """A copy of a trained network in which groups have fewer channels.

    Layers that read such groups are fitted to what they compute in `wanted`, one after the other,
    on what the network before them gives by now.

    Args:
        net: in evaluation mode.
        plans: eliminations, and how many channels stay.
        batches: inputs of the network.
        seed: of the places of maps that are looked at.
        wanted: a network whose layers of the same names compute what is wanted; `net` without one.
    """
    removed = []
    for elimination, width in plans:
        size = elimination.group.size
        if not 0 < width <= size:
            raise UserError(
                f"the {size} channels of '{elimination.group.name}' cannot become {width}\n"
                f"  expected: 1 to {size}"
            )
        removed.append(elimination.removed(width))
    made = without(net, removed)
    kept = _kept_outputs(net, removed)
    norms = _norms_after(net, first(batches[0], 1))
    readers = {name for group, _ in removed for name in _readers(net, group) or ()}
    for name in [each for each, _ in net.named_modules() if each in readers]:
        sums = _Sums.of(wanted or net, made, name, batches, seed, kept.get(name))
        _refit(made.get_submodule(name), sums, norms.get(name), made)
    return made


@dataclass
class _Sums:
    """Over places of maps: of what a layer reads, and of what it shall compute, without its bias.

    Both are centred: gram [taps, taps], cross [taps, outputs], energy: the sum of the squares.
    """

    gram: torch.Tensor
    cross: torch.Tensor
    energy: float
    mean_x: torch.Tensor
    mean_y: torch.Tensor

    @classmethod
    def of(
        cls,
        wanted: nn.Module,
        given: nn.Module,
        name: str,
        batches: Sequence[Inputs],
        seed: int,
        outputs: torch.Tensor | None = None,
    ) -> _Sums:
        """Of a layer's results in the network `wanted`, some of the outputs, for what it reads in
        the network `given`."""
        layer = given.get_submodule(name)
        generator = torch.Generator().manual_seed(seed)
        each = max(1, _PLACES // max(1, sum(map(samples_in, batches))))
        parts: list[tuple[torch.Tensor, torch.Tensor]] = []
        with torch.no_grad(), _recorded(given, name) as read, _recorded(wanted, name) as made:
            for batch in batches:
                given(*arguments(batch))
                if given is not wanted:
                    wanted(*arguments(batch))
                taps, results = _rows(layer, read.pop()[0]), _outside(layer, made.pop()[1])
                count = taps.shape[1]
                places = torch.arange(count).expand(len(taps), -1)
                if count > each:
                    places = torch.randint(count, (len(taps), each), generator=generator)
                at = torch.arange(len(taps))[:, None]
                parts.append((taps[at, places].flatten(0, 1), results[at, places].flatten(0, 1)))
        x, y = (torch.cat(every).double() for every in zip(*parts, strict=True))
        bias = getattr(wanted.get_submodule(name), "bias", None)
        if isinstance(bias, torch.Tensor):
            y = y - bias.detach().double()
        if outputs is not None:
            y = y[:, outputs]
        mean_x, mean_y = x.mean(0), y.mean(0)
        x, y = x - mean_x, y - mean_y
        gram, cross = x.t() @ x / len(x), x.t() @ y / len(x)
        return cls(gram, cross, float(y.square().sum() / len(x)), mean_x, mean_y)


@contextmanager
def _recorded(net: nn.Module, name: str) -> Iterator[list[tuple[torch.Tensor, torch.Tensor]]]:
    """What a layer reads and computes, of each call within."""
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []

    def keep(_: nn.Module, inputs: tuple[torch.Tensor, ...], result: torch.Tensor) -> None:
        kept.append((inputs[0].clone(), result.clone()))

    with removed_after([net.get_submodule(name).register_forward_hook(keep)]):
        yield kept


def _rows(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """What each result of a layer is computed of: [N, places, inputs * taps]."""
    if isinstance(layer, nn.Linear):
        return x.reshape(len(x), -1, x.shape[-1])
    assert isinstance(layer, _CONVOLUTIONS)
    if _taps(layer) == 1 and not isinstance(layer.padding, str) and not any(layer.padding):
        step = tuple(slice(None, None, s) for s in layer.stride)
        return x[(slice(None), slice(None), *step)].flatten(2).transpose(1, 2)
    # A depthwise convolution that copies each tap.
    copies = torch.eye(_taps(layer), dtype=x.dtype).reshape(-1, 1, *layer.kernel_size)
    copies = copies.repeat(x.shape[1], *[1] * (copies.dim() - 1))
    convolve: Callable[..., torch.Tensor] = (
        functional.conv1d,
        functional.conv2d,
        functional.conv3d,
    )[x.dim() - 3]
    made = convolve(x, copies, None, layer.stride, layer.padding, layer.dilation, x.shape[1])
    return made.flatten(2).transpose(1, 2)


def _outside(layer: nn.Module, y: torch.Tensor) -> torch.Tensor:
    """Results of a layer as [N, places, outputs]."""
    if isinstance(layer, nn.Linear):
        return y.reshape(len(y), -1, y.shape[-1])
    return y.flatten(2).transpose(1, 2)


def _readers(net: nn.Module, group: ChannelGroup) -> list[str] | None:
    """The layers that read channels of a group by a matrix; None where another kind reads them."""
    found = []
    for name, dim in group.indices:
        if dim == 1 and name.endswith("weight"):
            path = name.rpartition(".")[0]
            layer = net.get_submodule(path)
            if isinstance(layer, _CONVOLUTIONS):
                if layer.groups > 1 or layer.padding_mode != "zeros":
                    return None
            elif not isinstance(layer, nn.Linear):
                return None
            found.append(path)
    return found


def _taps(layer: nn.Module) -> int:
    """Elements of a weight for each input."""
    return math.prod(layer.kernel_size) if isinstance(layer, _CONVOLUTIONS) else 1


def _columns(group: ChannelGroup, name: str, layer: nn.Module) -> torch.Tensor:
    """Of each channel the columns of a layer's matrix that belong to it: [channels, columns]."""
    indices = torch.from_numpy(group.indices[f"{name}.weight", 1])
    taps = _taps(layer)
    return (indices[:, :, None] * taps + torch.arange(taps)).flatten(1)


@dataclass
class _Reader:
    """A layer in an elimination: A and S of the channels that are left, for all its columns."""

    columns: torch.Tensor
    inverse: torch.Tensor
    weight: torch.Tensor
    energy: float
    left: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.left = torch.ones(len(self.inverse), dtype=torch.bool)

    def costs(self) -> torch.Tensor:
        """What the removal of each channel raises the error by, as a share of the energy."""
        blocks = self.inverse[self.columns[:, :, None], self.columns[:, None, :]]
        parts = self.weight[self.columns]  # [channels, columns, outputs]
        return (parts * torch.linalg.solve(blocks, parts)).sum((1, 2)) / self.energy

    def remove(self, channel: int) -> None:
        """The updates of A and S without a channel."""
        own = self.columns[channel]
        others = self.inverse[:, own]
        block = others[own]
        self.weight = self.weight - others @ torch.linalg.solve(block, self.weight[own])
        self.inverse = self.inverse - others @ torch.linalg.solve(block, others.t())
        # What is gone has a unit block, so that the blocks of all channels can be inverted.
        self.weight[own] = 0
        self.inverse[own, :] = 0
        self.inverse[:, own] = 0
        self.inverse[own, own] = 1


def _eliminated(group: ChannelGroup, sums: Mapping[str, _Sums], net: nn.Module) -> Elimination:
    readers = []
    for name, each in sums.items():
        inverse = torch.linalg.inv(_with_ridge(each.gram))
        layer = net.get_submodule(name)
        readers.append(
            _Reader(
                _columns(group, name, layer), inverse, inverse @ each.cross, max(each.energy, 1e-30)
            )
        )
    order: list[int] = []
    errors: list[float] = []
    total = 0.0
    alive = torch.ones(group.size, dtype=torch.bool)
    for _ in range(group.size - 1):
        costs = functools.reduce(torch.add, (reader.costs() for reader in readers))
        costs[~alive] = torch.inf
        channel = int(costs.argmin())
        total += max(0.0, float(costs[channel]))
        for reader in readers:
            reader.remove(channel)
        alive[channel] = False
        order.append(channel)
        errors.append(total)
    return Elimination(group, tuple(order), tuple(errors))


def _with_ridge(gram: torch.Tensor) -> torch.Tensor:
    scale = float(gram.diagonal().mean()) or 1.0
    return gram + _RIDGE * scale * torch.eye(len(gram), dtype=gram.dtype)


def _kept_outputs(
    net: nn.Module, removed: Sequence[tuple[ChannelGroup, Sequence[int]]]
) -> dict[str, torch.Tensor]:
    """Of layers that lose outputs: those that stay."""
    gone: dict[str, set[int]] = {}
    for group, channels in removed:
        for (name, dim), indices in group.indices.items():
            if dim == 0 and name.endswith("weight"):
                lost = indices[list(channels)].reshape(-1).tolist()
                gone.setdefault(name.rpartition(".")[0], set()).update(lost)
    return {
        name: torch.tensor([i for i in range(len(_weight(net, name))) if i not in lost])
        for name, lost in gone.items()
    }


def _weight(net: nn.Module, name: str) -> torch.Tensor:
    weight = net.get_submodule(name).weight
    assert isinstance(weight, torch.Tensor)
    return weight


def _norms_after(net: nn.Module, sample: Inputs) -> dict[str, str]:
    """Layers whose result only a batch normalization reads, by the names of both."""
    made: dict[int, tuple[str, torch.Tensor]] = {}
    found: dict[str, str] = {}
    hooks = []

    def layer(name: str) -> Callable[..., None]:
        def keep(_: nn.Module, inputs: object, result: torch.Tensor) -> None:
            made[id(result)] = (name, result)

        return keep

    def norm(name: str) -> Callable[..., None]:
        def look(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            if id(inputs[0]) in made:
                found[made[id(inputs[0])][0]] = name

        return look

    for name, module in net.named_modules():
        if isinstance(module, (*_CONVOLUTIONS, nn.Linear)):
            hooks.append(module.register_forward_hook(layer(name)))
        elif isinstance(module, _NORMS):
            hooks.append(module.register_forward_pre_hook(norm(name)))
    with removed_after(hooks), torch.no_grad():
        net(*arguments(sample))
    return found


def _refit(layer: nn.Module, sums: _Sums, norm: str | None, net: nn.Module) -> None:
    """Sets the weights of least squared error, and what takes up the constant."""
    assert isinstance(layer, (*_CONVOLUTIONS, nn.Linear))
    found = torch.linalg.solve(_with_ridge(sums.gram), sums.cross)
    shift = sums.mean_x @ found - sums.mean_y
    with torch.no_grad():
        layer.weight.copy_(found.t().reshape(layer.weight.shape))
        if layer.bias is not None:
            layer.bias.sub_(shift)
        elif norm is not None:
            mean = net.get_submodule(norm).running_mean
            if isinstance(mean, torch.Tensor):
                mean.add_(shift)
