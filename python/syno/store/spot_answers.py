"""An answer in short, as spot checks compare it, and what two answers differ in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from syno.store.documents import Details, ShortAnswer
from syno.store.objective import Objective
from syno.store.records import Environment, Outcome, plain

# Latencies of one device differ by less than this factor, however busy it is.
_LATENCY_FACTOR = 3.0


def short_answer(outcome: Outcome, environment: Environment, objective: Objective) -> ShortAnswer:
    """Return what is compared of an outcome."""
    found: ShortAnswer = {
        "status": outcome.status,
        "reason": outcome.reason,
        "value": value_of(objective, outcome.accuracy, outcome.details, outcome.seed),
        "macs": outcome.macs,
        "params": outcome.params,
        "primitives": outcome.primitives,
    }
    if outcome.measurement is not None and outcome.verification is not None:
        verified = outcome.verification
        found |= {
            "source_hash": verified.source_hash,
            "emitter": verified.emitter,
            "bindings": verified.bindings,
            "latency_ratio": outcome.measurement.ratio,
            "device": environment.device,
            "threads": outcome.measurement.threads,
        }
    return cast(ShortAnswer, plain(found))


def value_of(
    objective: Objective, accuracy: float | None, details: Details, seed: int
) -> float | None:
    """Return the value of the objective with the first seed, where several were trained."""
    first = details.get("by_seed", {}).get(str(seed))
    return objective.of(accuracy, details) if first is None else first


def difference(
    first: ShortAnswer, second: ShortAnswer, objective: Objective, tolerance: float
) -> str:
    """Say in what two answers to one proposal differ.

    Args:
        first, second: the answers.
        objective: of the study.
        tolerance: by how much values of the objective may differ: of a share, the difference;
            otherwise the difference relative to the greater one.

    Returns:
        The first difference in words; an empty text if there is none.
    """
    one, two = (in_words(answer, objective) for answer in (first, second))
    if first["status"] != second["status"]:
        return f"{one} and {two}"
    own: Mapping[str, object] = first
    other: Mapping[str, object] = second
    for name in ("macs", "params", "primitives"):
        if None not in (own.get(name), other.get(name)) and own[name] != other[name]:
            return f"{name} of {own[name]} and {other[name]}"
    same_code = all(own.get(name) == other.get(name) for name in ("emitter", "bindings"))
    if same_code and first.get("source_hash") != second.get("source_hash"):
        return "verifications of different code"
    if not _is_close(first.get("value"), second.get("value"), objective, tolerance):
        return f"{one} and {two}"
    if all(own.get(name) == other.get(name) is not None for name in ("device", "threads")):
        low, high = sorted((first["latency_ratio"], second["latency_ratio"]))
        if high > _LATENCY_FACTOR * low:
            return (
                f"latency ratios of {first['latency_ratio']:.3g} and "
                f"{second['latency_ratio']:.3g} on the same device"
            )
    return ""


def in_words(answer: ShortAnswer, objective: Objective) -> str:
    """Word an answer: its value, or why it has none."""
    value = answer.get("value")
    if value is not None:
        return objective.in_words(value)
    return f"{answer['status']} ({answer['reason']})" if answer["reason"] else answer["status"]


def _is_close(
    first: float | None, second: float | None, objective: Objective, tolerance: float
) -> bool:
    if first is None or second is None:
        return first is second
    scale = 1.0 if objective.is_share else max(abs(first), abs(second))
    return abs(first - second) <= tolerance * scale
