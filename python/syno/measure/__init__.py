"""Latency of whole networks. Needs torch."""

from syno.measure.latency import Measurement, Timing, latency

__all__ = ["Measurement", "Timing", "latency"]
