"""The batches that ranges are taken from, checked as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import nn

from syno._util.errors import UserError, first_line
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


def scores_of(net: nn.Module, batch: torch.Tensor, name: str = "") -> torch.Tensor:
    """What a network gives for a batch. UserError where it fails, or gives something else.

    name: of the network in messages; empty for that of its class.
    """
    name = name or type(net).__name__
    try:
        scores = net(batch)
    except UserError:
        raise
    except Exception as error:  # whatever a network raises
        raise UserError(
            f"the network {name} fails on the calibration images: "
            f"{first_line(error)}\n"
            f"  in a batch of the shape {list(batch.shape)} of {batch.dtype}"
        ) from error
    if not isinstance(scores, torch.Tensor):
        raise UserError(
            f"the network {name} cannot be quantized: it gives {described(scores)}\n"
            "  expected: a network with one tensor of scores"
        )
    if not scores.isfinite().all():
        raise UserError(
            f"the network {name} gives scores that are not finite\n"
            "  expected: a trained network, which gives numbers for the calibration images"
        )
    return scores
