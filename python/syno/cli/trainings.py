"""Trainings that a command line asks for: their networks, their order, their place in a store."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syno._util.errors import UserError

if TYPE_CHECKING:
    from syno import Operator, Specification
    from syno.cli.chosen import Chosen
    from syno.data import DataSet, Records, TextData
    from syno.store import Environment, Outcome, Store, StudyRecord
    from syno.study import StudySettings
    from syno.study.evaluate.evaluator import NetworkEvaluator, Quantization
    from syno.study.evaluate.isolated import Isolated
    from syno.study.evaluate.network import Network
    from syno.study.observer import Observer
    from syno.train import Fidelity, Group


@dataclass
class Trainings:
    """One fidelity, one model, one data set; some operators, and the original network if asked.

    dataset, network: of the first seed, made by `prepared`.
    """

    model: str
    model_options: dict[str, Any]
    data: str
    data_dir: str | None
    fidelity: Fidelity
    seeds: tuple[int, ...]
    baseline: bool
    sizes: Mapping[str, int] = field(default_factory=dict)
    tokenizer: str = "bytes"
    threads: int = 1
    device: str = "cpu"
    workers: int = 0
    deadline_s: float | None = None
    checkpoints: Path | None = None
    repeats: int = 30
    warmup: int = 5
    latency: bool = True
    quantization: Quantization | None = None
    isolate: bool | None = None
    memory_limit: int | None = None
    dataset: DataSet | Records | TextData = field(init=False)
    chosen: list[Chosen] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    _networks: dict[int, Network] = field(default_factory=dict)

    def prepare(self) -> None:
        """Loads the data and builds the network. UserError for what does not go together."""
        from syno.study.evaluate.loading import load_for
        from syno.train import check

        self.dataset = load_for(self.data, self.data_dir, self.fidelity, self.tokenizer)
        check(self.dataset, self.fidelity, device=self.device)
        network = self.network(self.seeds[0])
        if self.quantization is not None:
            self._check_quantization(network, self.quantization)

    def _check_quantization(self, network: Network, how: Quantization) -> None:
        """UserError where the original network, as it is before training, cannot come to INT8."""
        from syno.data import TextData
        from syno.quantize import quantize
        from syno.train import training_images

        if isinstance(self.dataset, TextData):
            raise UserError(
                f"'{self.data}' is text, and networks for images alone come to INT8\n"
                "  what to do: leave --quantize out"
            )
        images = training_images(self.dataset, self.fidelity, 2, how.seed)
        quantize(network.original(), images, engine=how.engine)

    def text(self) -> TextData:
        """The data set. UserError where it is images."""
        from syno.data import TextData

        if not isinstance(self.dataset, TextData):
            raise UserError(f"data set '{self.data}' is images\n  expected: a text")
        return self.dataset

    def adopt(self, chosen: Sequence[Chosen]) -> None:
        """Takes operators in. UserError for one that fits no layer of the network."""
        from syno.cli.chosen import adopted

        network = self.network(self.seeds[0])
        for each in chosen:
            try:
                operator = adopted(each, network.template, self.sizes)
                network.with_operator(operator)
            except UserError as error:
                raise UserError(f"{error}\n  operator '{each.name}' in model '{self.model}'") from (
                    error
                )
            self.chosen.append(each)
            self.operators.append(operator)

    def network(self, seed: int) -> Network:
        """The network with the initial weights of a seed, the same for every operator."""
        from syno.study.evaluate.network import Network

        if seed not in self._networks:
            self._networks = {
                seed: Network.named(
                    self.model,
                    self.model_options,
                    self.dataset,
                    seed,
                    size=self.fidelity.resolution,
                    context=self.fidelity.context,
                )
            }
        return self._networks[seed]

    def specification(self) -> Specification:
        """The shapes of the layers, with the coefficients of all operators.

        UserError where two operators give one coefficient different values.
        """
        from syno.cli.chosen import layer_specification
        from syno.network.surgery import slot_bindings

        values: dict[str, int] = {}
        template = self.network(self.seeds[0]).template
        for each, operator in zip(self.chosen, self.operators, strict=True):
            assert operator.specification is not None
            for name, value in operator.specification.defaults.items():
                if name != operator.batch and values.setdefault(name, value) != value:
                    raise UserError(
                        f"operator '{each.name}' has {name}={value}, one before it has "
                        f"{name}={values[name]}\n"
                        f"  what to do: train them apart, or give both a size with --binding "
                        f"{name}=..."
                    )
        found = layer_specification(template, values)
        return found.with_changes(**slot_bindings(template, found))

    def settings(self) -> StudySettings:
        """As a study's."""
        from syno.study import StudySettings
        from syno.study.settings import GIVEN

        return StudySettings(
            model=self.model,
            model_options=self.model_options,
            data=self.data,
            data_dir=self.data_dir,
            tokenizer=self.tokenizer,
            fingerprint=self.dataset.fingerprint,
            fidelity=self.fidelity.to_json(),
            training={
                "deadline_s": self.deadline_s,
                "isolate": self.isolate,
                "memory_limit": self.memory_limit,
            },
            method=GIVEN,
            latency={
                "repeats": self.repeats,
                "warmup": self.warmup,
                "threads": self.threads,
            },
            evaluations=max(len(self.operators) * len(self.seeds), 1),
            seed=self.seeds[0],
            baseline=self.baseline,
        )

    def recipe(self) -> dict[str, Any]:
        """What a result depends on, beside operator, seed and machine; as the store gives it."""
        content = {
            "fidelity": self.fidelity.to_json(),
            "data": self.dataset.fingerprint,
            "threads": self.threads,
        }
        return dict(json.loads(json.dumps(content)))

    def recipe_int8(self) -> dict[str, Any]:
        """As `recipe`, of the trained networks in INT8."""
        assert self.quantization is not None
        return self.recipe() | self.quantization.recipe()

    def evaluators(self, group: Group, observer: Observer) -> Evaluators:
        """What trains: for this process, or as one of several that train together."""
        return Evaluators(self, group, observer)

    def seconds_each(self) -> float | None:
        """About how long one training takes, from a few steps of the original network; None where
        these failed."""
        from syno.cli.probe import seconds_each

        seed = self.seeds[0]
        return seconds_each(
            self.network(seed),
            self.dataset,
            self.fidelity,
            seed=seed,
            threads=self.threads,
            device=self.device,
        )


class Evaluators:
    """The evaluator of each seed, in processes of its own where that is wanted and possible.

    One is kept at a time: trainings come seed by seed.
    """

    def __init__(self, trainings: Trainings, group: Group, observer: Observer) -> None:
        if group.world > 1 and trainings.isolate:
            raise UserError(
                f"{group.world} processes train one network: none of them can be isolated\n"
                "  what to do: leave --isolate out"
            )
        self._trainings, self._group, self._observer = trainings, group, observer
        self._seed: int | None = None
        self._evaluator: NetworkEvaluator | Isolated | None = None
        self._terminated = False

    def __enter__(self) -> Evaluators:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def run(self, operator: Operator | None, seed: int) -> Outcome | None:
        """Verifies, trains and times the network with an operator, None for the original; None
        where the training was paused."""
        from syno.store.records import OK, PAUSED

        evaluator = self._of(seed)
        with self._passing_on(evaluator):
            outcome = evaluator.baseline() if operator is None else evaluator.evaluate(operator)
        # A signal that came before or after the training ended the process.
        paused = outcome.status == PAUSED or (self._terminated and outcome.status != OK)
        return None if paused else outcome

    def forget(self, operator: Operator | None, seed: int) -> None:
        """Removes the state of a training that is stored."""
        from syno.study.evaluate.evaluator import checkpoint

        path = checkpoint(self._trainings.checkpoints, operator, seed)
        if path is not None:
            path.unlink(missing_ok=True)

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM came while an isolated evaluation ran."""
        return self._terminated

    def _close(self) -> None:
        from syno.study.evaluate.isolated import Isolated

        if isinstance(self._evaluator, Isolated):
            self._evaluator.close()
        self._evaluator = self._seed = None

    def _of(self, seed: int) -> NetworkEvaluator | Isolated:
        if self._evaluator is None or seed != self._seed:
            self._close()
            self._evaluator, self._seed = self._made(seed), seed
        return self._evaluator

    def _made(self, seed: int) -> NetworkEvaluator | Isolated:
        from syno.study.evaluate.evaluator import NetworkEvaluator, Timing, make_evaluator
        from syno.study.evaluate.isolation import isolated

        given, first = self._trainings, self._group.is_first
        network = given.network(seed)
        settings: dict[str, Any] = {
            "fidelity": given.fidelity,
            "seed": seed,
            "timing": Timing(given.repeats, given.warmup, given.threads),
            "deadline_s": given.deadline_s,
            "device": given.device,
            "workers": given.workers,
            "checkpoints": given.checkpoints,
            "measured": given.latency and first,
            "quantization": given.quantization if first else None,
        }
        data = (given.data, given.data_dir, given.dataset.fingerprint, given.tokenizer)
        made = isolated(
            make_evaluator,
            network,
            *data,
            wanted=False if self._group.world > 1 else given.isolate,
            settings=settings,
            deadline_s=given.deadline_s,
            memory_limit=given.memory_limit,
            # Without a baseline, what operators may take is measured by a few of its steps.
            baseline_s=None if given.baseline or given.deadline_s else given.seconds_each(),
            observer=self._observer,
        )
        if made is not None:
            return made
        return NetworkEvaluator(network, given.dataset, observer=self._observer, **settings)

    @contextlib.contextmanager
    def _passing_on(self, evaluator: NetworkEvaluator | Isolated) -> Iterator[None]:
        """SIGTERM reaches the isolated training, which keeps its state; without checkpoints, and in
        this process, it does what it always does."""
        from syno.study.evaluate.isolated import Isolated

        kept = self._trainings.checkpoints is not None
        if not (kept and isinstance(evaluator, Isolated)):
            yield
            return

        def terminate(*_: object) -> None:
            self._terminated = True
            evaluator.terminate()

        before = signal.signal(signal.SIGTERM, terminate)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


class Results:
    """A study of trainings in a store: made anew, or gone on with under its name."""

    def __init__(self, store: Store, name: str | None, trainings: Trainings) -> None:
        from syno.store import Worker, automatic_name, capture_environment
        from syno.study.study import settings_of

        settings, specification = trainings.settings(), trainings.specification()
        known = {study.name for study in store.studies()}
        if name is None or name not in known:
            data = Path(trainings.data).name
            made = name or automatic_name("train", trainings.model, data).replace("/", "-")
            self.record = store.create_study(
                made,
                specification=(specification.key, json.loads(specification.to_json())),
                settings=settings.to_json(),
                seed=settings.seed,
            )
            store.append_event(self.record, "started", {})
        else:
            self.record = store.study(name)
            before = settings_of(self.record, store.events(self.record))
            _check_same(self.record, before, settings)
            unknown = set(specification.defaults) - set(_defaults(self.record))
            if unknown:
                raise UserError(
                    f"study '{name}' has no coefficient {', '.join(sorted(unknown))}\n"
                    "  what to do: take another --name for operators with other coefficients"
                )
            count = settings.evaluations
            store.append_event(self.record, "resumed", {"evaluations": count})
        self._store, self._worker = store, Worker()
        rules = _rules()
        self._environment: Environment = capture_environment(threads=trainings.threads, rules=rules)
        self._recipe = trainings.recipe()
        self._int8 = None if trainings.quantization is None else trainings.recipe_int8()

    def done(self, operator: Operator | None) -> set[int]:
        """The seeds that this operator (None: the original) was trained with in this way: and
        quantised, where that is asked for and the training was good."""
        own = self._trained(operator)
        if self._int8 is None:
            return {e.seed for e in own}
        quantised = {e.seed for e in self._of(operator) if e.recipe == self._int8}
        return {e.seed for e in own if e.status != "ok" or e.seed in quantised}

    def evaluations(self) -> list[Any]:
        """All of the study on the hold-out split, those in INT8, too."""
        from syno.store.records import HOLDOUT

        summary = self._store.summary(self.record)
        found = [*summary.evaluations, *summary.baselines, *summary.quantized]
        return [e for e in found if e.split == HOLDOUT]

    def _of(self, operator: Operator | None) -> list[Any]:
        text = None if operator is None else operator.text
        return [e for e in self.evaluations() if e.text == text]

    def _trained(self, operator: Operator | None) -> list[Any]:
        return [e for e in self._of(operator) if e.recipe == self._recipe]

    def add(self, operator: Operator | None, outcome: Outcome) -> None:
        """Stores a result, with what stands beside it: of a training that is there that alone."""
        text = None if operator is None else operator.text
        proposals = self._store.proposals(self.record)
        same = next((p for p in proposals if p.text == text), None)
        if same is not None and same.status is not None:
            known = any(e.seed == outcome.seed for e in self._trained(operator))
            for each in outcome.beside if known else (outcome,):
                self._store.add_evaluation(self.record, same.ask, each, self._environment)
            return
        if same is None:
            number = proposals[-1].ask + 1 if proposals else int(operator is not None)
            stored = None if operator is None else (operator.text, operator.key)
            same = self._store.ask(self.record, number, stored, self._worker.name)
        self._store.tell(same.id, outcome, self._environment)

    def close(self, reason: str, text: str) -> None:
        """Writes down why it ended."""
        self._store.append_event(self.record, "stopped", {"reason": reason, "text": text})
        self._worker.close()


def _defaults(record: StudyRecord) -> Mapping[str, int]:
    from syno.report.asked import read_specification

    return read_specification(record.specification).defaults


def _rules() -> str:
    from syno.space.rules import rule_set

    return str(rule_set((), ()).version)


def _check_same(record: StudyRecord, before: StudySettings, now: StudySettings) -> None:
    for name in ("method", "model", "model_options", "fingerprint"):
        found, wanted = getattr(before, name), getattr(now, name)
        if found != wanted:
            raise UserError(
                f"study '{record.name}' has another {name}\n"
                f"  expected: {found}      got: {wanted}\n"
                "  what to do: take another --name"
            )
