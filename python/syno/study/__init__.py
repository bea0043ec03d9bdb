"""The loop behind `syno search` and `syno resume`."""

from syno.study.answers import Proposal
from syno.study.fidelity.ladder import Ladder, Rung, ladder, ladder_names
from syno.study.loop import Evaluator, RungEvaluator, default_stopper, run
from syno.study.members import Members, SamplerSpace, Space
from syno.study.methods import DiverseSampling, Entry, History, Method, Trial, UniformSampling
from syno.study.observer import Observer
from syno.study.settings import StudySettings
from syno.study.stoppers import (
    AllOf,
    AnyOf,
    ErrorsInARow,
    Evaluations,
    NoProgress,
    Seconds,
    SpaceExhausted,
    StopReason,
    Tally,
)
from syno.study.study import Study

__all__ = [
    "AllOf",
    "AnyOf",
    "DiverseSampling",
    "Entry",
    "ErrorsInARow",
    "Evaluations",
    "Evaluator",
    "History",
    "Ladder",
    "Members",
    "Method",
    "NoProgress",
    "Observer",
    "Proposal",
    "Rung",
    "RungEvaluator",
    "SamplerSpace",
    "Seconds",
    "Space",
    "SpaceExhausted",
    "StopReason",
    "Study",
    "StudySettings",
    "Tally",
    "Trial",
    "UniformSampling",
    "default_stopper",
    "ladder",
    "ladder_names",
    "run",
]
