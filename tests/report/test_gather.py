"""From a study to the report's values."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from syno.report.gather import _baseline


def _evaluation(latency_ms: float | None, latency_ratio: float | None) -> SimpleNamespace:
    return SimpleNamespace(latency_ms=latency_ms, latency_ratio=latency_ratio)


def test_the_originals_latency_is_the_median_of_all_runs_it_was_timed_in() -> None:
    alone = SimpleNamespace(
        accuracy=0.9,
        latency_ms=9.0,
        latency_spread_ms=0.1,
        macs=10,
        params=5,
        details={},
        kind="baseline",
    )
    timed = [_evaluation(2.0, 2.0), _evaluation(1.0, 0.5), _evaluation(6.0, 2.0)]
    summary = SimpleNamespace(
        baseline=alone, final=[], evaluations=[*timed, _evaluation(None, None)]
    )
    assert _baseline(summary).latency_ms == pytest.approx(2.0)  # of 1, 2 and 3 ms, not the 9 alone
    summary.evaluations = []
    assert _baseline(summary).latency_ms == 9.0
