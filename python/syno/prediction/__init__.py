"""Predicted latencies of compiled operators, and of networks with them.

LatencyPredictor    learns from measured latencies; predicts others with their uncertainty
LatencySample       a measured latency of some kernels on a device
Device              what a prediction knows of a processor
"""

from syno.prediction.device import Device
from syno.prediction.predictor import Kernel, LatencyPrediction, LatencyPredictor, LatencySample
from syno.prediction.work import RESOURCES, Work, kernel_work

__all__ = [
    "RESOURCES",
    "Device",
    "Kernel",
    "LatencyPrediction",
    "LatencyPredictor",
    "LatencySample",
    "Work",
    "kernel_work",
]
