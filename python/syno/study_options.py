"""The options of searches, resumed studies, trainings and adaptations, each declared once.

A new option of a search is a field of `SearchOptions`, or of the group that it belongs to
(`syno.options`, `syno.space.options`). The arguments of `syno.search`, their documentation, the
command line, the settings in the store and the report follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util.checks import MOST_COUNTED
from syno._util.command_line import DEFAULT_STORE
from syno._util.declaration import documented
from syno._util.options import Options, Stored, group, like, model_numbers, option
from syno.options import AdaptOptions, IsolationOptions, RayOptions, TimingOptions, TrainOptions
from syno.space.options import SpaceOptions

if TYPE_CHECKING:
    from syno._util.json_types import Json
    from syno.store import Store
    from syno.surrogate import SurrogateData


_ALWAYS = Stored(always=True)
# Before there was one way to name the store, some commands took it as their first argument.
FORMER_STORE = "STORE"


@dataclass(frozen=True, kw_only=True)
class SearchOptions(Options):
    """How a search goes: what its study stores, so that `resume` needs nothing else."""

    evaluations: int = option(
        "Number of operators to train; operators rejected before training do not count.",
        20,
        more="Neither do higher rungs of a ladder.",
        minimum=1,
        maximum=MOST_COUNTED,
        stored=_ALWAYS,
    )
    seconds: float | None = option(
        "Time limit in seconds; the running evaluation is completed.",
        None,
        minimum=0,
        above=True,
        unset="no limit",
        stored=_ALWAYS,
    )
    seed: int = option(
        "Seed of the random numbers.",
        0,
        more="It decides samples, initial weights, batches and checks.",
        minimum=0,
        stored=_ALWAYS,
    )
    objective: str | Sequence[str] = option(
        "Measure to minimize or maximize: accuracy (or loss), latency_ratio, latency_ms, macs, "
        "params or memory, with :min or :max for another direction than the usual one; can be "
        "repeated. Default: the accuracy, the loss of text.",
        (),
        more="A metric of custom data has its own name. There are at most four objectives.",
        metavar="MEASURE",
        stored=Stored(name="objectives"),
    )
    constraint: str | Sequence[str] = option(
        "Bound of a measure, such as 'latency_ratio<=0.8'; can be repeated.",
        (),
        metavar="BOUND",
        stored=Stored(name="constraints"),
    )
    retrain: int = option(
        "Train an operator that looks best N more times with other seeds; the mean counts.",
        0,
        minimum=0,
        metavar="N",
        stored=Stored(),
    )
    patience: int | None = option(
        "Stop after N operators without progress of the best result, or of the hypervolume of "
        "several objectives.",
        None,
        minimum=1,
        metavar="N",
        unset="no limit",
        stored=Stored(),
    )
    needs: str | Sequence[str] = option(
        "Tag that workers must have (`syno worker --tags`), such as the name of a device; can be "
        "repeated.",
        (),
        metavar="TAG",
        stored=Stored(),
    )


@documented
@dataclass(frozen=True, kw_only=True)
class StudyOptions(SearchOptions):
    """The options of a search (`syno.search`), in Python and on the command line.

    `syno.search(net, data, **options)` takes them as one object.
    """

    store: Store | str = option(
        "Store of the studies: a file or a database URL.",
        DEFAULT_STORE,
        more="Or an open store.",
        former=FORMER_STORE,
        metavar="URL",
    )
    name: str | None = option(
        "Name of the study.", None, unset="model, data and a number", metavar="NAME"
    )
    method: str | Mapping[str, Json] = option(
        "How operators are chosen: uniform, diverse, local, evolution, surrogate, tree or graph, "
        "with options such as local:samples=20,restarts=0.2.",
        "uniform",
        more='Or a mapping, such as {"name": "local", "samples": 20}.',
        metavar="NAME",
    )
    warm_start: str | SurrogateData | None = option(
        "Study whose results `--method surrogate` starts from, or a file of them.",
        None,
        metavar="STORE:STUDY",
        unset="none",
    )
    data_dir: str | None = option(
        "Folder of the data sets. Default: $SYNO_DATA.", None, metavar="DIR"
    )
    model_options: Mapping[str, int | str] = option(
        "Option of the model, such as width=16; can be repeated.",
        cast("Mapping[str, int | str]", ()),
        more="In Python, a mapping.",
        names="--model-option",
        metavar="NAME=NUMBER",
        gather=model_numbers,
    )
    jobs: int | None = option(
        "Evaluate in N worker processes on this machine, each with its own cores; 0: only in "
        "workers that `syno worker` starts elsewhere.",
        None,
        more="The model and the data must have names.",
        minimum=0,
        metavar="N",
        unset="in the process of the search",
    )
    gpus: bool = option(
        "Train on the GPUs of this machine, in worker processes: as many as there are GPUs, or "
        "--jobs, which share the GPUs.",
        False,
        more="Latencies are those of the processor.",
    )
    space: SpaceOptions = group(SpaceOptions)
    train: TrainOptions = group(TrainOptions)
    isolation: IsolationOptions = group(IsolationOptions)
    timing: TimingOptions = group(TimingOptions)
    cluster: RayOptions = group(RayOptions)


def _changed(name: str) -> int | None:
    """Declare a limit of a study that may change when it is resumed."""
    return cast("int | None", like(StudyOptions, name, default=None, unset="unchanged"))


@documented
@dataclass(frozen=True)
class ResumeOptions(Options):
    """The options of `syno.resume`, in Python and on the command line."""

    store: Store | str = like(StudyOptions, "store")
    study: str | int | None = option(
        "Study of the store.", None, more="Its name or its id.", metavar="NAME", unset="the latest"
    )
    _: KW_ONLY
    evaluations: int | None = _changed("evaluations")
    seconds: float | None = _changed("seconds")
    patience: int | None = _changed("patience")
    data_dir: str | None = option("New folder of the data, if it has moved.", None, metavar="DIR")
    release: str | None = option(
        "Remove the operator whose id starts with ID from quarantine, and evaluate it next; also "
        "`baseline` or `all`.",
        None,
        metavar="ID",
    )
    jobs: int | None = like(StudyOptions, "jobs")
    gpus: bool = like(StudyOptions, "gpus")
    predictor: str | None = option(
        "Predict latencies in this process, or its workers, instead of measuring them: a file of "
        "`syno bench latency --predictor`.",
        None,
        metavar="FILE",
        unset="as the search does",
    )
    isolation: IsolationOptions = group(IsolationOptions)
    cluster: RayOptions = group(RayOptions)


@documented
@dataclass(frozen=True, kw_only=True)
class TrainingsOptions(Options):
    """The options of `syno.train_operators`, in Python and on the command line."""

    data_dir: str | None = like(StudyOptions, "data_dir")
    model_options: Mapping[str, int | str] = like(StudyOptions, "model_options")
    seeds: int = option(
        "Number of seeds.",
        1,
        more="A seed decides initial weights and batches.",
        minimum=1,
    )
    seed: int = like(
        StudyOptions, "seed", more="It is that of the first training; the others follow it."
    )
    baseline: bool = option("Also train the baseline network.", False)
    store: str = like(StudyOptions, "store", more="")
    study: str | None = option(
        "Study of --store in which a key is searched.",
        None,
        metavar="NAME",
        unset="the latest",
    )
    name: str | None = option(
        "Name of the study; an existing study is continued.",
        None,
        metavar="NAME",
        unset="model, data and a number",
    )
    device: str = option("Device of the training: cpu or cuda.", "cpu", metavar="NAME")
    workers: int = option("Number of threads that load images in advance.", 0, minimum=0)
    checkpoints: str | Path | None = option(
        "Folder for checkpoints; the same command resumes from them.",
        None,
        metavar="DIR",
    )
    train: TrainOptions = group(TrainOptions, "tokenizer", "deadline_s", "kernels")
    timing: TimingOptions = group(TimingOptions)
    isolation: IsolationOptions = group(IsolationOptions, without=("max_attempts",))


# The kinds of rivals of an adaptation.
RIVAL_FORMATS = "formats"
TORCH_PRUNING = "torch-pruning"
RIVALS = (
    "engines",
    RIVAL_FORMATS,
    "trained-on",
    "depthwise-separable",
    "one-operator",
    "pruning",
    TORCH_PRUNING,
    "narrower",
    "low-rank",
)


def _goals(doc: str) -> object:
    """Declare goals of an adaptation."""
    more = "One or several; each combination of goals gives a network."
    return option(doc, cast(object, ()), more=more, metavar="GOAL", gather=tuple)


@documented
@dataclass(frozen=True, kw_only=True)
class AdaptationOptions(Options):
    """The options of `syno.adapt`, in Python and on the command line."""

    latency: object = _goals(
        "Goal for the latency of the network: 0.5x of the original's, or 1.2ms; can be repeated. "
        "Without any goal: 0.7x, 0.5x and 0.35x."
    )
    slots: object = _goals(
        "Goal for the latency of the replaced layers alone, such as 0.5x; can be repeated."
    )
    macs: object = _goals("Goal for the MACs, such as 0.5x or 40M; can be repeated.")
    params: object = _goals("Goal for the parameters, such as 0.5x or 2M; can be repeated.")
    max_drop: float | None = option(
        "Percent that the best network may lose: points of accuracy, or of perplexity.",
        None,
        minimum=0,
        unset="1",
    )
    hours: float | None = option(
        "Time for everything but rivals and --final, in hours; it is divided over the steps.",
        None,
        more="It counts over all runs of the study. There are fewer candidates, samples and epochs "
        "if it is short, and more epochs if there is time and `fidelity` does not say how many.",
        minimum=0,
        above=True,
        unset="that of the study, or else no limit",
    )
    rivals: bool = option("Also try pruning, low rank and other ways with the same goals.", False)
    rival: tuple[str, ...] = option(
        "Try only this kind of rivals; can be repeated.",
        (),
        choices=RIVALS,
        metavar="KIND",
        unset=f"--rivals tries all: {', '.join(RIVALS)}",
    )
    final: bool = option("Also measure the test split, once, at the end.", False)
    data_dir: str | None = like(StudyOptions, "data_dir")
    model_options: Mapping[str, int | str] = like(StudyOptions, "model_options")
    store: Store | str = like(
        StudyOptions, "store", more="Or an open store. Its studies give candidates, too."
    )
    name: str | None = option(
        "Name of the adaptation; an existing one is continued.",
        None,
        more="It may have other goals then.",
        metavar="NAME",
        unset="model, data and a number",
    )
    seed: int = like(StudyOptions, "seed", minimum=None, more="It decides samples and trainings.")
    options: AdaptOptions = group(AdaptOptions)
