"""Predicted latencies of compiled operators, and of networks with them.

LatencyPredictor    learns from measured latencies; predicts others with their uncertainty
LatencySample       a measured latency of some kernels on a device
Device              what a prediction knows of a processor
"""

from syno.prediction.device import Device
from syno.prediction.predictor import LatencyPrediction, LatencyPredictor, LatencySample, Workload
from syno.prediction.work import RESOURCES, Work, kernel_work

__all__ = [
    "RESOURCES",
    "Device",
    "LatencyPrediction",
    "LatencyPredictor",
    "LatencySample",
    "Work",
    "Workload",
    "kernel_work",
]
