"""What an evaluator of networks is made with, beside its network and its data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from syno._util.json_types import JsonObject
from syno.options import TimingOptions
from syno.study.evaluate.network import Network
from syno.study.evaluate.quantization import Quantization
from syno.train import Fidelity


@dataclass(frozen=True)
class TrainingPart:
    """A rung as a part of a training.

    whole: the fidelity of the whole training.
    stop_after: the epoch after which the training pauses; None if it does not.
    width: the share of the full width of the network.
    """

    whole: Fidelity
    stop_after: int | None = None
    width: float = 1.0


class EvaluatorSettings(TypedDict, total=False):
    """Arguments of `NetworkEvaluator`, beside network and data, that another process is sent."""

    fidelity: Fidelity
    seed: int
    timing: TimingOptions
    deadline_s: float | None
    max_slowdown: float
    device: str
    workers: int
    checkpoints: Path | None
    measured: bool
    quantization: Quantization | None
    part: TrainingPart | None
    priced: Network | None
    kernels: str
    weights: Path | None
    predictor: JsonObject | None
