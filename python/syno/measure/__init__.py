"""Latency of whole networks, and the fastest plan of an operator. Needs torch."""

from syno.measure.latency import Measurement, Timing, latency
from syno.measure.plans import PlanChoice, PlanTime, choose_plan

__all__ = ["Measurement", "PlanChoice", "PlanTime", "Timing", "choose_plan", "latency"]
