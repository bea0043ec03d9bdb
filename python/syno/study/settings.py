"""The settings of a study, which the store keeps as JSON so that `resume` needs nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict, Unpack, cast

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.options import (
    EVALUATIONS,
    METHOD,
    WEIGHTS_LIMIT,
    TimingOptions,
    TrainOptions,
)
from syno.store.documents import (
    LadderDocument,
    LatencySettings,
    MetricDocument,
    SettingsDocument,
    SpaceSettings,
    TrainingSettings,
)
from syno.store.objectives import objectives_of

if TYPE_CHECKING:
    from torch import nn

# The method of a study whose operators were given by name (`syno train`), not searched.
GIVEN = "given"
# Settings that older stores do not have; where they are empty, they are not stored.
_LATER = ("metric", "objectives", "constraints", "retrain", "patience", "needs")
# Settings of older stores that mean nothing any more.
_GONE = ("spot_checks", "spot_tolerance")


class Limits(TypedDict, total=False):
    """The settings that a resumed study may change; None keeps one."""

    evaluations: int | None
    seconds: float | None
    training: TrainingSettings | None
    patience: int | None


@dataclass(frozen=True)
class StudySettings:
    """All options of a search.

    model: the name of a model; None for a module of the user, which `resume` needs again.
    model_options: the options of the model.
    data: the name of a data set or its path; `fingerprint` identifies its content.
    tokenizer: of text.
    fidelity: as `Fidelity.to_json`; with a ladder that of its highest rung.
    ladder: as `Ladder.to_json`, with the fingerprints of the data of each rung.
    training: how networks are trained and evaluations isolated.
    space: how the space is enumerated.
    method: how operators are selected, with `method_options`.
    latency: how latencies are measured.
    evaluations: the number of operators to train.
    seconds: the time limit of all runs together; None for no limit.
    baseline: whether the original network is evaluated first.
    metric: of custom data, or of a custom evaluation; None for the data sets that Syno loads.
    objectives: measures to minimize or maximize; empty for the accuracy, the loss or the metric.
    constraints: bounds that results must satisfy, such as `latency_ratio<=0.8`.
    retrain: how many times an operator that looks best is trained again, with other seeds.
    patience: the study stops after this many operators without progress; None for no limit.
    needs: tags that a worker must have to evaluate its trials; empty for any worker.
    """

    model: str | None = None
    model_options: Mapping[str, int | str] = field(default_factory=dict)
    data: str | None = None
    data_dir: str | None = None
    tokenizer: str = "bytes"
    fingerprint: str = ""
    fidelity: Mapping[str, Json] = field(default_factory=dict)
    ladder: LadderDocument | None = None
    training: TrainingSettings = field(default_factory=TrainingSettings)
    space: SpaceSettings = field(default_factory=SpaceSettings)
    method: str = METHOD
    method_options: Mapping[str, Json] = field(default_factory=dict)
    latency: LatencySettings = field(default_factory=LatencySettings)
    evaluations: int = EVALUATIONS
    seconds: float | None = None
    seed: int = 0
    baseline: bool = True
    metric: MetricDocument | None = None
    objectives: Sequence[str] = ()
    constraints: Sequence[str] = ()
    retrain: int = 0
    patience: int | None = None
    needs: Sequence[str] = ()

    def __post_init__(self) -> None:
        hint = "pass the number of operators to train, such as 20"
        checks.whole(
            "'evaluations'", self.evaluations, least=1, most=checks.MOST_COUNTED, hint=hint
        )
        if self.seconds is not None and not checks.number("'seconds'", self.seconds) > 0:
            raise UserError(f"seconds must be positive, got {self.seconds:g}")
        checks.whole("'seed'", self.seed, least=0)
        checks.whole("'retrain'", self.retrain, least=0)
        if self.patience is not None:
            checks.whole("'patience'", self.patience, least=1)
        objectives_of(self.to_json())

    def to_json(self) -> SettingsDocument:
        """Return the settings as a JSON document."""
        content = dataclasses.asdict(self)
        # As stores had it before these settings existed.
        for name in _LATER:
            if not content[name]:
                del content[name]
        return cast(SettingsDocument, content)

    @classmethod
    def from_json(cls, content: SettingsDocument) -> StudySettings:
        """Read the document of `to_json`.

        Raises:
            UserError: for settings that this version of Syno does not know.
        """
        content = cast(SettingsDocument, {k: v for k, v in content.items() if k not in _GONE})
        unknown = sorted(set(content) - {f.name for f in dataclasses.fields(cls)})
        if unknown:
            raise UserError(
                "the study has settings that this version of Syno does not know: "
                f"{', '.join(unknown)}\n"
                "  what to do: resume it with the version of Syno that started it, or a later one"
            )
        return cls(**content)

    def changed(self, **limits: Unpack[Limits]) -> StudySettings:
        """Return the settings with other limits."""
        given = {name: value for name, value in limits.items() if value is not None}
        return dataclasses.replace(self, **given)  # type: ignore[arg-type]


def kernel_settings(train: TrainOptions) -> TrainingSettings:
    """Return the settings of a study for what computes operators and for the weights that are kept.

    Defaults are left out, as in stores from before these settings.
    """
    found: TrainingSettings = {"kernels": "compiled"} if train.kernels == "compiled" else {}
    if train.weights_limit != WEIGHTS_LIMIT:
        found["weights_limit"] = train.weights_limit
    return found


def timing_settings(timing: TimingOptions) -> LatencySettings:
    """Return the settings of a study that stand for timing options."""
    found: LatencySettings = {
        "repeats": timing.repeats,
        "warmup": timing.warmup,
        "threads": timing.threads,
        "latency": timing.latency or "eager",
    }
    return found if timing.predictor is None else found | {"predictor": timing.predictor}


def stored_timing(latency: LatencySettings) -> TimingOptions:
    """Return the timing options of a stored study; without an engine, it measured eager PyTorch."""
    return TimingOptions(**(LatencySettings(latency="eager") | latency))


def network_again(name: str, settings: StudySettings, net: nn.Module | None) -> str | nn.Module:
    """Return the network of a stored study: the name of its model, or the module that is given.

    Raises:
        UserError: if a module is missing, or is given for a model by name.
    """
    if settings.model is not None:
        if net is not None:
            raise UserError(f"study '{name}' is about the model '{settings.model}', not a module")
        return settings.model
    if net is None:
        raise UserError(
            f"study '{name}' was started with a module, which a store cannot hold\n"
            "  what to do: syno.resume(store, study, net=...) with the same module"
        )
    return net


def check_data(name: str, settings: StudySettings, now: StudySettings) -> None:
    """Compare the settings of a stored study with those of the data now.

    Raises:
        UserError: if the data is another one.
    """
    if settings != now:
        raise UserError(
            f"the data set '{settings.data}' is not what study '{name}' was started with\n"
            f"  expected: {settings.fingerprint}      got: {now.fingerprint}\n"
            "  what to do: pass the folder of the same data as data_dir, or start a new study"
        )
