"""Parts of an outcome, as the store takes them."""

from __future__ import annotations

from syno.codegen.verify import Verification
from syno.measure import Measurement
from syno.store import BaselineLatency, MeasurementResult, VerificationResult
from syno.store.documents import Details
from syno.store.records import canonical_json, digest, plain


def verification_result(checks: list[Verification]) -> VerificationResult:
    """Merge the comparisons of one operator. The hash covers all sources."""
    sources = sorted({check.source_hash for check in checks})
    return VerificationResult(
        source_hash=sources[0] if len(sources) == 1 else digest(canonical_json(sources)),
        bindings=[check.binding for check in checks],
        emitter=checks[0].emitter,
        seed=checks[0].seed,
        passed=all(check.passed for check in checks),
        max_error=max(check.max_error for check in checks),
    )


def measurement_result(timed: Measurement) -> MeasurementResult:
    """Return a measurement beside the original network as the store takes it."""
    assert timed.baseline is not None and timed.ratio is not None
    return MeasurementResult(
        median_ms=timed.median_ms,
        spread_ms=timed.spread_ms,
        ratio=timed.ratio,
        baseline=BaselineLatency(timed.baseline.median_ms, timed.baseline.spread_ms),
        threads=timed.threads,
        repeats=timed.repeats,
        batch=timed.batch,
    )


def noise(timed: Measurement) -> Details:
    """Return how noisy the machine was during the measurement."""
    return {
        "control": plain(timed.control),
        "stream": plain(timed.stream),
        "noisy": timed.noisy,
    }
