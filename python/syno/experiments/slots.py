"""What `syno bench slots` times, and the times as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from syno.measure.slots import SlotsRun
from syno.network import models
from syno.store.environment import capture_environment


def network_with_slots(
    model: str, options: Mapping[str, Any], size: int | None, batch: int
) -> tuple[nn.Module, torch.Tensor]:
    """The model of that name with slots, and an input for it: zeros, `batch` samples."""
    net = models.build(model, size=size, **options)
    images = models.describe(model).images is not None
    kind = torch.float32 if images else torch.long
    example = torch.zeros(batch, *models.built(net).input_shape, dtype=kind)
    template = models.slots(net) if images else models.slots(net, example=example)
    return template, example


def described(run: SlotsRun, model: str, batch: int) -> dict[str, object]:
    """Everything that was measured, as plain values, on which machine."""
    kernels = run.kernels
    return {
        "model": model,
        "batch": batch,
        "slots": [dataclasses.asdict(time) for time in run.times],
        "kinds": run.counts,
        "kernels": [dataclasses.asdict(time) for time in kernels.times],
        "noisy": kernels.noisy,
        "rounds": kernels.rounds,
        "environment": dataclasses.asdict(capture_environment(threads=kernels.threads, rules="")),
    }
