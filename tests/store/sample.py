"""Values for tests of the store."""

from __future__ import annotations

from typing import Any

from syno.store import (
    BaselineLatency,
    Environment,
    MeasurementResult,
    Outcome,
    Store,
    StudyRecord,
    VerificationResult,
)

ENVIRONMENT = Environment(
    device="a processor",
    platform="Linux",
    libraries={"torch": "2.13.0"},
    commit="0123abcd",
    threads=1,
    rules="1",
)
VERIFICATION = VerificationResult(
    source_hash="5ec7e1",
    bindings=[{"H": 8, "C_in": 4}],
    emitter="pytorch",
    seed=3,
    passed=True,
    max_error=1e-7,
)
MEASUREMENT = MeasurementResult(
    median_ms=1.5,
    spread_ms=0.1,
    ratio=0.75,
    baseline=BaselineLatency(median_ms=2.0, spread_ms=0.2),
    threads=1,
    repeats=20,
)
TRAINED = Outcome(
    status="ok",
    accuracy=0.875,
    rung="16px",
    recipe={"epochs": 3, "lr": 0.1},
    seed=5,
    seconds=2.5,
    macs=12345,
    params=678,
    primitives={"reduce": 2, "unfold": 1},
    verification=VERIFICATION,
    measurement=MEASUREMENT,
    details={"losses": [2.0, 1.0]},
)
BASELINE = Outcome(
    status="ok", accuracy=0.9, seconds=3.0, macs=20000, latency=BaselineLatency(2.0, 0.2)
)


def make_study(store: Store, name: str = "study", **settings: Any) -> StudyRecord:
    return store.create_study(
        name, specification=("5bec", {"input": "[H]"}), settings=settings, seed=3
    )
