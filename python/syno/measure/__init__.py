"""Latency of whole networks, and the fastest plan of an operator. Needs torch."""

from syno.measure.latency import Measurement, latency
from syno.measure.plans import PlanChoice, PlanTime, choose_plan
from syno.measure.timing import Timing, step_slowdown
from syno.measure.tunings import KernelTuning, tune_kernel

__all__ = [
    "KernelTuning",
    "Measurement",
    "PlanChoice",
    "PlanTime",
    "Timing",
    "choose_plan",
    "latency",
    "step_slowdown",
    "tune_kernel",
]
