"""An adaptation in a process of its own, which a test kills: `python -m ... STORE`."""

from __future__ import annotations

import sys

import torch

from .conftest import Net, adapted, learned, options, samples

if __name__ == "__main__":
    torch.set_num_threads(1)
    data = samples(640, 0)
    adapted(
        learned(Net, data),
        data,
        sys.argv[1],
        name="one",
        macs=["0.8x", "0.6x"],
        fidelity={"epochs": 2, "batch": 64},
        options=options(widths=True, blocks=True),
        progress=lambda *told: None,
    )
