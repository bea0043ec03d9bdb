"""The times of `syno bench slots` as plain values."""

from __future__ import annotations

import dataclasses

from syno.measure.slots import SlotsRun
from syno.store.environment import capture_environment


def described(run: SlotsRun, model: str, batch: int) -> dict[str, object]:
    """Everything that was measured, as plain values, on which machine."""
    kernels = run.kernels
    return {
        "model": model,
        "batch": batch,
        "slots": [dataclasses.asdict(time) for time in run.times],
        "kinds": run.counts,
        "kernels": [dataclasses.asdict(time) for time in kernels.times],
        "controls": {name: dataclasses.asdict(each) for name, each in kernels.controls.items()},
        "noisy": kernels.noisy,
        "rounds": kernels.rounds,
        "environment": dataclasses.asdict(capture_environment(threads=kernels.threads, rules="")),
    }
