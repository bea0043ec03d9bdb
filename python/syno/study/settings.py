"""The settings of a study, which the store keeps as JSON so that `resume` needs nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from syno._util.declaration import document, restored, stored_names
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.options import IsolationOptions, TimingOptions, TrainOptions
from syno.space.options import SpaceOptions
from syno.store.documents import LadderDocument, MetricDocument, SettingsDocument
from syno.store.objectives import objectives_of
from syno.study_options import SearchOptions

if TYPE_CHECKING:
    from torch import nn

# The method of a study whose operators were given by name (`syno train`), not searched.
GIVEN = "given"
# Settings of older stores that mean nothing any more.
_GONE = ("spot_checks", "spot_tolerance")


@dataclass(frozen=True, kw_only=True)
class StudySettings(SearchOptions):
    """The options of a search, and what they were found to mean for its network and data.

    model: the name of a model; None for a module of the user, which `resume` needs again.
    model_options: the options of the model.
    data: the name of a data set or its path; `fingerprint` identifies its content.
    tokenizer: of text.
    fidelity: as `Fidelity.to_json`; with a ladder that of its highest rung.
    ladder: as `Ladder.to_json`, with the fingerprints of the data of each rung.
    training, space, latency: what is stored of `TrainOptions` and `IsolationOptions`, of
        `SpaceOptions`, and of `TimingOptions`.
    method: how operators are selected, with `method_options`.
    baseline: whether the original network is evaluated first.
    metric: of custom data, or of a custom evaluation; None for the data sets that Syno loads.
    """

    model: str | None = None
    model_options: Mapping[str, int | str] = field(default_factory=dict)
    data: str | None = None
    data_dir: str | None = None
    tokenizer: str = "bytes"
    fingerprint: str = ""
    fidelity: Mapping[str, Json] = field(default_factory=dict)
    ladder: LadderDocument | None = None
    training: Mapping[str, Json] = field(default_factory=dict)
    space: Mapping[str, Json] = field(default_factory=dict)
    method: str = "uniform"
    method_options: Mapping[str, Json] = field(default_factory=dict)
    latency: Mapping[str, Json] = field(default_factory=dict)
    baseline: bool = True
    metric: MetricDocument | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        objectives_of(self.to_json())

    @cached_property
    def train(self) -> TrainOptions:
        """How networks are trained; without an entry, a store is from before an option."""
        return restored(TrainOptions, self.training)

    @cached_property
    def isolation(self) -> IsolationOptions:
        """The processes of evaluations."""
        return restored(IsolationOptions, self.training)

    @cached_property
    def timing(self) -> TimingOptions:
        """How latencies are measured."""
        return restored(TimingOptions, self.latency)

    @cached_property
    def extent(self) -> SpaceOptions:
        """How far the space is enumerated, and by which rules."""
        return restored(SpaceOptions, self.space)

    def to_json(self) -> SettingsDocument:
        """Return the settings as a JSON document."""
        own = [each.name for each in _own_fields()]
        content = {name: getattr(self, name) for name in own}
        if self.metric is None:  # as in stores from before custom data
            del content["metric"]
        return cast(SettingsDocument, content | document(self))

    @classmethod
    def from_json(cls, content: SettingsDocument) -> StudySettings:
        """Read the document of `to_json`.

        Raises:
            UserError: for settings that this version of Syno does not know.
        """
        given: dict[str, object] = {k: v for k, v in content.items() if k not in _GONE}
        own = {each.name for each in _own_fields()}
        unknown = sorted(given.keys() - own - set(stored_names(cls)))
        if unknown:
            raise UserError(
                "the study has settings that this version of Syno does not know: "
                f"{', '.join(unknown)}\n"
                "  what to do: resume it with the version of Syno that started it, or a later one"
            )
        return restored(cls, given, **{name: given[name] for name in own & given.keys()})

    def changed(self, **limits: object) -> StudySettings:
        """Return the settings with the limits that are given; None keeps one."""
        given = {name: value for name, value in limits.items() if value is not None}
        return dataclasses.replace(self, **given)  # type: ignore[arg-type]


def _own_fields() -> list[dataclasses.Field[object]]:
    """Return the fields of the settings that are no option."""
    return [f for f in dataclasses.fields(StudySettings) if "option" not in f.metadata]


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
