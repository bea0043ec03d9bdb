"""The arguments in calls of a compiled network, compared with those that it was compiled for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from syno._util.errors import UserError
from syno._util.tensors import dense, described


@dataclass(frozen=True)
class Argument:
    """What a compiled network takes in one place.

    shape: None for a batch of any size.    floating: float32, or else integers or truth values.
    """

    shape: tuple[int | None, ...]
    floating: bool

    @classmethod
    def of(cls, example: torch.Tensor, batch: bool) -> Argument:
        """The argument that `example` stands for; batch: whether its first dimension is free."""
        shape = tuple(None if batch and d == 0 else size for d, size in enumerate(example.shape))
        return cls(shape, example.is_floating_point())

    @property
    def any_batch(self) -> bool:
        """Whether its first dimension is a batch of any size."""
        return self.shape[:1] == (None,)

    def has_type(self, x: torch.Tensor) -> bool:
        """Whether the elements of x are of the right type."""
        if self.floating:
            return x.dtype is torch.float32
        return not (x.is_floating_point() or x.is_complex() or x.is_quantized)

    def is_kind_of(self, x: torch.Tensor) -> bool:
        """Whether x may be given here if its shape is right."""
        here = x.is_cpu and x.layout is torch.strided and not x.is_nested
        return here and self.has_type(x)

    def __str__(self) -> str:
        shape = ", ".join("n" if size is None else str(size) for size in self.shape)
        return f"{'a float32' if self.floating else 'an integer'} tensor [{shape}]"


def check_call(inputs: Sequence[object], expected: Sequence[Argument]) -> None:
    """UserError for arguments that a network was not compiled for."""
    if len(inputs) != len(expected):
        raise UserError(
            f"the network has {_count(len(expected))}\n"
            f"  expected: {', '.join(map(str, expected)) or 'none'}"
            f"      got: {_count(len(inputs))}"
        )
    for number, (x, argument) in enumerate(zip(inputs, expected, strict=True)):
        if not (isinstance(x, torch.Tensor) and argument.is_kind_of(x)):
            raise _other_kind(f"argument {number + 1} of the network", x, argument)
        shape, found = argument.shape, x.shape
        if found != shape and (shape[:1] != (None,) or found[1:] != shape[1:] or not found):
            raise UserError(
                "the network was compiled for another shape of its input\n"
                f"  expected: {['n' if size is None else size for size in shape]}"
                f"      got: {list(found)}\n"
                "  what to do: call syno.compile with an example of that shape"
            )


def with_one_batch(
    inputs: tuple[torch.Tensor, ...],
    expected: Sequence[Argument],
    readers: Sequence[frozenset[int]] | None,
) -> tuple[torch.Tensor, ...]:
    """The inputs with one size of the batch: one of a single sample is that of all samples.

    readers: the numbers of the inputs that each result depends on, where samples do not meet; else
    None. UserError where the network cannot be computed so.
    """
    batched = [n for n, argument in enumerate(expected) if argument.any_batch]
    sizes = {inputs[number].shape[0] for number in batched}
    if len(sizes) < 2:
        return inputs
    most = max(sizes)
    whole = {number for number in batched if inputs[number].shape[0] == most}
    if readers is None or sizes != {1, most} or any(not each & whole for each in readers):
        raise UserError(
            "the inputs have different numbers of samples\n"
            f"  expected: one size of the batch      got: {[list(x.shape) for x in inputs]}\n"
            "  what to do: repeat what is the same for all samples, as in x.expand(n, -1)"
        )
    return tuple(
        x.expand(most, *x.shape[1:]) if n in batched and n not in whole else x
        for n, x in enumerate(inputs)
    )


def check_several(
    inputs: Sequence[torch.Tensor], expected: Sequence[Argument], module: str
) -> None:
    """UserError for a batch of one in a network whose module removes its dimension."""
    pairs = zip(inputs, expected, strict=True)
    if any(argument.any_batch and x.shape[0] == 1 for x, argument in pairs):
        raise without_one(module)


def without_one(module: str) -> UserError:
    """The error for a batch of one in a network whose module removes its dimension."""
    return UserError(
        "the network computes a batch of one in another way than others\n"
        f"  in the module {module}, where squeeze() also removes the dimension of the batch\n"
        "  what to do: name the dimensions, as in squeeze(1), or compile the network with an "
        "example of one sample"
    )


def _other_kind(what: str, x: object, argument: Argument) -> UserError:
    """The error for what is no tensor, has numbers of another type, or lies elsewhere."""
    if not isinstance(x, torch.Tensor):
        return UserError(
            f"{what} is not a tensor\n"
            f"  expected: {argument}      got: {described(x)}\n"
            f"  what to do: {_advice(x)}"
        )
    dense(what, x)
    right = argument.has_type(x)
    cure = ("" if x.is_cpu else ".cpu()") + (
        "" if right else ".float()" if argument.floating else ".long()"
    )
    return UserError(
        f"{what} is of another kind\n"
        f"  expected: {argument} on the CPU      got: {x.dtype} on the device {x.device}\n"
        f"  what to do: use x{cure}"
    )


def _advice(x: object) -> str:
    if isinstance(x, (list, tuple)) and all(isinstance(each, torch.Tensor) for each in x):
        return "give the tensors themselves, as in network(*tensors)"
    if hasattr(x, "__array__"):
        return "use torch.as_tensor"
    return "call the network with tensors, as in network(x)"


def _count(count: int) -> str:
    return f"{count} argument" + ("" if count == 1 else "s")
