"""`syno.search` and `syno.resume`: from a network to a store full of evaluated operators."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from syno._util.declaration import document, takes
from syno._util.errors import UserError
from syno.network.sampler import Sampler
from syno.operators.specification import Specification, read_specification
from syno.operators.summary import short_id
from syno.store import Store, automatic_name
from syno.study.arguments import Resumption, Search
from syno.study.budget import chosen_fidelity, chosen_ladder
from syno.study.driver import drive
from syno.study.enqueued import enqueued_operators
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.weights import Weights
from syno.study.loop import default_stopper, run
from syno.study.members import SamplerSpace
from syno.study.methods import parse_method
from syno.study.observer import Observers, StudyObserver
from syno.study.predictions import check_predictor
from syno.study.prepared import Rungs, evaluator_of, load_rungs
from syno.study.progress import Callbacks, Notes, SearchBar, is_shown
from syno.study.results import StudyResults
from syno.study.settings import GIVEN, StudySettings, check_data, network_again
from syno.study.specifications import check_fit, specification_for, without_windows
from syno.study.starters import check_workers, predictor_of, starter
from syno.study.stoppers import AnyOf
from syno.study.study import Study, settings_of
from syno.study.warm_start import given_data, in_words
from syno.study_options import SearchOptions

if TYPE_CHECKING:
    from torch import nn

    from syno.data.custom import CustomData, CustomEvaluation


@takes(Search)
def search(given: Search) -> StudyResults:
    """Find operators for the slots of a network: train and time each, and store everything.

    A search that was ended in any way is continued by `resume`.

    Returns:
        The study with its trials.

    Raises:
        UserError: for whatever is wrong with the arguments, the data or the store.
    """
    own = given.custom(given.data, given.net)
    settings, notes = _settings(given, own)
    # What does not go together is refused before there is a store.
    check_workers(given, given.net, given.store, is_custom=own is not None)
    if given.timing.predictor is not None:
        check_predictor(given.timing.predictor, given.timing.threads)
    rungs = load_rungs(given.net, settings, settings.data_dir, own)
    settings, lost = rungs.marked(settings), rungs.network.too_small()
    with _opened(given.store, create=True) as opened, _shown(given.observer) as shown:
        for note in (rungs.network.in_words(), notes[0], lost, *notes[1:]):
            if note is not None:
                shown.on_note(note)
        space = given.space
        changes = dict(space.limits) | ({"symmetries": space.symmetry} if space.symmetry else {})
        wanted = specification_for(given.specification, changes, rungs.network, given.coefficient)
        check_fit(wanted, rungs.network)
        queued = enqueued_operators(given.enqueue, wanted, rungs.network.template)
        composed = _compose(wanted, rungs, rungs.network.template, settings, shown)
        if (note := without_windows(composed.layers)) is not None:
            shown.on_note(note)
        called = _name(settings) if given.name is None or given.name == "" else given.name
        study = Study.create(opened, called, settings, composed)
        for operator in queued:
            study.enqueue(composed.parse(operator.text))
        return _run(opened, study, rungs, given, settings.data_dir, shown)


def _settings(
    given: Search, own: CustomData | CustomEvaluation | None
) -> tuple[StudySettings, list[str | None]]:
    """Return what a study stores of its search, and notes for the user: what computes, and what the
    method starts from."""
    from syno.study.evaluate.custom import custom_ladder, metric_document
    from syno.study.evaluate.engines import decide

    ladder = chosen_ladder(given.train)
    if ladder is not None and own is not None:
        ladder = custom_ladder(own, ladder, given.validation)
    train, timing, note = decide(given.train, given.timing)
    source, data_dir = cast(str, given.data) if own is None else own, given.data_dir
    rung = chosen_fidelity(given.net, train.fidelity, source, data_dir, given.validation, ladder)
    method, method_options = parse_method(given.method)
    warm = None if given.warm_start is None else given_data(given.warm_start, method)
    if warm is not None:
        method_options["warm_start"] = warm.to_json()
    settings = StudySettings(
        model=given.net if isinstance(given.net, str) else None,
        model_options=dict(given.model_options or {}),
        data=source if isinstance(source, str) else source.name,
        data_dir=None if data_dir is None else str(data_dir),
        tokenizer=train.tokenizer,
        fidelity=rung.to_json(),
        ladder=None if ladder is None else ladder.to_json(),
        training=document(train) | document(given.isolation),
        space=document(given.space),
        method=method,
        method_options=method_options,
        latency=document(timing),
        metric=metric_document(own),
        **_stored(given),
    )
    return settings, [note, None if warm is None else in_words(warm)]


def _stored(given: Search | Resumption) -> dict[str, Any]:
    """Return the options that a study stores under their own names."""
    names = [each.name for each in dataclasses.fields(SearchOptions)]
    return {name: given[name] for name in names if hasattr(given, name)}


@takes(Resumption)
def resume(given: Resumption) -> StudyResults:
    """Continue a study exactly where it stopped; nothing that was finished is done again.

    If another process drives the study, this one takes over when that one dies.

    Returns:
        The study with its trials.

    Raises:
        UserError: as in `search`, and if data or space are not those the study began with.
    """
    with _opened(given.store, create=False) as opened, _shown(given.observer) as observer:
        record = opened.study(given.study)
        settings = settings_of(record, opened.events(record))
        data = _checked_source(record.name, settings)
        folder = settings.data_dir if given.data_dir is None else str(given.data_dir)
        network = network_again(record.name, settings, given.net)
        is_custom = settings.metric is not None
        check_workers(given, network, opened, is_custom=is_custom)
        _check_predictor(given, settings)
        own = given.custom_again(record.name, data, network, is_custom=is_custom)
        rungs = load_rungs(network, settings, folder, own)
        check_data(record.name, settings, rungs.marked(settings))
        wanted = read_specification(record.specification)
        space = _compose(wanted, rungs, None, settings, observer)
        if given.release is not None:
            left = opened.quarantine.leave(
                record, None if given.release == "all" else given.release
            )
            names = ", ".join(short_id(each.text, each.key) for each in left)
            observer.on_note(f"released from quarantine, to be evaluated next: {names}")
        changed = {k: v for k, v in dict(given.isolation).items() if v is not None}
        training = {**settings.training, **changed}
        continued = Study.load(
            opened,
            record.id,
            space,
            training=None if training == settings.training else training,
            **_stored(given),
        )
        most = given.isolation.max_attempts
        if most is not None:
            observer.on_note(
                f"max_attempts is {most} from now on: without isolation, an operator is given up "
                f"after {most} attempts that end the process; one that was given up before is "
                "evaluated again when it is released (--release)"
            )
        return _run(opened, continued, rungs, given, folder, observer)


def _checked_source(study: str, settings: StudySettings) -> str:
    """Return the data of a study; raise a UserError for one that is no search."""
    if settings.method == GIVEN:
        raise UserError(
            f"study '{study}' is not a search: its operators were given by name\n"
            f"  what to do: `syno train OP --name {shlex.quote(study)}` with the same options "
            "continues it"
        )
    if settings.data is None:
        raise UserError(f"study '{study}' has no data set: it was not made by a search")
    return settings.data


def _check_predictor(given: Resumption, settings: StudySettings) -> None:
    """Raise a UserError for a predictor that nobody can use."""
    if given.predictor is None:
        return
    if given.jobs == 0:
        raise UserError(
            "--predictor is for the workers that this process starts, and --jobs 0 starts none\n"
            "  what to do: `syno worker --predictor FILE` where the workers are"
        )
    check_predictor(given.predictor, settings.timing.threads)


@contextlib.contextmanager
def _opened(store: Store | str, *, create: bool) -> Iterator[Store]:
    """An open store is left open; one that is opened here is closed."""
    if isinstance(store, Store):
        yield store
        return
    with Store.open(store, create=create) as opened:
        yield opened


@contextlib.contextmanager
def _shown(observer: StudyObserver | None) -> Iterator[StudyObserver]:
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
    observer: StudyObserver,
) -> SamplerSpace:
    began = time.monotonic()

    def progress(depth: int, nodes: int, operators: int) -> bool:
        observer.on_compose(depth, nodes, operators)
        return True

    sampler = Sampler.from_specification(
        wanted,
        net=template,
        seed=settings.seed,
        max_nodes=settings.extent.max_nodes,
        rules_off=settings.extent.rules_off,
        progress=progress,
    )
    space = SamplerSpace(sampler, rungs.lower(sampler.specification))
    observer.on_space(space.structures, len(space.operators), time.monotonic() - began)
    return space


def _run(
    store: Store,
    study: Study,
    rungs: Rungs,
    given: Search | Resumption,
    data_dir: str | None,
    observer: StudyObserver,
) -> StudyResults:
    calls = Callbacks(store, given.callbacks)
    observers, stopper = Observers(observer, calls), AnyOf(default_stopper(study), calls)
    weights = Weights.of(store, study.record)
    checkpoints = None if rungs.ladder is None else Checkpoints.of(store, study.record)
    started = starter(store, study.record.name, given, data_dir=data_dir, note=observer.on_note)
    if started is not None:
        with started as workers:
            drive(
                study,
                watch=workers.check,
                observer=observers,
                stopper=stopper,
                weights=weights,
                checkpoints=checkpoints,
            )
    else:
        if checkpoints is not None:
            checkpoints.keep(study.checkpoints_needed)
        parts = (store, study.record, study.settings, rungs, data_dir)
        with evaluator_of(
            *parts, observer, checkpoints, weights, predictor=predictor_of(given)
        ) as evaluator:
            run(
                study,
                evaluator,
                observer=observers,
                stopper=stopper,
                weights=weights,
                checkpoints=checkpoints,
            )
    return StudyResults.of(store.summary(study.record), store)


def _name(settings: StudySettings) -> str:
    """Ends in "-": the store adds a number."""
    return automatic_name(settings.model or "network", Path(settings.data or "data").name)
