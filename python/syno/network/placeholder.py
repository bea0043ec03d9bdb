"""Placeholders: slots in a network that an operator can fill. Requires PyTorch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from syno import _core
from syno._util.arguments import checked, integer, items
from syno._util.errors import UserError
from syno.network.layer_data import WeightShape, is_plain
from syno.network.layers import divides_map
from syno.operators.initialization import Reference, reference_of
from syno.operators.layer import Layer
from syno.operators.specification import Specification, checked_binding

if TYPE_CHECKING:
    from syno.operators.operator import Operator


# The variable of a slot for the factor between its larger and its smaller map: its stride.
_FACTOR = "s"
_OUTSIDE = {"C_in": "C_out", "H_in": "H_out"}


class WeightError(UserError):
    """A network asks a slot for what the layer had and an operator has not."""


class Placeholder(nn.Module):
    """A slot, which computes with its kernel, or with its original layer if it has no kernel.

        empty --replace--> kernel            original --replace--> kernel
              <--restore--                            <--restore--

    Args:
        binding: values of variables, such as {"H": 32, "W": 32}.
        original: the layer that the slot replaces; an empty slot without it cannot compute.
        input_names: the variable of each input dimension (None for none); values that the binding
            lacks are taken from the first input.
        pool: a kernel receives the feature map averaged over pool x pool windows, instead of the
            stride of the original layer (as in the paper); the original layer receives the input.
        stride: the stride of an original layer whose kernel must make the feature map smaller
            itself, or larger if the layer is a transposed convolution: the variable s of the
            binding; `pool` implies it.
        dilation: the dilation of an original convolution in each dimension of its map. A kernel
            receives each phase of the map, such as every second position, as a sample of its own,
            so that its windows are dilated as those of the layer; the binding has the sizes of a
            phase.

    `shapes` are the (input, output) shapes of a kernel without the batch, after pooling; the
    positions of a feature map are one dimension if input_names has a single name for them. A slot
    with an original layer determines missing shapes in the first run.

    The bias of the original layer is added to the output of the kernel.

    A slot has the attributes of its original layer, such as `in_channels`, `stride` and
    `weight.dtype`. With a kernel in it, the values of the original weights are not given:
    `WeightError`.
    """

    @checked(input_names=items, pool=integer(1), stride=integer(1), dilation=items)
    def __init__(
        self,
        binding: Mapping[str, int] | None = None,
        *,
        original: nn.Module | None = None,
        input_names: Sequence[str | None] = (),
        pool: int = 1,
        stride: int = 1,
        dilation: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.binding = checked_binding({} if binding is None else binding)
        self.inherited = original is not None
        self.input_names = tuple(input_names)
        self.layer = original
        self.kept_because: str | None = None
        # Whether the slot refuses what it would with a kernel, and what it had to refuse.
        self.guarded = False
        self.refused: str | None = None
        # Of a size that the stride does not divide, most layers keep the rest.
        self._keeps_rest = not (
            isinstance(original, nn.modules.conv._ConvNd)
            and not original.transposed
            and divides_map(cast("nn.Conv2d", original))
        )
        self.pool = _pooling(original)(pool, ceil_mode=self._keeps_rest) if pool > 1 else None
        self.shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
        self.enlarges = bool(getattr(original, "transposed", False))
        self._dilation = tuple(dilation) if any(d > 1 for d in dilation) else ()
        self._stride = 1 if self.enlarges else max(pool, stride)
        self._factor = stride if pool == 1 else 1
        self.binding |= self.factor
        # In a tuple, the original is no submodule: a replaced layer has no part in training.
        self._shelf: tuple[nn.Module | None] = (original,)
        self._whole: tuple[int, ...] | None = None  # the output of the original

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            original = self.__dict__.get("_shelf", (None,))[0]
            if original is None and name == "bias":
                return None
            if original is None or name in _OWN or name.startswith("__"):
                raise
        return self._of_layer(original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        original = self.__dict__.get("_shelf", (None,))[0]
        if original is None or name in _OWN or not hasattr(original, name):
            super().__setattr__(name, value)
        elif self._closed and isinstance(value, (torch.Tensor, nn.Module)):
            raise self._refusal(f"the network sets the attribute '{name}' of it")
        else:
            setattr(original, name, value)

    @property
    def _closed(self) -> bool:
        """Whether parts of the original layer are not for use."""
        return self.guarded or self.layer is not self.original

    def _of_layer(self, original: nn.Module, name: str) -> object:
        """An attribute of the original layer."""
        value = getattr(original, name)
        if not self._closed or name == "bias" or is_plain(value):
            return value
        if isinstance(value, torch.Tensor):
            like = next(iter(() if self.kernel is None else self.kernel.parameters()), value)
            text = f"the network computes with the values of its {name}, in"
            return WeightShape.of(value, like, lambda func: self._refusal(f"{text} {func}"))
        self._refusal(f"the network uses its attribute '{name}'")
        raise AttributeError(f"a slot with an operator in it has no attribute '{name}'")

    def _refusal(self, reason: str) -> WeightError:
        """The error for what a slot cannot give; the first reason stays in `refused`."""
        self.refused = self.refused or reason
        return WeightError(
            f"{reason}, but an operator replaced the layer {self.original}\n"
            "  expected: a layer that the network calls, and of which it reads sizes and types\n"
            "  what to do: keep the layer; syno.substitute with an example_input keeps those that "
            "cannot be replaced"
        )

    @property
    def original(self) -> nn.Module | None:
        """The layer that the slot replaces."""
        return self._shelf[0]

    @property
    def channel(self) -> int | None:
        """The dimension of the channels in the output; None where no layer was replaced."""
        if self.original is None:
            return None
        return 1 if isinstance(self.original, nn.modules.conv._ConvNd) else -1

    @property
    def phases(self) -> int:
        """How many samples a kernel receives for one sample of the slot."""
        return math.prod(self._dilation)

    @property
    def moves(self) -> nn.Module | None:
        """What a slot computes beside its kernel, to be timed: a pooling, or the way to phases."""
        return Phases(self._dilation) if self._dilation else self.pool

    @property
    def factor(self) -> dict[str, int]:
        """The factor between the two maps of a slot whose kernel must change the size."""
        return {_FACTOR: self._factor} if self._factor > 1 else {}

    @property
    def sizes(self) -> tuple[list[str], list[str]]:
        """The sizes of the input and the output of a kernel after the batch, as [C_in, H, W]."""
        inside = [name or "" for name in self.input_names[1:]]
        outside = [_OUTSIDE.get(name, name) for name in inside]
        if self.factor:
            larger = outside if self.enlarges else inside
            larger[1:] = [f"{_FACTOR}*{name}" for name in larger[1:]]
        return inside, outside

    @property
    def kernel(self) -> nn.Module | None:
        """The kernel of the slot, or None."""
        return None if self.layer is self.original else self.layer

    def replace(self, kernel: nn.Module) -> None:
        """Fill the slot with a kernel."""
        self.layer = kernel
        self.kept_because = None
        bias = getattr(self.original, "bias", None)
        if bias is not None:
            self._parameters["bias"] = nn.Parameter(bias.detach().clone())

    def restore(self) -> None:
        """Remove the kernel, so that the slot uses its original layer again."""
        kernel, original = self.kernel, self.original
        if kernel is not None and original is not None:
            first = next(kernel.parameters(), None)
            if first is not None:
                original.to(first.device, first.dtype)
            original.train(self.training)
        self.layer = original
        self._parameters.pop("bias", None)

    def observe(self, x: torch.Tensor) -> None:
        """Takes sizes that the binding lacks from an input of the slot."""
        known = all(name in self.binding for name in self.input_names if name is not None)
        if known or x.dim() < len(self.input_names):
            return
        shape = list(self._rows(x).shape)
        shape[2:] = self.reduced(shape[2:])
        for name, size in zip(self.input_names, shape, strict=False):
            if name is not None:
                self.binding.setdefault(name, int(size))

    def reduced(self, sizes: Sequence[int]) -> list[int]:
        """The sizes of a map after the stride, or of a phase of it."""
        steps = self._dilation or [self._stride] * len(sizes)
        rests = [step - 1 if self._keeps_rest else 0 for step in steps]
        return [(size + r) // s for size, s, r in zip(sizes, steps, rests, strict=True)]

    def learn(self, inside: Sequence[int], outside: Sequence[int]) -> None:
        """Notes what the original maps: its input and output shape, batch first."""
        given, made = list(inside[1:]), list(outside[1:])
        self._whole = tuple(made)
        if self.pool is not None or self._dilation:
            given[1:] = self.reduced(given[1:])
        if self._dilation:
            made[1:] = self.reduced(made[1:])
        if self._joins_positions(len(inside)):
            given, made = ([math.prod(shape[:-1]), shape[-1]] for shape in (given, made))
        self.shapes = tuple(given), tuple(made)

    def _joins_positions(self, dimensions: int) -> bool:
        """Whether a kernel sees the positions of an input, [N, H, W, C], as one dimension."""
        return self.inherited and 2 < len(self.input_names) < dimensions

    def _rows(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1, -2) if self._joins_positions(x.dim()) else x

    def kernel_input(self, x: torch.Tensor) -> torch.Tensor:
        """What a kernel receives when the slot receives x."""
        if self._dilation:
            return to_phases(x, self._dilation)
        rows = self._rows(x)
        return rows if self.pool is None else self.pool(rows)

    def kernel_output(self, y: torch.Tensor) -> torch.Tensor:
        """What a kernel returns when the slot returns y: without bias, with joined positions."""
        bias = getattr(self.original, "bias", None)
        bare = y if bias is None else y - self.spread(bias)
        return to_phases(bare, self._dilation) if self._dilation else self._rows(bare)

    def spread(self, bias: torch.Tensor) -> torch.Tensor:
        """A bias, [C], as it is added to the output of the slot."""
        if isinstance(self.original, nn.modules.conv._ConvNd):
            return bias.view(-1, *[1] * len(self.original.kernel_size))
        return bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies kernel or original. UserError when the slot has neither."""
        if self.layer is None:
            raise UserError(
                f"this placeholder is empty: {self.binding}\n"
                "  expected: an operator      got: none\n"
                "  what to do: use sampler.replace(net, packs) or syno.replace(net, operator)"
            )
        self.observe(x)
        y = self.layer(x) if self.layer is self.original else self._by_kernel(self.layer, x)
        if self.shapes is None and self.inherited:
            self.learn(x.shape, y.shape)
        return y

    def _by_kernel(self, kernel: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = kernel(self.kernel_input(x))
        if self._joins_positions(x.dim()):
            y = y.unflatten(1, x.shape[1:-1])
        bias = self._parameters.get("bias")
        y = y if bias is None else y + self.spread(bias)
        return from_phases(y, self._dilation, x.shape[2:]) if self._dilation else y

    def binding_for(self, specification: Specification) -> dict[str, int]:
        """The values of the specification's variables in this slot.

        Raises UserError when the slot lacks one, or has a size that the specification has no word
        for: an unknown variable, or a map that is not square where height and width are both H.
        """
        known = set(specification.variables)
        binding = {name: value for name, value in self.binding.items() if name in known}
        if self._dilation:
            binding |= dict.fromkeys(known & {_sizes(specification.input)[0]}, self.phases)
        extra = sorted(set(self.binding) - known)
        if self.inherited:
            self._check_rank(specification)
            sizes = _sizes(specification.input), _sizes(specification.output)
            if self.factor and not any(
                _FACTOR in _names(size) for shape in sizes for size in shape
            ):
                binding.pop(_FACTOR, None)  # there, it is a variable of another meaning
            height, width = self.binding.get("H"), self.binding.get("W")
            if "W" in extra and "H" in known and height != width:
                raise UserError(
                    f"the feature map is {height} x {width}, not square\n"
                    f"  in {specification!r}, where height and width are both H"
                )
            self._check_shapes(sizes, specification.complete(binding))
        elif extra:
            raise UserError(
                f"the placeholder's binding has the unknown variable '{extra[0]}'\n"
                f"  known variables: {', '.join(specification.variables)}"
            )
        return binding

    def binding_of(self, operator: Operator) -> dict[str, int]:
        """`binding_for` the operator's specification; all sizes of the slot where it has none."""
        if operator.specification is None:
            batch = (
                {}
                if operator.batch is None or not self._dilation
                else {operator.batch: self.phases}
            )
            return self.binding | batch
        return self.binding_for(operator.specification)

    @property
    def reference(self) -> Reference:
        """What the original does to the scale of data; that of scale 1 where there is none."""
        if self.original is None or self._whole is None:
            return Reference()
        return reference_of(self.original, self._whole)

    def check_kernel(self, pack: Layer) -> None:
        """UserError when the kernel maps other shapes than the slot's."""
        self._check_shapes((pack.operator.input, pack.operator.output), pack.binding)

    def _check_shapes(
        self, shapes: tuple[Sequence[str], Sequence[str]], binding: Mapping[str, int]
    ) -> None:
        """UserError when sizes of input and output, such as N, C_in, H, H, are not the slot's.

        The first dimension is the batch. A size with a variable that the binding lacks is not
        looked at: what needs its value will ask for it.
        """
        if not self.inherited or self.shapes is None:
            return
        for what, sizes, actual in zip(("input", "output"), shapes, self.shapes, strict=True):
            wanted = [_value(size, binding) for size in sizes[1:]]
            alike = len(wanted) == len(actual) and all(
                a is None or a == b for a, b in zip(wanted, actual, strict=True)
            )
            if not alike:
                there = [
                    size if value is None else str(value)
                    for size, value in zip(sizes[1:], wanted, strict=True)
                ]
                raise UserError(
                    f"its {what} is [N, {', '.join(map(str, actual))}], and [{', '.join(sizes)}] "
                    f"is [N, {', '.join(there)}] there"
                )

    def _check_rank(self, specification: Specification) -> None:
        shape = specification.input
        dimensions = shape.count(",") + 1
        if self.input_names and len(self.input_names) != dimensions:
            names = ", ".join(name or "N" for name in self.input_names)
            raise UserError(
                f"its input has {len(self.input_names)} dimensions, such as [{names}], and that of "
                f"the specification has {dimensions}: {shape}"
            )

    def _load_from_state_dict(
        self, state_dict: dict[str, object], prefix: str, *arguments: Any, **named: Any
    ) -> None:
        """Also takes the tensors of a network without slots, where the original layer is in it."""
        if self.layer is not None and self.layer is self.original:
            for key in self.layer.state_dict():
                if f"{prefix}layer.{key}" not in state_dict and f"{prefix}{key}" in state_dict:
                    state_dict[f"{prefix}layer.{key}"] = state_dict.pop(f"{prefix}{key}")
        super()._load_from_state_dict(state_dict, prefix, *arguments, **named)

    def extra_repr(self) -> str:
        """The binding, for printing a network."""
        return ", ".join(f"{name}={value}" for name, value in self.binding.items())


# Attributes of every slot, which hide those of its layer.
_OWN = frozenset(dir(Placeholder()))


def hidden_attributes(layer: nn.Module) -> list[str]:
    """The attributes of a layer that a slot in its place has with another meaning."""
    return sorted({*dir(layer)} & _OWN - {*dir(nn.Module())})


def _pooling(layer: nn.Module | None) -> Callable[..., nn.Module]:
    """The pooling of a feature map with as many dimensions as that of a layer."""
    if isinstance(layer, nn.Conv1d):
        return nn.AvgPool1d
    return nn.AvgPool3d if isinstance(layer, nn.Conv3d) else nn.AvgPool2d


def to_phases(x: torch.Tensor, dilation: Sequence[int]) -> torch.Tensor:
    """The phases of a map [N, C, ...] as samples, [N * phases, C, ...], filled up with zeros."""
    more = [-size % d for size, d in zip(x.shape[2:], dilation, strict=True)]
    if any(more):
        x = nn.functional.pad(x, [n for each in reversed(more) for n in (0, each)])
    rank = len(dilation)
    for axis, d in reversed([*enumerate(dilation, 2)]):
        x = x.unflatten(axis, (-1, d))
    phases = [3 + 2 * axis for axis in range(rank)]
    return x.permute(0, *phases, 1, *[place - 1 for place in phases]).flatten(0, rank)


def from_phases(y: torch.Tensor, dilation: Sequence[int], sizes: Sequence[int]) -> torch.Tensor:
    """The map whose phases are given, of these sizes: the inverse of `to_phases`."""
    rank = len(dilation)
    y = y.unflatten(0, (-1, *dilation))
    moved = [place for axis in range(rank) for place in (2 + rank + axis, 1 + axis)]
    y = y.permute(0, 1 + rank, *moved)
    for axis in range(2, 2 + rank):
        y = y.flatten(axis, axis + 1)
    for axis, size in enumerate(sizes, 2):
        y = y if y.shape[axis] == size else y.narrow(axis, 0, size)
    return y


class Phases(nn.Module):
    """The way of a map to its phases and back."""

    def __init__(self, dilation: Sequence[int]) -> None:
        super().__init__()
        self.dilation = tuple(dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A map with the values of x."""
        return from_phases(to_phases(x, self.dilation), self.dilation, x.shape[2:])


def _sizes(shape: str) -> list[str]:
    """The sizes of "[N, C_in: unordered, s*H]": N, C_in, s*H."""
    inside = shape.strip()[1:-1]
    return [part.partition(":")[0].strip() for part in inside.split(",")]


def _value(size: str, binding: Mapping[str, int]) -> int | None:
    """The size under the binding; None where that lacks a variable of it."""
    return _core.evaluate_size(size, binding) if _names(size) <= set(binding) else None


def _names(size: str) -> set[str]:
    """The variables of a size."""
    return set(re.findall(r"[A-Za-z_]\w*", size))


def slots(net: nn.Module) -> dict[str, Placeholder]:
    """Return the slots of a network by name, in the order of its modules."""
    if not isinstance(net, nn.Module):
        raise UserError(f"expected a torch.nn.Module, got {type(net).__name__}")
    return {name: module for name, module in net.named_modules() if isinstance(module, Placeholder)}


def tensors_without_slots(net: nn.Module) -> dict[str, torch.Tensor]:
    """The state dict of a network, with the names of a network in which layers are no slots.

    Slots with operators keep their names.
    """
    inside = [
        f"{name}.layer." if name else "layer."
        for name, module in net.named_modules(remove_duplicate=False)
        if isinstance(module, Placeholder) and module.kernel is None
    ]
    state: dict[str, torch.Tensor] = dict(net.state_dict())
    for start in inside:
        end = start.removesuffix("layer.")
        state = {
            end + key.removeprefix(start) if key.startswith(start) else key: value
            for key, value in state.items()
        }
    return state


def checked_slots(net: nn.Module) -> dict[str, Placeholder]:
    """`slots`, or UserError when there is none."""
    found = slots(net)
    if not found:
        raise UserError(
            f"the network {type(net).__name__} has no slots\n"
            "  expected: at least one syno.Placeholder      got: none\n"
            "  what to do: add placeholders, or use net = syno.substitute(net, where=...)"
        )
    return found


__all__ = ["Placeholder", "checked_slots", "slots", "tensors_without_slots"]
