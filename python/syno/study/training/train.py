"""`syno.train_operators`: train given operators in a network and store the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.declaration import documented, takes
from syno._util.errors import UserError
from syno._util.options import argument, needed
from syno.operands.layers import layer_specification
from syno.operands.lookup import named_operators
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.store import Store
from syno.study.arguments import CustomArguments
from syno.study.heartbeat import driving
from syno.study.observer import StudyObserver
from syno.study.training.evaluators import Evaluators
from syno.study.training.results import TrainingStudy
from syno.study.training.rows import TrainedOperator, result_rows
from syno.study.training.trainings import Job, Trainings
from syno.study_options import TrainingsOptions

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    from syno.store import Outcome
    from syno.study.evaluate.quantization import Quantization
    from syno.train import Fidelity, ProcessGroup


class TrainingObserver(StudyObserver):
    """Callbacks of trainings: subclass it and override its methods."""

    def on_study(self, name: str) -> None:
        """The study of this name exists; the trainings start."""

    def on_training(self, number: int, count: int, job: Job) -> None:
        """Training `number` (from 0) of `count` starts."""

    def on_trained(self, number: int, count: int, job: Job, outcome: Outcome | None) -> None:
        """Training `number` is stored; `outcome` is None if it was in the store before."""


class TrainingNarration(TrainingObserver):
    """Describes the progress of trainings.

    report: is called with the number of completed trainings and a text.
    started: is called with the name of the study.
    """

    def __init__(
        self, report: Callable[[int, str], object], started: Callable[[str], object]
    ) -> None:
        self._report = report
        self._started = started
        self._number, self._name = 0, ""

    def on_study(self, name: str) -> None:
        """Report the name of the study."""
        self._started(name)

    def on_training(self, number: int, count: int, job: Job) -> None:
        """Remember the name of the training."""
        self._number, self._name = number, f"{job.name}, seed {job.seed}"

    def on_trained(self, number: int, count: int, job: Job, outcome: Outcome | None) -> None:
        """Report the result."""
        if outcome is None:
            words = "is in the store"
        else:
            share = outcome.accuracy
            words = outcome.status if share is None else f"{share:.2%}"
        self._report(number + 1, f"{job.name}, seed {job.seed}: {words}")

    def on_step(self, step: str) -> None:
        """Report the step of the evaluation."""
        self._report(self._number, f"{self._name}: {step}")

    def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
        """Report the epoch of the training."""
        of = f" of {epochs}" if epochs else ""
        self._report(self._number, f"{self._name}: epoch {epoch}{of}, loss {loss:.3g}")


@dataclass(frozen=True)
class TrainedOperators:
    """The result of `syno.train_operators`.

    study: the name of the study in the store.
    rows: one for each operator and precision, that of the original network first.
    paused: whether SIGTERM ended the run before all trainings were complete.
    """

    study: str
    rows: tuple[TrainedOperator, ...]
    paused: bool = False

    @property
    def ok(self) -> bool:
        """Whether all trainings succeeded."""
        return not self.paused and all(row.ok for row in self.rows)


@documented
@dataclass(frozen=True)
class TrainingArguments(TrainingsOptions, CustomArguments):
    """Trainings of given operators: their options, the operators, and what they are trained on."""

    operators: Sequence[str | Operator] = field(
        metadata=needed(
            "Operators, or what names them: a name of the zoo, a file, a folder, a text, a "
            "formula, a file with one of these in each line, or the start of a key in `store`."
        )
    )
    data: str | Dataset[object] | DataLoader[object] | None = argument(
        "A data set as in `syno.data.load`, a text as in `load_text`, or a "
        "torch.utils.data.Dataset or DataLoader.",
        None,
    )
    _: KW_ONLY
    model: str | nn.Module | None = argument(
        "A model by name (`syno.models.list_models()`), or a module.",
        None,
        unset="`resnet-small`, or `gpt2-small` for text",
    )
    sizes: Mapping[str, int] | None = argument("Values of coefficients, such as {'k': 3}.", None)
    specification: Specification | str | None = argument(
        "What texts and formulas are read under, or the name of a preset.",
        None,
        unset="that of the file or study, or the layers of the network",
    )
    latency: bool = argument(
        "Whether each network is timed on the CPU beside the original, as `timing` says.", True
    )
    quantization: Quantization | None = argument(
        "How each trained network is also quantized to INT8.", None, unset="it is not"
    )
    observer: TrainingObserver | None = argument("Is told how the trainings go.", None)


@takes(TrainingArguments)
def train_operators(given: TrainingArguments) -> TrainedOperators:
    """Train a network with each of some operators in it, and keep the results in a store.

    Accuracy and loss are those of the validation split; the test split is read by
    `syno report --final` alone. A training that the store holds already under this name, with the
    same operator, seed and run key (fidelity, data, threads), is not repeated. An operator that
    crashes, hangs or runs out of memory is a row with its reason. A ladder and `max_slowdown` are
    for searches alone.

    Returns:
        One row for each operator (and for the original network, and for each of them in INT8).

    Raises:
        UserError: for whatever is wrong with the arguments, the operators, the data or the store;
            before anything is trained, as far as it can be known then.
    """
    from syno.study.evaluate.custom import custom_fidelity
    from syno.study.evaluate.loading import usual_fidelity
    from syno.train import Fidelity
    from syno.train import fidelity as named_fidelity

    model, data = given.model, given.data
    net = None if model is None or isinstance(model, str) else model
    own = given.custom(data, net)
    fidelity = given.train.fidelity
    if own is not None:
        fidelity = custom_fidelity(own, fidelity, given.validation)
    elif not isinstance(fidelity, Fidelity):
        assert isinstance(data, str)  # as `custom` has checked
        fidelity = named_fidelity(fidelity or usual_fidelity(data, given.data_dir))
    if own is not None and net is None:
        raise UserError("custom data needs a network\n  what to do: pass a module as model=")
    trainings = Trainings(
        options=given,
        model=None if net is not None else str(model or usual_model(fidelity)),
        net=net,
        own=own,
        data=str(data) if own is None else own.name,
        fidelity=fidelity,
        sizes=dict(given.sizes or {}),
        latency=given.latency,
        quantization=given.quantization,
    )
    prepare(trainings, given.operators, given.specification)
    return run(trainings, given.observer)


def usual_model(fidelity: Fidelity) -> str:
    """Return the default model for a fidelity."""
    return "gpt2-small" if fidelity.task == "text" else "resnet-small"


def prepare(
    trainings: Trainings,
    operators: Sequence[str | Operator],
    specification: Specification | str | None = None,
) -> None:
    """Load the data, build the network and check the operators. Nothing is trained or stored.

    Raises:
        UserError: if the arguments do not fit together.
    """
    options = trainings.options
    if not operators and not options.baseline:
        raise UserError(
            "there is nothing to train\n  expected: an operator, such as conv2d, or --baseline"
        )
    trainings.prepare()
    layers = layer_specification(trainings.network(trainings.seeds[0]).template, trainings.sizes)
    if isinstance(specification, str):
        specification = Specification.preset(specification)
    where = options.store if _may_exist(options.store) else None
    trainings.adopt(
        named_operators(
            operators, store=where, study=options.study, specification=specification, layers=layers
        )
    )
    trainings.specification()  # operators that cannot be in one study are rejected first


def _may_exist(store: str) -> bool:
    """Whether the store may exist: a file that does not exist holds no keys."""
    path = store.removeprefix("sqlite:///")
    return "://" in path or Path(path).is_file()


def run(
    trainings: Trainings,
    observer: TrainingObserver | None = None,
    group: ProcessGroup | None = None,
) -> TrainedOperators:
    """Run the prepared trainings that are not in the store yet, and return all results.

    Args:
        trainings: what to train.
        observer: is called with the progress.
        group: the processes that train together; this process is the first of them.
    """
    from syno.train import ProcessGroup

    with Store.open(trainings.options.store) as opened:
        results = TrainingStudy(opened, trainings.options.name, trainings)
        observer = observer or TrainingObserver()
        observer.on_study(results.record.name)
        if trainings.note is not None:
            observer.on_note(trainings.note)
        with driving(opened, results.record, "study of trainings"):
            results.begin()
            paused = _train(trainings, results, observer, group or ProcessGroup())
            rows = () if paused else result_rows(trainings, results)
    return TrainedOperators(results.record.name, rows, paused)


def _train(
    trainings: Trainings, results: TrainingStudy, observer: TrainingObserver, group: ProcessGroup
) -> bool:
    """Run the trainings that are not in the store yet, and return whether they were paused."""
    jobs = trainings.jobs()
    done = {job.name: results.done(job.operator) for job in jobs}
    weights = results.weights
    folder = None if weights is None else weights.folder
    try:
        with Evaluators(trainings, group, observer, folder) as evaluators:
            for index, job in enumerate(jobs):
                if job.seed in done[job.name]:
                    observer.on_trained(index, len(jobs), job, None)
                    continue
                observer.on_training(index, len(jobs), job)
                group.broadcast(index)
                outcome = evaluators.run(job.operator, job.seed)
                if outcome is not None:
                    results.add(job.operator, outcome)
                    results.keep_weights()
                    evaluators.forget(job.operator, job.seed)
                    observer.on_trained(index, len(jobs), job, outcome)
                if outcome is None or evaluators.terminated:
                    results.close("paused", "paused by SIGTERM")
                    group.broadcast(None)
                    return True
    except KeyboardInterrupt:
        results.close("interrupted", "interrupted from the keyboard")
        raise
    group.broadcast(None)
    results.close("done", f"{len(jobs)} trainings are done")
    return False


def follow(trainings: Trainings, group: ProcessGroup) -> None:
    """Take part in the trainings of the first process of a group, as one of the other processes."""
    jobs = trainings.jobs()
    with Evaluators(trainings, group, StudyObserver()) as evaluators:
        while (index := group.broadcast(None)) is not None:
            job = jobs[index]
            if evaluators.run(job.operator, job.seed) is None:
                group.broadcast(None)
                return
