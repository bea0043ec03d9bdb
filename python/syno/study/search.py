"""`syno.search` and `syno.resume`: from a network to a store full of evaluated operators."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno._util.options import grouped
from syno.network.sampler import Sampler
from syno.operators.operator import Operator
from syno.operators.specification import NO_TOTALS, Specification
from syno.operators.summary import short_id
from syno.options import (
    DEFAULT_STORE,
    EVALUATIONS,
    METHOD,
    IsolationOptions,
    TimingOptions,
    TrainOptions,
)
from syno.report.settings import read_specification
from syno.space.options import SpaceOptions
from syno.store import Store, automatic_name
from syno.store.documents import TrainingSettings
from syno.study.budget import chosen_fidelity, chosen_ladder
from syno.study.candidates import SamplerSpace
from syno.study.enqueued import enqueued_operators
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.weights import Weights
from syno.study.fidelity.ladder import Ladder
from syno.study.loop import default_stopper, run
from syno.study.methods import parse_method
from syno.study.observer import Observer, Observers
from syno.study.predictions import predictor_document
from syno.study.progress import Callback, Callbacks, Notes, SearchBar, is_shown
from syno.study.results import StudyResults
from syno.study.settings import (
    GIVEN,
    StudySettings,
    check_data,
    kernel_settings,
    network_again,
    stored_timing,
    timing_settings,
)
from syno.study.specifications import check_fit, specification_for, without_windows
from syno.study.stoppers import AnyOf
from syno.study.study import MAX_ATTEMPTS, Study, settings_of
from syno.study.warm_start import given_data, in_words
from syno.surrogate import SurrogateData

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    from syno.data.custom import CustomData, CustomEvaluation, Loss, MetricFunction
    from syno.store import Outcome
    from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator
    from syno.study.evaluate.loading import Data
    from syno.study.evaluate.network import Network


@grouped(space=SpaceOptions, train=TrainOptions, timing=TimingOptions, isolation=IsolationOptions)
def search(
    net: str | nn.Module,
    data: str | Dataset[Any] | DataLoader[Any] | None = None,
    *,
    validation: float | Dataset[Any] | DataLoader[Any] | None = None,
    loss: Loss | None = None,
    metric: MetricFunction | str | None = None,
    maximize: bool = True,
    evaluate: Callable[[nn.Module], float | Outcome] | None = None,
    example_input: torch.Tensor | None = None,
    data_dir: str | None = None,
    model_options: Mapping[str, int | str] | None = None,
    specification: Specification | str | None = None,
    coefficient: Sequence[str] = (),
    evaluations: int = EVALUATIONS,
    seconds: float | None = None,
    seed: int = 0,
    method: str | Mapping[str, Json] = METHOD,
    objective: str | Sequence[str] = (),
    constraint: str | Sequence[str] = (),
    retrain: int = 0,
    patience: int | None = None,
    store: Store | str = DEFAULT_STORE,
    name: str | None = None,
    space: SpaceOptions | None = None,
    train: TrainOptions | None = None,
    timing: TimingOptions | None = None,
    isolation: IsolationOptions | None = None,
    observer: Observer | None = None,
    callbacks: Sequence[Callback] = (),
    enqueue: Sequence[str | Operator] = (),
    warm_start: str | SurrogateData | None = None,
) -> StudyResults:
    """Find operators for the slots of a network: train and time each, and store everything.

    A search that was ended in any way is continued by `resume`.

    Args:
        net: the name of a model (`syno.models.list_models()`), with `model_options`, or a module
            whose 3x3 convolutions or placeholders are to be replaced. Slots of a module define the
            resolution of the default fidelity: that of the example input that created them.
        data, data_dir: a data set as in `syno.data.load`, or a text as in `load_text`. For a text,
            operators are judged by the validation loss instead of the accuracy, and one that reads
            later positions is rejected before training. Or a torch.utils.data.Dataset of pairs
            (input, target), or a DataLoader, of which the batch size and `collate_fn` are taken.
        validation: of a Dataset: another one to validate with, or the share of `data` for it.
            Default: that of the fidelity, a tenth.
        loss: of a Dataset: (outputs, targets) -> mean loss. Default: the cross-entropy of classes.
        metric: of a Dataset: what operators are judged by, (outputs, targets) -> mean over a batch,
            `accuracy` or `loss`. Default: the accuracy of classes, the loss for a custom loss.
            Beside `evaluate`: the name of what it returns.
        maximize: whether greater values of a custom metric are better.
        evaluate: a function that trains and evaluates a network in any way, instead of data. It may
            change the network, and returns the value of the metric or a `syno.Outcome`.
        example_input: an input of the network for `evaluate`, batch first, to time it with.
        specification: what operators are asked for, or the name of a preset; its bindings are taken
            from the network. Default: `small_vision`, or `small_text` for text (in
            `syno.study.specifications`), for no more MACs than the layers cost.
        coefficient: other values of coefficients of the specification, such as "g=4".
        evaluations: operators to train; those rejected before training come on top, and so do
            higher rungs.
        seconds: time limit of the study; the evaluation that is running then is finished.
        seed: of samples, initial weights, batches and checks.
        method: how operators are chosen: `uniform`, `diverse`, `local`, `evolution`, `surrogate`,
            `tree` or `graph`, or a name with its options, such as {"name": "local",
            "samples": 20} or `local:samples=20,restarts=0.2`.
        objective: up to four measures to minimize or maximize: `accuracy` (or the loss of text, or
            the metric), `latency_ratio`, `latency_ms`, `macs`, `params` and `memory`, with `:min`
            or `:max` for another direction than the usual one.
        constraint: bounds of measures, such as `latency_ratio<=0.8`.
        retrain: how many times an operator that looks best is trained again, with other seeds. Its
            value is then the mean.
        patience: the study stops after this many operators without progress.
        store: an open store or its address; name: of the study in it, made up unless given.
        coefficient: other values of coefficients of the specification, such as "g=4".
        space: how many operators are composed, and by which rules and limits.
        train, timing, isolation: how operators are trained, timed, and kept apart.
        observer: is told how the search goes. Default: a progress bar on a terminal or in a
            notebook; elsewhere, one line on standard error with the layers that are replaced.
        callbacks: functions that are called with each trial when it is stored; the search stops if
            one of them returns True.
        warm_start: results that the method `surrogate` starts from: "STORE:STUDY", a file or data.
        enqueue: operators to evaluate first, as in `syno.train_operators`: of the zoo, files,
            formulas or Operator objects. They count among the `evaluations`.

    Returns:
        The study with its trials.

    Raises:
        UserError: for whatever is wrong with the arguments, the data or the store.
    """
    from syno.study.evaluate.custom import custom, custom_ladder, metric_document
    from syno.study.evaluate.engines import decide

    space, train = space or SpaceOptions(), train or TrainOptions()
    timing, isolation = timing or TimingOptions(), isolation or IsolationOptions()
    own = custom(
        data,
        net=net,
        validation=validation,
        loss=loss,
        metric=metric,
        maximize=maximize,
        evaluate=evaluate,
        example_input=example_input,
    )
    ladder = chosen_ladder(train)
    if ladder is not None and own is not None:
        ladder = custom_ladder(own, ladder, validation)
    train, timing, note = decide(train, timing)
    source = cast(str, data) if own is None else own
    rung = chosen_fidelity(net, train.fidelity, source, data_dir, validation, ladder)
    method_name, method_options = parse_method(method)
    if (warm := None if warm_start is None else given_data(warm_start, method_name)) is not None:
        method_options["warm_start"] = warm.to_json()
    settings = StudySettings(
        model=net if isinstance(net, str) else None,
        model_options=dict(model_options or {}),
        data=source if isinstance(source, str) else source.name,
        data_dir=None if data_dir is None else str(data_dir),
        tokenizer=train.tokenizer,
        fidelity=rung.to_json(),
        ladder=None if ladder is None else ladder.to_json(),
        training={
            "deadline_s": train.deadline_s,
            "max_slowdown": None if math.isinf(train.max_slowdown) else train.max_slowdown,
            "isolate": isolation.isolate,
            "memory_limit": isolation.memory_limit,
            "max_attempts": isolation.max_attempts or MAX_ATTEMPTS,
            **kernel_settings(train),
        },
        space={"max_nodes": space.max_nodes, "rules_off": list(space.rules_off)},
        method=method_name,
        method_options=method_options,
        latency=timing_settings(timing),
        evaluations=evaluations,
        seconds=seconds,
        seed=seed,
        metric=metric_document(own),
        objectives=_texts("objective", objective),
        constraints=_texts("constraint", constraint),
        retrain=retrain,
        patience=patience,
    )
    # What does not go together is refused before there is a store.
    rungs = _rungs(net, settings, settings.data_dir, own)
    settings = rungs.marked(settings)
    lost = rungs.network.too_small()
    with _opened(store, create=True) as opened, _shown(observer) as shown:
        slots = rungs.network.in_words()
        for message in (slots, note, lost, None if warm is None else in_words(warm)):
            if message is not None:
                shown.on_note(message)
        changes = dict(space.limits) | ({"symmetries": space.symmetry} if space.symmetry else {})
        wanted = specification_for(specification, changes, rungs.network, coefficient)
        check_fit(wanted, rungs.network)
        queued = enqueued_operators(enqueue, wanted, rungs.network.template)
        composed = _compose(wanted, rungs, rungs.network.template, settings, shown)
        if (note := without_windows(composed.layers)) is not None:
            shown.on_note(note)
        study = Study.create(opened, name or _name(settings), settings, composed)
        for operator in queued:
            study.enqueue(composed.parse(operator.text))
        return _run(opened, study, rungs, settings.data_dir, shown, callbacks)


def _texts(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return one text, or several, as a tuple."""
    return (given,) if isinstance(given, str) else checks.names(name, given)


@grouped(isolation=IsolationOptions)
def resume(
    store: Store | str = DEFAULT_STORE,
    study: str | int | None = None,
    *,
    net: nn.Module | None = None,
    data: Dataset[Any] | DataLoader[Any] | None = None,
    validation: float | Dataset[Any] | DataLoader[Any] | None = None,
    loss: Loss | None = None,
    metric: MetricFunction | str | None = None,
    maximize: bool = True,
    evaluate: Callable[[nn.Module], float | Outcome] | None = None,
    example_input: torch.Tensor | None = None,
    data_dir: str | None = None,
    evaluations: int | None = None,
    seconds: float | None = None,
    patience: int | None = None,
    isolation: IsolationOptions | None = None,
    release: str | None = None,
    predictor: str | None = None,
    observer: Observer | None = None,
    callbacks: Sequence[Callback] = (),
) -> StudyResults:
    """Continues a study exactly where it stopped; nothing that was finished is done again.

    study: its name or id. Default: the latest study of the store.
    net: the module the study was started with, if it was started with one.
    data, validation, loss, metric, maximize, evaluate, example_input: those of the search, if it
        had custom data, which a store cannot hold.
    data_dir: where the data is now, if it moved.
    evaluations, seconds, patience: new limits of the whole study.
    isolation: options that are given (not None) count from now on.
    release: the start of an operator's key, `baseline`, or `all`: lets it out of quarantine, to be
        evaluated next.
    predictor: a file of `LatencyPredictor.save`: this process predicts latencies with it, and
        measures none.

    UserError as in `search`, and when data or space are not those the study began with.
    """
    from syno.study.evaluate.custom import custom_again

    with _opened(store, create=False) as opened, _shown(observer) as observer:
        record = opened.study(study)
        settings = settings_of(record, opened.events(record))
        if settings.method == GIVEN:
            raise UserError(
                f"study '{record.name}' is not a search: its operators were given by name\n"
                f"  what to do: `syno train OP --name {shlex.quote(record.name)}` with the same "
                "options continues it"
            )
        if settings.data is None:
            raise UserError(f"study '{record.name}' has no data set: it was not made by a search")
        folder = settings.data_dir if data_dir is None else str(data_dir)
        network = network_again(record.name, settings, net)
        own = custom_again(
            record.name,
            settings.data,
            data,
            is_custom=settings.metric is not None,
            net=network,
            validation=validation,
            loss=loss,
            metric=metric,
            maximize=maximize,
            evaluate=evaluate,
            example_input=example_input,
        )
        rungs = _rungs(network, settings, folder, own)
        check_data(record.name, settings, rungs.marked(settings))
        wanted = read_specification(record.specification)
        space = _compose(wanted, rungs, None, settings, observer)
        changes = dataclasses.asdict(isolation or IsolationOptions())
        max_attempts = changes["max_attempts"]
        if release is not None:
            left = opened.leave_quarantine(record, None if release == "all" else release)
            names = ", ".join(short_id(each.text, each.key) for each in left)
            observer.on_note(f"released from quarantine, to be evaluated next: {names}")
        given = {name: value for name, value in changes.items() if value is not None}
        training = cast(TrainingSettings, settings.training | given)
        continued = Study.load(
            opened,
            record.id,
            space,
            evaluations=evaluations,
            seconds=seconds,
            patience=patience,
            training=None if training == settings.training else training,
        )
        if max_attempts is not None:
            observer.on_note(
                f"max_attempts is {max_attempts} from now on: without isolation, an operator is "
                f"given up after {max_attempts} attempts that end the process; one that was given "
                "up before is evaluated again when it is released (--release)"
            )
        return _run(opened, continued, rungs, folder, observer, callbacks, predictor)


@contextlib.contextmanager
def _opened(store: Store | str, *, create: bool) -> Iterator[Store]:
    """An open store is left open; one that is opened here is closed."""
    if isinstance(store, Store):
        yield store
        return
    with Store.open(store, create=create) as opened:
        yield opened


@contextlib.contextmanager
def _shown(observer: Observer | None) -> Iterator[Observer]:
    """The observer; or a progress bar where somebody may see it, and notes elsewhere."""
    if observer is not None:
        yield observer
    elif is_shown():
        with SearchBar() as bar:
            yield bar
    else:
        yield Notes()


@dataclass(frozen=True)
class _Rungs:
    """Networks and data of each rung of the ladder; of the one fidelity where there is none."""

    ladder: Ladder | None
    networks: list[Network]
    datasets: list[Data]

    @property
    def network(self) -> Network:
        """The network that was asked for: that of the highest rung."""
        return self.networks[-1]

    def marked(self, settings: StudySettings) -> StudySettings:
        """The settings with the fingerprints of this data."""
        marks = [dataset.fingerprint for dataset in self.datasets]
        if settings.ladder is None:
            return dataclasses.replace(settings, fingerprint=marks[-1])
        ladder = settings.ladder | {"fingerprints": marks}
        return dataclasses.replace(settings, fingerprint=marks[-1], ladder=ladder)

    def lower(self, specification: Specification) -> dict[str, Specification]:
        """The specification with the layers of each rung that has another network."""
        from syno.network.surgery import slot_bindings

        found = {}
        rungs = () if self.ladder is None else self.ladder.rungs
        seen = {id(self.network)}
        for rung, network in zip(rungs, self.networks, strict=False):
            if id(network) not in seen:
                layers = slot_bindings(network.template, specification)
                found[rung.name] = specification.with_changes(**layers, **NO_TOTALS)
                seen.add(id(network))
        return found


def _rungs(
    net: str | nn.Module,
    settings: StudySettings,
    data_dir: str | None,
    own: CustomData | CustomEvaluation | None,
) -> _Rungs:
    from syno.data.custom import CustomData
    from syno.study.evaluate import rungs
    from syno.study.evaluate.loading import load_for
    from syno.study.evaluate.network import Network
    from syno.train import Fidelity, check

    assert settings.data is not None
    if settings.model_options and not isinstance(net, str):
        raise UserError("model_options apply to a model that is given by its name, not to a module")
    options, seed = settings.model_options, settings.seed
    if settings.ladder is not None:
        ladder = Ladder.from_json(settings.ladder)
        if isinstance(own, CustomData):
            return _Rungs(ladder, *rungs.custom(ladder, net, own, seed))
        images = rungs.datasets(ladder, settings.data, data_dir)
        nets = rungs.networks(ladder, net, options, images[-1], seed)
        return _Rungs(ladder, nets, list(images))
    fidelity = Fidelity.from_json(settings.fidelity)
    if own is not None:
        if isinstance(own, CustomData):
            check(own, fidelity)
        return _Rungs(None, [Network.custom(net, own, seed)], [own])
    dataset = load_for(settings.data, data_dir, fidelity, settings.tokenizer)
    amount = {"size": fidelity.resolution, "context": fidelity.context}
    if isinstance(net, str):
        network = Network.named(net, options, dataset, seed, **amount)
    else:
        network = Network.given(net, dataset, seed, **amount)
    check(dataset, fidelity)  # before minutes of composing
    return _Rungs(None, [network], [dataset])


def _compose(
    wanted: Specification,
    rungs: _Rungs,
    template: nn.Module | None,
    settings: StudySettings,
    observer: Observer,
) -> SamplerSpace:
    began = time.monotonic()

    def progress(depth: int, nodes: int, operators: int) -> bool:
        observer.on_compose(depth, nodes, operators)
        return True

    sampler = Sampler.from_specification(
        wanted,
        net=template,
        seed=settings.seed,
        max_nodes=settings.space["max_nodes"],
        rules_off=settings.space.get("rules_off", ()),
        progress=progress,
    )
    space = SamplerSpace(sampler, rungs.lower(sampler.specification))
    observer.on_space(space.structures, len(space.operators), time.monotonic() - began)
    return space


def _run(
    store: Store,
    study: Study,
    rungs: _Rungs,
    data_dir: str | None,
    observer: Observer,
    callbacks: Sequence[Callback],
    predictor: str | None = None,
) -> StudyResults:
    from syno.study.evaluate.evaluator import NetworkEvaluator
    from syno.study.evaluate.predicted import PREDICTED
    from syno.study.evaluate.rungs import LadderEvaluator, evaluators
    from syno.train import Fidelity

    settings = study.settings
    training = settings.training
    arguments: dict[str, Any] = {
        "seed": settings.seed,
        "timing": stored_timing(settings.latency),
        "deadline_s": training.get("deadline_s"),
        "max_slowdown": training.get("max_slowdown") or math.inf,
        "kernels": training.get("kernels", "eager"),
    }
    if predictor is not None:
        arguments["timing"] = dataclasses.replace(arguments["timing"], latency=PREDICTED)
    if arguments["timing"].latency == PREDICTED:
        path = predictor or settings.latency.get("predictor")
        arguments["predictor"], note = predictor_document(
            store, study.record, settings, rungs.network, path
        )
        observer.on_note(note)
    weights = Weights.of(store, study.record)
    arguments["weights"] = None if weights is None else weights.folder
    calls = Callbacks(store, callbacks)
    # The parts of the loop that do not depend on the evaluator.
    around: dict[str, Any] = {
        "observer": Observers(observer, calls),
        "stopper": AnyOf(default_stopper(study), calls),
        "weights": weights,
    }
    checkpoints = None
    if rungs.ladder is None:
        arguments["fidelity"] = Fidelity.from_json(settings.fidelity)
    else:
        checkpoints = Checkpoints.of(store, study.record)
        checkpoints.keep(study.checkpoints_needed)
    isolated = _isolated(store, study, rungs, data_dir, checkpoints, observer, arguments)
    if isolated is not None:
        with isolated:
            run(study, isolated, checkpoints=checkpoints, **around)
    elif rungs.ladder is None or checkpoints is None:
        evaluator = NetworkEvaluator(
            rungs.network, rungs.datasets[-1], observer=observer, **arguments
        )
        run(study, evaluator, **around)
    else:
        each = evaluators(rungs.ladder, rungs.networks, rungs.datasets, **arguments)
        ladder_evaluator = LadderEvaluator(rungs.ladder, each, checkpoints)
        ladder_evaluator.observer = observer
        run(study, ladder_evaluator, checkpoints=checkpoints, **around)
    return StudyResults.of(store.summary(study.record), store)


def _isolated(
    store: Store,
    study: Study,
    rungs: _Rungs,
    data_dir: str | None,
    checkpoints: Checkpoints | None,
    observer: Observer,
    arguments: dict[str, Any],
) -> IsolatedEvaluator | None:
    """The evaluator in processes of its own; None where it runs in this one."""
    from syno.study.evaluate.evaluator import make_custom_evaluator, make_evaluator
    from syno.study.evaluate.isolation import isolated
    from syno.study.evaluate.rungs import make_custom_ladder_evaluator, make_ladder_evaluator

    settings = study.settings
    training = settings.training
    limits: dict[str, Any] = {
        "wanted": training.get("isolate"),
        "settings": arguments,
        "deadline_s": training.get("deadline_s"),
        "max_slowdown": arguments["max_slowdown"],
        "memory_limit": training.get("memory_limit"),
        "baseline_s": {e.rung_index: e.seconds for e in store.summary(study.record).baselines},
        "observer": observer,
    }
    data = (settings.data, data_dir)
    if settings.metric is not None:
        made = make_custom_evaluator if rungs.ladder is None else make_custom_ladder_evaluator
        more = () if rungs.ladder is None else (rungs.ladder, checkpoints)
        return isolated(made, rungs.network, rungs.datasets[-1], *more, **limits)
    if settings.ladder is None:
        own = (settings.fingerprint, settings.tokenizer)
        return isolated(make_evaluator, rungs.network, *data, *own, **limits)
    marks = settings.ladder["fingerprints"]
    lower = rungs.networks[:-1]
    return isolated(
        make_ladder_evaluator,
        rungs.network,
        lower,
        rungs.ladder,
        *data,
        marks,
        checkpoints,
        **limits,
    )


def _name(settings: StudySettings) -> str:
    """Ends in "-": the store adds a number."""
    return automatic_name(settings.model or "network", Path(settings.data or "data").name)
