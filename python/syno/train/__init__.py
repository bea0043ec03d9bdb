"""Training of one network at one fidelity: an outcome as a value, on a hold-out split.

Needs torch.
"""

from syno.train.evaluate import accuracy, test_accuracy
from syno.train.fidelities import FIDELITIES, Fidelity, fidelity
from syno.train.outcome import EpochPoint, Outcome
from syno.train.stoppers import AboveChance, Deadline, NonFinite, State, Stop, Stopper
from syno.train.trainer import train

__all__ = [
    "FIDELITIES",
    "AboveChance",
    "Deadline",
    "EpochPoint",
    "Fidelity",
    "NonFinite",
    "Outcome",
    "State",
    "Stop",
    "Stopper",
    "accuracy",
    "fidelity",
    "test_accuracy",
    "train",
]
