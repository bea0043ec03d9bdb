"""Trainings that a command line asks for: their networks, their order, their place in a store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syno._errors import UserError
from syno.torch_threads import torch_threads

if TYPE_CHECKING:
    from torch import nn

    from syno import Operator, Specification
    from syno.cli.chosen import Chosen
    from syno.data import DataSet, Records, TextData
    from syno.store import Environment, Outcome, Store, StudyRecord
    from syno.study import StudySettings
    from syno.study.network import Network
    from syno.train import Fidelity, State


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
    dataset: DataSet | Records | TextData = field(init=False)
    chosen: list[Chosen] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    _networks: dict[int, Network] = field(default_factory=dict)

    def prepare(self) -> None:
        """Loads the data and builds the network. UserError for what does not go together."""
        from syno.study.loading import load_for
        from syno.train import check

        self.dataset = load_for(self.data, self.data_dir, self.fidelity, self.tokenizer)
        check(self.dataset, self.fidelity, device=self.device)
        self.network(self.seeds[0])

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
        from syno.study.network import Network

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
        from syno.surgery import slot_bindings

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
            training={"deadline_s": self.deadline_s},
            method=GIVEN,
            latency={"threads": self.threads},
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

    def run(
        self, operator: Operator | None, seed: int, report: Callable[[State], None]
    ) -> Outcome | None:
        """Verifies and trains; None where it was paused."""
        from syno.store import Outcome
        from syno.store.records import REJECTED
        from syno.train import train

        def rejected(reason: str) -> Outcome:
            seconds, recipe = time.perf_counter() - began, self.recipe()
            return Outcome(
                REJECTED, reason=reason, recipe=recipe, seed=seed, seconds=seconds, **found
            )

        began = time.perf_counter()
        network = self.network(seed)
        found: dict[str, Any] = {"macs": network.macs, "params": network.params}
        net = network.original()
        if operator is not None:
            net, layers = network.with_operator(operator)
            macs, params = network.cost(operator, layers)
            found = {"macs": macs, "params": params, "primitives": operator.primitives()}
            leak = network.future_read(net, operator)
            if leak is not None:
                return rejected(leak)
            found["verification"] = verified(operator, net, seed)
            if not found["verification"].passed:
                return rejected("the generated code is wrong")
        path = self.checkpoint(operator, seed)
        with torch_threads(self.threads):
            training = train(
                net,
                self.dataset,
                self.fidelity,
                seed,
                deadline_s=self.deadline_s,
                progress=report,
                device=self.device,
                workers=self.workers,
                checkpoint=path,
            )
        if training.status == "paused":
            return None
        details = {
            "losses": [point.loss for point in training.curve],
            "loss_sum": training.loss_sum,
            "tail_loss": training.tail_loss,
            "training_s": training.seconds,
            "step_s": training.step_s,
            "steps": training.steps,
            "peak_bytes": training.peak_bytes,
            "device": self.device,
        }
        if training.tokens_seen:
            for name in ("loss", "perplexity", "bits_a_byte", "tokens_seen", "tokens_per_s"):
                details[name] = getattr(training, name)
        return Outcome(
            training.status,
            reason=training.why,
            accuracy=training.accuracy,
            rung=self.fidelity.name,
            recipe=self.recipe(),
            seed=seed,
            seconds=time.perf_counter() - began,
            details=details,
            **found,
        )

    def checkpoint(self, operator: Operator | None, seed: int) -> Path | None:
        """The file of one training."""
        if self.checkpoints is None:
            return None
        name = "baseline" if operator is None else operator.key[:16]
        return self.checkpoints / f"{name}-{seed}.ckpt"

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


def verified(operator: Operator, net: nn.Module, seed: int) -> Any:
    """The comparisons of the operator's code under each binding that it has in the network."""
    from syno.kernel import KernelPack
    from syno.store import VerificationResult
    from syno.store.records import canonical_json, digest
    from syno.verify import verify

    packs = [module for module in net.modules() if isinstance(module, KernelPack)]
    bindings = {canonical_json(pack.binding): pack.binding for pack in packs}
    checks = [verify(operator, binding, seed=seed) for binding in bindings.values()]
    sources = sorted({check.source_hash for check in checks})
    return VerificationResult(
        source_hash=sources[0] if len(sources) == 1 else digest(canonical_json(sources)),
        bindings=[check.binding for check in checks],
        emitter=checks[0].emitter,
        seed=seed,
        passed=all(check.passed for check in checks),
        max_error=max(check.max_error for check in checks),
    )


class Results:
    """A study of trainings in a store: made anew, or gone on with under its name."""

    def __init__(self, store: Store, name: str | None, trainings: Trainings) -> None:
        from syno.store import Worker, capture_environment
        from syno.study.study import settings_of

        settings, specification = trainings.settings(), trainings.specification()
        known = {study.name for study in store.studies()}
        if name is None or name not in known:
            made = name or f"train-{trainings.model}-{Path(trainings.data).name}-".replace("/", "-")
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

    def done(self, operator: Operator | None) -> set[int]:
        """The seeds that this operator (None: the original) was trained with in this way."""
        text = None if operator is None else operator.text
        return {e.seed for e in self.evaluations() if e.text == text and e.recipe == self._recipe}

    def evaluations(self) -> list[Any]:
        """All of the study on the hold-out split."""
        from syno.store.records import HOLDOUT

        summary = self._store.summary(self.record)
        found = [*summary.evaluations, *summary.baselines]
        return [e for e in found if e.split == HOLDOUT]

    def add(self, operator: Operator | None, outcome: Outcome) -> None:
        """Stores a result."""
        text = None if operator is None else operator.text
        proposals = self._store.proposals(self.record)
        same = next((p for p in proposals if p.text == text), None)
        if same is not None and same.status is not None:
            self._store.add_evaluation(self.record, same.ask, outcome, self._environment)
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
    from syno.rules import rule_set

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
