"""Training of one network at one fidelity, and its result on the validation split.

Needs torch.
"""

from syno.train.checkpoint import ForeignCheckpointError
from syno.train.distillation import Distillation
from syno.train.evaluate import accuracy, test_accuracy, test_metrics
from syno.train.fidelities import FIDELITIES, Fidelity, fidelity, rungs
from syno.train.outcome import EpochPoint, TrainingOutcome
from syno.train.parallel import ProcessGroup, joined
from syno.train.recipe import Recipe, recipe, recipe_names
from syno.train.samples import training_images, validation_accuracy
from syno.train.stoppers import (
    DEFAULT_STOPPERS,
    AboveChance,
    Diverging,
    LeastAccuracy,
    MemoryLimit,
    NonFinite,
    ProcessorTimeLimit,
    SlowStep,
    State,
    Stop,
    TimeLimit,
    TrainingStopper,
)
from syno.train.task import NonFiniteScoresError, TrainingTask
from syno.train.trainer import check, make_task, train

__all__ = [
    "DEFAULT_STOPPERS",
    "FIDELITIES",
    "AboveChance",
    "Distillation",
    "Diverging",
    "EpochPoint",
    "Fidelity",
    "ForeignCheckpointError",
    "LeastAccuracy",
    "MemoryLimit",
    "NonFinite",
    "NonFiniteScoresError",
    "ProcessGroup",
    "ProcessorTimeLimit",
    "Recipe",
    "SlowStep",
    "State",
    "Stop",
    "TimeLimit",
    "TrainingOutcome",
    "TrainingStopper",
    "TrainingTask",
    "accuracy",
    "check",
    "fidelity",
    "joined",
    "make_task",
    "recipe",
    "recipe_names",
    "rungs",
    "test_accuracy",
    "test_metrics",
    "train",
    "training_images",
    "validation_accuracy",
]
