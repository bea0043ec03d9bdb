"""Numbers as people read them. One place, so that page, pictures and terminal agree."""

from __future__ import annotations

import math

MISSING = "–"
# Stands behind times that were disturbed.
NOISY = "(noisy: other processes used the machine)"
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: float | None) -> str:
    """A large count with three significant digits: 1234567 gives `1.23 M`."""
    if value is None:
        return MISSING
    for step, suffix in _STEPS:
        # 999,500 rounds to a thousand thousands, which reads better as one million.
        if abs(value) >= step * 0.9995:
            return f"{_three_digits(value / step)} {suffix}"
    return f"{value:.0f}"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 operator`, `1,234 operators`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def short(value: float) -> str:
    """A round number for an axis: 200000 gives `200k`."""
    for step, suffix in _STEPS:
        if abs(value) >= step:
            return f"{value / step:g}{suffix}"
    return f"{value:g}"


def percent(fraction: float | None, digits: int = 1) -> str:
    """A fraction as percent: 0.9312 gives `93.1 %`."""
    return MISSING if fraction is None else f"{100 * fraction:.{digits}f} %"


def perplexity(loss: float | None) -> str:
    """The perplexity of a loss in nats a token: its exponential, with three significant digits."""
    if loss is None:
        return MISSING
    return _three_digits(math.exp(loss)) if loss < 14 else f"{math.exp(min(loss, 700.0)):.1e}"


def points(fraction: float) -> str:
    """A difference of accuracies in percentage points, with its sign."""
    return f"{100 * fraction:+.1f} points".replace("-", "\N{MINUS SIGN}")


def milliseconds(value: float | None) -> str:
    """A time in milliseconds with three significant digits."""
    return MISSING if value is None else f"{_three_digits(value)} ms"


def ratio(value: float | None) -> str:
    """A ratio to the baseline: 0.514 gives `0.51x`."""
    return MISSING if value is None else f"{value:.2f}\N{MULTIPLICATION SIGN}"


def speedup(latency_ratio: float | None) -> str:
    """The speed-up over the baseline, above 1 where it is faster: a latency ratio of 0.5 gives
    `2.00x`."""
    return MISSING if not latency_ratio else ratio(1 / latency_ratio)


def duration(seconds: float | None) -> str:
    """A duration: `9.4 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds is None:
        return MISSING
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def primitives(counts: dict[str, int]) -> str:
    """A multiset of primitives in one line: `contract 2, reduce 3, unfold`."""
    return ", ".join(
        name if number == 1 else f"{name}\N{NO-BREAK SPACE}{number}"
        for name, number in sorted(counts.items())
        if number
    )


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
