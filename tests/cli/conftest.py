"""A small store with one study, written through the store's own door."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from syno.operators.specification import Specification
from syno.store import (
    BaselineLatency,
    Environment,
    MeasurementResult,
    Outcome,
    Store,
    VerificationResult,
)

CONV = """syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce k -> r0
reduce k -> r1
reduce C_in -> r2
contract o1:drop r0:keep r1:keep r2:keep
unfold o2 r0 -> c0
unfold o3 r1 -> c1
match o0 r2 c0 c1
"""
LINEAR = """syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> r0
contract o1:drop r0:keep
match o0 r0 o2 o3
"""
SPECIFICATION = Specification(
    "[N, C_in: unordered, H, H]",
    "[N, C_out: unordered, H, H]",
    ["N: 0", "C_in: 2", "C_out: 4", "H: 0"],
    ["k=3: 2"],
    bindings=[{"C_in": 8, "C_out": 8, "H": 8}, {"C_in": 8, "C_out": 16, "H": 4}],
    multiplicities=[2, 1],
    layer_macs=[73728, 18432],
    passed_through=[(0, 0)],
    min_unfold_ratio=1.3,
)
KEYS = {CONV: "c0" * 16, LINEAR: "1e" * 16}
HERE = Environment(
    device="a processor",
    platform="Linux",
    libraries={"torch": "2"},
    commit="",
    threads=1,
    rules="1",
)
ORIGINAL = BaselineLatency(median_ms=1.5, spread_ms=0.1)


def outcome(accuracy: float, latency_ms: float) -> Outcome:
    return Outcome(
        "ok",
        accuracy=accuracy,
        rung="tiny",
        seconds=2.0,
        macs=120_000,
        params=900,
        primitives={"reduce": 1, "contract": 1},
        verification=VerificationResult("ab" * 16, [{"C_in": 8}], "torch", 0, True, 1e-7),
        measurement=MeasurementResult(latency_ms, 0.05, latency_ms / 1.5, ORIGINAL, 1, 20),
    )


def write_store(path: Path, keys: Callable[[str], str]) -> None:
    """A baseline, an answered and a failed operator in the study `digits-1`; keys: of texts."""
    with Store.open(str(path)) as store:
        study = store.create_study(
            "digits-1",
            specification=(SPECIFICATION.key, json.loads(SPECIFICATION.to_json())),
            settings={"model": "resnet-small", "data": "digits", "evaluations": 3},
            seed=0,
        )
        store.append_event(study, "started", {})
        store.append_event(study, "space", {"rejections": {"cannot-finish": 7}})
        answers = (
            (None, Outcome("ok", accuracy=0.9, macs=200_000, params=1000, latency=ORIGINAL)),
            (LINEAR, outcome(0.85, 1.2)),
            (CONV, Outcome("error", reason="non_finite_loss", macs=1)),
        )
        for number, (text, answer) in enumerate(answers):
            operator = None if text is None else (text, keys(text))
            proposal = store.ask(study, number, operator, "worker")
            store.tell(proposal.id, answer, HERE)


@pytest.fixture
def runs(tmp_path: Path) -> str:
    """The path of a store: a study with a baseline, an answered and a failed operator."""
    write_store(tmp_path / "runs.db", KEYS.__getitem__)
    return str(tmp_path / "runs.db")
