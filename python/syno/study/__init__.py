"""The loop behind `syno search` and `syno resume`."""

from syno.study.answers import Proposal
from syno.study.fidelity.ladder import Ladder, Rung, ladder, ladder_names
from syno.study.loop import Evaluator, RungEvaluator, default_stopper, run
from syno.study.members import EnumeratedSpace, Members, SamplerSpace
from syno.study.methods import (
    DiverseSampling,
    History,
    HistoryEntry,
    Method,
    Trial,
    UniformSampling,
)
from syno.study.observer import StudyObserver
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
    "EnumeratedSpace",
    "ErrorsInARow",
    "Evaluations",
    "Evaluator",
    "History",
    "HistoryEntry",
    "Ladder",
    "Members",
    "Method",
    "NoProgress",
    "Proposal",
    "Rung",
    "RungEvaluator",
    "SamplerSpace",
    "Seconds",
    "SpaceExhausted",
    "StopReason",
    "Study",
    "StudyObserver",
    "StudySettings",
    "Tally",
    "Trial",
    "UniformSampling",
    "default_stopper",
    "ladder",
    "ladder_names",
    "run",
]
