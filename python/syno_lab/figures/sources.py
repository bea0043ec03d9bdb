"""What figures are drawn from: files of commands with --json, and studies of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from syno._util.checks import is_folder, json_content
from syno._util.errors import UserError
from syno.engines.compare import NetworkTime
from syno.engines.engine import missing_rivals
from syno.report import Report, gather
from syno.store import Store
from syno_lab.experiments.ablation import Ablation
from syno_lab.experiments.canonical import CanonicalRate
from syno_lab.experiments.layers import results as layers
from syno_lab.experiments.layers.results import LayerResults
from syno_lab.experiments.projection import FORMAT as PROJECTION
from syno_lab.experiments.projection import ProjectionComparison

Content = TypeVar("Content")
_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Read(Generic[Content]):
    """What a file holds; device: the machine of its times, where it says so."""

    path: Path
    content: Content
    device: str = ""

    @property
    def source(self) -> str:
        """The file for a column `source`."""
        return f"measured: {self.path.name}"


@dataclass(frozen=True)
class NetworkRun:
    """Whole networks in engines: what `syno bench network --json` prints."""

    model: str
    input: tuple[int, ...]
    times: tuple[NetworkTime, ...]
    rival: str
    threads: int
    noisy: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """Float32 engines of others that the original was not measured in."""
        original = self.times[0].network if self.times else ""
        return missing_rivals(time.engine for time in self.times if time.network == original)

    @property
    def label(self) -> str:
        """Model and batch size."""
        batch = "" if self.input[0] == 1 else f", batch {self.input[0]}"
        return f"{self.model}{batch}"

    def networks(self) -> list[str]:
        """The networks, the original first."""
        return list(dict.fromkeys(time.network for time in self.times))


@dataclass(frozen=True)
class TrainedRow:
    """An operator, or `baseline`, in one precision: a row of what `syno train --json` prints.

    accuracy: mean over seeds from 0 to 1; deviation: over seeds, None for one seed; speedup: of the
    network over the baseline network in float32.
    """

    name: str
    precision: str
    accuracy: float
    deviation: float | None
    latency_ms: float | None
    speedup: float | None
    macs: int | None
    params: int | None


@dataclass(frozen=True)
class Trained:
    """What `syno train --json` prints."""

    fidelity: str
    rows: tuple[TrainedRow, ...]

    @property
    def is_case_study(self) -> bool:
        """Whether it has a baseline, and something beside it."""
        return any(row.name == "baseline" for row in self.rows) and len(self.rows) > 1


@dataclass
class Sources:
    """Everything that was found, by kind; ignored: files that hold nothing for a figure, and why.
    studies: the reports of studies with a trained operator."""

    networks: list[Read[NetworkRun]] = field(default_factory=list)
    layers: list[Read[LayerResults]] = field(default_factory=list)
    rates: list[Read[CanonicalRate]] = field(default_factory=list)
    ablations: list[Read[Ablation]] = field(default_factory=list)
    projections: list[Read[ProjectionComparison]] = field(default_factory=list)
    trainings: list[Read[Trained]] = field(default_factory=list)
    studies: list[Report] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)


def read_sources(paths: Sequence[Path], store: str | None = None) -> Sources:
    """Read result files, and the JSON files of folders, and the studies of a store.

    A file in a folder that holds no results, or damaged ones, is noted in `ignored`.

    Raises:
        UserError: a path is not there, a file that is named cannot be read or holds nothing for a
            figure, or the store cannot be opened.
    """
    found = Sources()
    for path in paths:
        if is_folder(path):
            for each in sorted(path.glob("*.json")):
                try:
                    _add(found, each)
                except UserError as error:
                    found.ignored[str(each)] = str(error).partition("\n")[0]
        else:
            _add(found, path)
    if store is not None:
        with Store.open(store, create=False, read_only=True) as opened:
            for study in opened.studies():
                _add_study(found, opened, study.name)
    return found


def _add_study(found: Sources, store: Store, name: str) -> None:
    try:
        report = gather(store.summary(name))
    except UserError as error:  # an adaptation, or operators of another version
        found.ignored[f"study {name}"] = str(error).partition("\n")[0]
        return
    if report.trained:
        found.studies.append(report)
    else:
        found.ignored[f"study {name}"] = "it has no trained operator"


def _add(found: Sources, path: Path) -> None:
    """Add what a file holds. UserError for a file that holds nothing for a figure."""
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise UserError(
                f"the file '{path}' is too large for results\n"
                f"  expected: at most {_MOST_BYTES} bytes      got: {size}"
            )
        text = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read the results in '{path}': {error.strerror or error}\n"
            "  expected: a file that a command wrote with --json, or a folder of such files"
        ) from error
    content = json_content(f"the file '{path}'", text)
    if isinstance(content, dict):
        for kind in _KINDS:
            if kind.is_it(content):
                _take(found, kind, path, content)
                return
    raise UserError(
        f"the file '{path}' holds no results that a figure is drawn from\n"
        "  expected: results of `syno bench network`, `syno bench layers`, `syno train` or "
        "`syno experiment` with --json"
    )


def _take(found: Sources, kind: _Kind, path: Path, content: Mapping[str, Any]) -> None:
    try:
        value = kind.read(content)
        device = str((content.get("environment") or {}).get("device", ""))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"the results in '{path}' are damaged: {type(error).__name__}: {error}\n"
            f"  expected: what {kind.command} wrote"
        ) from error
    getattr(found, kind.name).append(Read(path, value, device))


@dataclass(frozen=True)
class _Kind:
    """A kind of file: the field of `Sources`, the command, how it is recognised and read."""

    name: str
    command: str
    is_it: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any]], object]


def _network_run(content: Mapping[str, Any]) -> NetworkRun:
    return NetworkRun(
        model=str(content["model"]),
        input=tuple(map(int, content["input"])),
        times=tuple(NetworkTime(**time) for time in content["times"]),
        rival=str(content["rival"]),
        threads=int(content["environment"]["threads"]),
        noisy=bool(content["noisy"]),
    )


def _trained(content: Mapping[str, Any]) -> Trained:
    rows = []
    for row in content["results"]:
        accuracy = row.get("accuracy")
        if accuracy is None:
            continue
        ratio = row.get("latency_ratio")
        rows.append(
            TrainedRow(
                name=str(row["name"]),
                precision=str(row["precision"]),
                accuracy=float(accuracy["mean"]),
                deviation=accuracy["deviation"],
                latency_ms=row.get("latency_ms"),
                speedup=1 / ratio if ratio else None,
                macs=row["macs"],
                params=row["params"],
            )
        )
    return Trained(str(content["fidelity"]["name"]), tuple(rows))


_KINDS = (
    _Kind(
        "layers",
        "`syno bench layers`",
        lambda content: content.get("format") == layers.FORMAT,
        LayerResults.from_json,
    ),
    _Kind(
        "projections",
        "`syno experiment projection`",
        lambda content: content.get("format") == PROJECTION,
        lambda content: ProjectionComparison.from_json(dict(content)),
    ),
    _Kind(
        "networks",
        "`syno bench network --json`",
        lambda content: {"times", "rival", "input"} <= content.keys(),
        _network_run,
    ),
    _Kind(
        "ablations",
        "`syno experiment distance-ablation --json`",
        lambda content: {"ours", "paper"} <= content.keys(),
        Ablation.from_json,
    ),
    _Kind(
        "rates",
        "`syno experiment canonical-rate --json`",
        lambda content: {"canonical", "rows", "samples"} <= content.keys(),
        CanonicalRate.from_json,
    ),
    _Kind(
        "trainings",
        "`syno train --json`",
        lambda content: {"fidelity", "results"} <= content.keys(),
        _trained,
    ),
)
