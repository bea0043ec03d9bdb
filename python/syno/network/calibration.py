"""The batches that ranges are taken from, checked as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import torch

from syno._util.errors import UserError
from syno._util.inputs import Inputs
from syno._util.tensors import check_float32, described


def checked_batches(calibration: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The batches one by one. UserError for what is no batch of finite numbers, or none at all."""
    if isinstance(calibration, torch.Tensor):
        raise UserError(
            f"the calibration images are one tensor {list(calibration.shape)}\n"
            "  expected: batches, one after the other      what to do: use images.split(32)"
        )
    if not isinstance(calibration, Iterable) or isinstance(calibration, (str, bytes, Mapping)):
        raise UserError(
            "the calibration images are no batches\n"
            "  expected: a list of tensors, or what gives one after the other"
            f"      got: {described(calibration)}"
        )
    first: torch.Tensor | None = None
    for number, batch in enumerate(calibration, 1):
        found = _checked(f"batch {number} of the calibration images", batch)
        first = found if first is None else first
        if (found.shape[1:], found.dtype) != (first.shape[1:], first.dtype):
            raise UserError(
                f"batch {number} of the calibration images is not like the first\n"
                f"  expected: {['n', *first.shape[1:]]} of {first.dtype}"
                f"      got: {list(found.shape)} of {found.dtype}"
            )
        yield found
    if first is None:
        raise UserError(
            "there are no images to calibrate on\n  expected: at least one batch      got: none"
        )


def checked_inputs(calibration: Iterable[Inputs], count: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """As `checked_batches`, for a network of so many inputs: batches are tuples of tensors then."""
    if count == 1:
        yield from ((batch,) for batch in checked_batches(calibration))  # type: ignore[arg-type]
        return
    if isinstance(calibration, (torch.Tensor, str, bytes, Mapping)) or not isinstance(
        calibration, Iterable
    ):
        raise UserError(
            "the calibration data is no batches\n"
            f"  expected: tuples of the {count} inputs of the network, one after the other"
            f"      got: {described(calibration)}"
        )
    first: tuple[torch.Tensor, ...] | None = None
    for number, batch in enumerate(calibration, 1):
        what = f"batch {number} of the calibration data"
        if not isinstance(batch, (tuple, list)) or len(batch) != count:
            got = f"{len(batch)} of them" if isinstance(batch, (tuple, list)) else described(batch)
            raise UserError(
                f"{what} is not like the arguments of the network\n"
                f"  expected: a tuple of its {count} inputs      got: {got}"
            )
        found = tuple(_checked(f"input {place} of {what}", x) for place, x in enumerate(batch, 1))
        if len({len(x) for x in found}) != 1:
            raise UserError(
                f"{what} has inputs of different numbers of samples\n"
                f"  expected: one      got: {', '.join(str(len(x)) for x in found)}"
            )
        first = found if first is None else first
        if [(x.shape[1:], x.dtype) for x in found] != [(x.shape[1:], x.dtype) for x in first]:
            raise UserError(
                f"{what} is not like the first\n"
                "  expected: "
                + " and ".join(f"{['n', *x.shape[1:]]} of {x.dtype}" for x in first)
                + "      got: "
                + " and ".join(f"{list(x.shape)} of {x.dtype}" for x in found)
            )
        yield found
    if first is None:
        raise UserError(
            "there is no data to calibrate on\n  expected: at least one batch      got: none"
        )


def _checked(what: str, batch: object) -> torch.Tensor:
    if isinstance(batch, (list, tuple)):
        raise UserError(
            f"{what} is a {type(batch).__name__} of {len(batch)}\n"
            "  expected: a tensor of inputs, without targets\n"
            "  what to do: use [inputs for inputs, targets in loader]"
        )
    found = check_float32(what, batch)
    if found.dim() == 0 or found.numel() == 0:
        raise UserError(
            f"{what} is empty\n  expected: at least one sample      got: {list(found.shape)}"
        )
    if not found.isfinite().all():
        raise UserError(
            f"{what} has values that are not finite\n"
            "  expected: the inputs that the network was trained on, without NaN and infinity"
        )
    return found
