"""Latency of whole networks, and the fastest plan of an operator. Needs torch."""

from syno.measure.kernel_tuning import KernelTuning, tune_kernel
from syno.measure.latency import Measurement, latency
from syno.measure.plans import PlanChoice, PlanTime, choose_plan
from syno.measure.timing import Timing, step_slowdown

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
