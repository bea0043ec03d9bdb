"""An adaptation in a process of its own, which kills itself: `... STORE [FINDINGS SECONDS]`.

It does so that many seconds after the store has so many findings, or else at its end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import torch

from syno.adaptation.pipeline.journal import AdaptationJournal

from .conftest import Net, adapted, learned, options, samples


def kill_after(findings: int, seconds: float) -> threading.Timer:
    """Arrange the end; the timer starts with that finding."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    put = AdaptationJournal.put

    def counted(self: AdaptationJournal, what: str, key: str, value: object) -> None:
        put(self, what, key, value)
        if len(self._found.done) == findings:
            timer.start()

    AdaptationJournal.put = counted  # type: ignore[method-assign]
    return timer


def main(store: str, findings: str = "0", seconds: str = "0") -> None:
    torch.set_num_threads(1)
    timer = kill_after(int(findings), float(seconds)) if int(findings) else None
    data = samples(640, 0)
    adapted(
        learned(Net, data),
        data,
        store,
        name="one",
        macs=["0.8x", "0.6x"],
        fidelity={"epochs": 2, "batch": 64},
        options=options(widths=True, blocks=True),
        progress=lambda *told: None,
    )
    if timer is not None:
        if timer.ident is None:
            timer.start()
        timer.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
