"""What evaluates the proposals of a study: networks and data of its rungs, and the evaluator."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.operators.specification import NO_TOTALS, Specification
from syno.store import Store, StudyRecord
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.protocol import Evaluator, RungEvaluator
from syno.study.evaluate.weights import Weights
from syno.study.fidelity.ladder import Ladder
from syno.study.observer import StudyObserver
from syno.study.predictions import predictor_document
from syno.study.settings import StudySettings

if TYPE_CHECKING:
    from torch import nn

    from syno.data.custom import CustomData, CustomEvaluation
    from syno.study.evaluate.evaluator_settings import EvaluatorSettings
    from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator
    from syno.study.evaluate.loading import Data
    from syno.study.evaluate.network import Network


@dataclass(frozen=True)
class Rungs:
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


def load_rungs(
    net: str | nn.Module,
    settings: StudySettings,
    data_dir: str | None,
    own: CustomData | CustomEvaluation | None,
) -> Rungs:
    """Return the networks and data of a study.

    Args:
        net: the name of the model, or the module.
        settings: of the study.
        data_dir: the folder of its data.
        own: custom data, or a custom evaluation.

    Raises:
        UserError: if they do not go together, or the data is not there.
    """
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
            return Rungs(ladder, *rungs.custom(ladder, net, own, seed))
        images = rungs.datasets(ladder, settings.data, data_dir)
        nets = rungs.networks(ladder, net, options, images[-1], seed)
        return Rungs(ladder, nets, list(images))
    fidelity = Fidelity.from_json(settings.fidelity)
    if own is not None:
        if isinstance(own, CustomData):
            check(own, fidelity)
        return Rungs(None, [Network.custom(net, own, seed)], [own])
    dataset = load_for(settings.data, data_dir, fidelity, settings.tokenizer)
    size, context = fidelity.resolution, fidelity.context
    if isinstance(net, str):
        network = Network.named(net, options, dataset, seed, size=size, context=context)
    else:
        network = Network.given(net, dataset, seed, size=size, context=context)
    check(dataset, fidelity)  # before minutes of composing
    return Rungs(None, [network], [dataset])


@contextlib.contextmanager
def evaluator_of(
    store: Store,
    record: StudyRecord,
    settings: StudySettings,
    rungs: Rungs,
    data_dir: str | None,
    observer: StudyObserver,
    checkpoints: Checkpoints | None,
    weights: Weights | None,
    device: str = "cpu",
    predictor: str | None = None,
) -> Iterator[Evaluator | RungEvaluator]:
    """Make the evaluator of a study, in processes of its own if that is wanted and possible.

    Args:
        device: that the networks are trained on.
        predictor: a file of a latency predictor, which replaces measurements.
    """
    from syno.study.evaluate.evaluator import NetworkEvaluator
    from syno.study.evaluate.predicted import PREDICTED
    from syno.study.evaluate.rungs import LadderEvaluator, evaluators
    from syno.train import Fidelity

    arguments: EvaluatorSettings = {
        "seed": settings.seed,
        "timing": settings.timing,
        "deadline_s": settings.train.deadline_s,
        "max_slowdown": settings.train.max_slowdown,
        "kernels": settings.train.kernels or "eager",
        "weights": None if weights is None else weights.folder,
    }
    if predictor is not None:
        arguments["timing"] = dataclasses.replace(arguments["timing"], latency=PREDICTED)
    if arguments["timing"].latency == PREDICTED:
        path = predictor or settings.timing.predictor
        arguments["predictor"], note = predictor_document(
            store, record, settings, rungs.network, path
        )
        observer.on_note(note)
    if device != "cpu":
        arguments["device"] = device
    if rungs.ladder is None:
        arguments["fidelity"] = Fidelity.from_json(settings.fidelity)
    isolated = _isolated(store, record, settings, rungs, data_dir, checkpoints, observer, arguments)
    if isolated is not None:
        with isolated:
            yield isolated
    elif rungs.ladder is None or checkpoints is None:
        yield NetworkEvaluator(rungs.network, rungs.datasets[-1], observer=observer, **arguments)
    else:
        each = evaluators(rungs.ladder, rungs.networks, rungs.datasets, **arguments)
        ladder_evaluator = LadderEvaluator(rungs.ladder, each, checkpoints)
        ladder_evaluator.observer = observer
        yield ladder_evaluator


def _isolated(
    store: Store,
    record: StudyRecord,
    settings: StudySettings,
    rungs: Rungs,
    data_dir: str | None,
    checkpoints: Checkpoints | None,
    observer: StudyObserver,
    arguments: EvaluatorSettings,
) -> IsolatedEvaluator | None:
    """The evaluator in processes of its own; None where it runs in this one."""
    from syno.study.evaluate.evaluator import make_custom_evaluator, make_evaluator
    from syno.study.evaluate.isolation import isolated
    from syno.study.evaluate.rungs import make_custom_ladder_evaluator, make_ladder_evaluator

    start = partial(
        isolated,
        wanted=settings.isolation.isolate,
        settings=arguments,
        deadline_s=arguments["deadline_s"],
        max_slowdown=arguments["max_slowdown"],
        memory_limit=settings.isolation.memory_limit,
        baseline_s={e.rung_index: e.seconds for e in store.summary(record).baselines},
        observer=observer,
    )
    data = (settings.data, data_dir)
    if settings.metric is not None:
        made = make_custom_evaluator if rungs.ladder is None else make_custom_ladder_evaluator
        more = () if rungs.ladder is None else (rungs.ladder, checkpoints)
        return start(made, rungs.network, rungs.datasets[-1], *more)
    if settings.ladder is None:
        own = (settings.fingerprint, settings.tokenizer)
        return start(make_evaluator, rungs.network, *data, *own)
    marks = settings.ladder["fingerprints"]
    lower = rungs.networks[:-1]
    return start(
        make_ladder_evaluator,
        rungs.network,
        lower,
        rungs.ladder,
        *data,
        marks,
        checkpoints,
    )
