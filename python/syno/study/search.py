"""`syno.search` and `syno.resume`: from a network to a store full of evaluated operators."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno._util.options import grouped
from syno.network.sampler import Sampler
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.operators.summary import short_id
from syno.options import (
    DEFAULT_STORE,
    EVALUATIONS,
    METHOD,
    IsolationOptions,
    RayOptions,
    TimingOptions,
    TrainOptions,
)
from syno.report.settings import read_specification
from syno.space.options import SpaceOptions
from syno.store import Store, automatic_name
from syno.store.documents import TrainingSettings
from syno.study.answers import MAX_ATTEMPTS
from syno.study.budget import chosen_fidelity, chosen_ladder
from syno.study.driver import drive
from syno.study.enqueued import enqueued_operators
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.weights import Weights
from syno.study.loop import default_stopper, run
from syno.study.members import SamplerSpace
from syno.study.methods import parse_method
from syno.study.observer import Observer, Observers
from syno.study.predictions import check_predictor
from syno.study.prepared import Rungs, evaluator_of, load_rungs
from syno.study.progress import Callback, Callbacks, Notes, SearchBar, is_shown
from syno.study.results import StudyResults
from syno.study.settings import (
    GIVEN,
    StudySettings,
    check_data,
    kernel_settings,
    network_again,
    timing_settings,
)
from syno.study.specifications import check_fit, specification_for, without_windows
from syno.study.starters import check_workers, starter
from syno.study.stoppers import AnyOf
from syno.study.study import Study, settings_of
from syno.study.warm_start import given_data, in_words
from syno.surrogate import SurrogateData

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    from syno.data.custom import Loss, MetricFunction
    from syno.store import Outcome


@grouped(
    space=SpaceOptions,
    train=TrainOptions,
    timing=TimingOptions,
    isolation=IsolationOptions,
    cluster=RayOptions,
)
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
    jobs: int | None = None,
    gpus: bool = False,
    cluster: RayOptions | None = None,
    needs: Sequence[str] = (),
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
        jobs: evaluate in so many worker processes on this machine, each with cores of its own; 0:
            only in workers that are started elsewhere (`syno worker`). Default: in this process.
            The model and the data must have names.
        gpus: the workers train on the GPUs of this machine, each on one of them; several workers
            may share one. Default of `jobs`: one worker for each GPU. Latencies are those of the
            processor.
        cluster: start the workers on a Ray cluster instead, `jobs` of them or as many as it has
            room for.
        needs: tags that workers must have to evaluate for this study.

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
        needs=_texts("needs", needs),
    )
    # What does not go together is refused before there is a store.
    cluster, is_custom = cluster or RayOptions(), own is not None
    check_workers(jobs, cluster, net, store, is_custom=is_custom, gpus=gpus)
    if timing.predictor is not None:
        check_predictor(timing.predictor, timing.threads)
    rungs = load_rungs(net, settings, settings.data_dir, own)
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
        called = _name(settings) if name is None or name == "" else name
        study = Study.create(opened, called, settings, composed)
        for operator in queued:
            study.enqueue(composed.parse(operator.text))
        started = (jobs, cluster, None, gpus)
        return _run(opened, study, rungs, settings.data_dir, shown, callbacks, *started)


def _texts(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return one text, or several, as a tuple."""
    return (given,) if isinstance(given, str) else checks.names(name, given)


@grouped(isolation=IsolationOptions, cluster=RayOptions)
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
    jobs: int | None = None,
    gpus: bool = False,
    cluster: RayOptions | None = None,
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

    jobs, gpus, cluster: as in `search`. If another process drives the study, this one takes over
        when that one dies. With `predictor`, the workers that this process starts predict.

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
        cluster = cluster or RayOptions()
        is_custom = settings.metric is not None
        check_workers(jobs, cluster, network, opened, is_custom=is_custom, gpus=gpus)
        if predictor is not None:
            if jobs == 0:
                raise UserError(
                    "--predictor is for the workers that this process starts, and --jobs 0 starts "
                    "none\n  what to do: `syno worker --predictor FILE` where the workers are"
                )
            check_predictor(predictor, int(settings.latency.get("threads", 1)))
        own = custom_again(
            record.name,
            settings.data,
            data,
            is_custom=is_custom,
            net=network,
            validation=validation,
            loss=loss,
            metric=metric,
            maximize=maximize,
            evaluate=evaluate,
            example_input=example_input,
        )
        rungs = load_rungs(network, settings, folder, own)
        check_data(record.name, settings, rungs.marked(settings))
        wanted = read_specification(record.specification)
        space = _compose(wanted, rungs, None, settings, observer)
        changes = dataclasses.asdict(isolation or IsolationOptions())
        max_attempts = changes["max_attempts"]
        if release is not None:
            left = opened.quarantine.leave(record, None if release == "all" else release)
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
        started = (jobs, cluster, predictor, gpus)
        return _run(opened, continued, rungs, folder, observer, callbacks, *started)


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


def _compose(
    wanted: Specification,
    rungs: Rungs,
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
    rungs: Rungs,
    data_dir: str | None,
    observer: Observer,
    callbacks: Sequence[Callback],
    jobs: int | None,
    cluster: RayOptions,
    predictor: str | None,
    gpus: bool,
) -> StudyResults:
    calls = Callbacks(store, callbacks)
    around: dict[str, Any] = {
        "observer": Observers(observer, calls),
        "stopper": AnyOf(default_stopper(study), calls),
        "weights": Weights.of(store, study.record),
        "checkpoints": None if rungs.ladder is None else Checkpoints.of(store, study.record),
    }
    started = starter(
        store,
        study.record.name,
        jobs,
        cluster,
        data_dir=data_dir,
        predictor=predictor,
        note=observer.on_note,
        gpus=gpus,
    )
    if started is not None:
        with started as workers:
            drive(study, watch=workers.check, **around)
    else:
        checkpoints = around["checkpoints"]
        if checkpoints is not None:
            checkpoints.keep(study.checkpoints_needed)
        given = (store, study.record, study.settings, rungs, data_dir)
        with evaluator_of(
            *given, observer, checkpoints, around["weights"], predictor=predictor
        ) as evaluator:
            run(study, evaluator, **around)
    return StudyResults.of(store.summary(study.record), store)


def _name(settings: StudySettings) -> str:
    """Ends in "-": the store adds a number."""
    return automatic_name(settings.model or "network", Path(settings.data or "data").name)
