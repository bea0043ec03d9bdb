"""The results of trainings in a store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.operators.specification import read_specification
from syno.space.rules import rule_set
from syno.store import (
    Environment,
    Evaluation,
    Outcome,
    Store,
    StudyRecord,
    Worker,
    automatic_name,
    capture_environment,
)
from syno.store.records import VALIDATION
from syno.study.evaluate.weights import Weights
from syno.study.fronts import wanted_weights
from syno.study.study import settings_of

if TYPE_CHECKING:
    from syno.operators.operator import Operator
    from syno.study.settings import StudySettings
    from syno.study.training.trainings import Trainings


class TrainingStudy:
    """A study of trainings in a store, which is new or continued."""

    def __init__(self, store: Store, name: str | None, trainings: Trainings) -> None:
        settings, specification = trainings.settings(), trainings.specification()
        self.record, is_new = _study(store, name, trainings)
        if is_new:
            self._begun: tuple[str, dict[str, object]] = ("started", {})
        else:
            before = settings_of(self.record, store.events(self.record))
            _check_same(self.record, before, settings)
            unknown = set(specification.defaults) - set(_defaults(self.record))
            if unknown:
                raise UserError(
                    f"study '{name}' has no coefficient {', '.join(sorted(unknown))}\n"
                    "  what to do: choose another --name for operators with other coefficients"
                )
            self._begun = ("resumed", {"evaluations": settings.evaluations})
        self._store, self._worker = store, Worker()
        self.weights = Weights.of(store, self.record)
        rules = str(rule_set((), ()).version)
        self._environment: Environment = capture_environment(
            threads=trainings.options.timing.threads, rules=rules
        )
        self._key, *self._int8 = trainings.run_keys()

    def begin(self) -> None:
        """Log that a process, which is the only one, works on the study."""
        self._store.append_event(self.record, *self._begun)

    def done(self, operator: Operator | None) -> set[int]:
        """List the seeds with stored results of an operator, or of the original network (None).

        If quantization is requested, a successful training needs a result in INT8 as well.
        """
        own = self._trained(operator)
        found = {e.seed for e in own}
        for key in self._int8:
            quantized = {e.seed for e in self._of(operator) if key.counts(e)}
            found = {e.seed for e in own if e.status != "ok" or e.seed in quantized}
        return found

    def evaluations(self) -> list[Evaluation]:
        """Return all evaluations on the validation split, including those in INT8."""
        summary = self._store.summary(self.record)
        found = [*summary.evaluations, *summary.baselines, *summary.quantized]
        return [e for e in found if e.split == VALIDATION]

    def _of(self, operator: Operator | None) -> list[Evaluation]:
        text = None if operator is None else operator.text
        return [e for e in self.evaluations() if e.text == text]

    def _trained(self, operator: Operator | None) -> list[Evaluation]:
        return [e for e in self._of(operator) if self._key.counts(e)]

    def add(self, operator: Operator | None, outcome: Outcome) -> None:
        """Store a result with the outcomes beside it, or only these if the result is stored."""
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

    def keep_weights(self) -> None:
        """Delete weights beyond the limit, those of the worst networks first."""
        if self.weights is not None:
            self.weights.keep(lambda: wanted_weights(self._store.summary(self.record), every=True))

    def close(self, reason: str, text: str) -> None:
        """Log why the run ended."""
        self._store.append_event(self.record, "stopped", {"reason": reason, "text": text})
        self._worker.close()


def _study(store: Store, name: str | None, trainings: Trainings) -> tuple[StudyRecord, bool]:
    """The study with a name, and whether it is new."""
    if name is not None and name in {study.name for study in store.studies()}:
        return store.study(name), False
    settings, specification = trainings.settings(), trainings.specification()
    made = automatic_name("train", trainings.title, Path(trainings.data).name).replace("/", "-")
    try:
        record = store.create_study(
            name or made,
            specification=(specification.key, json.loads(specification.to_json())),
            settings=settings.to_json(),
            seed=settings.seed,
        )
    except UserError:
        if name is None or name not in {study.name for study in store.studies()}:
            raise
        return store.study(name), False  # another process has made it meanwhile
    return record, True


def _defaults(record: StudyRecord) -> Mapping[str, int]:
    return read_specification(record.specification).defaults


def _check_same(record: StudyRecord, before: StudySettings, now: StudySettings) -> None:
    for name in ("method", "model", "model_options", "fingerprint"):
        found, wanted = getattr(before, name), getattr(now, name)
        if found != wanted:
            raise UserError(
                f"study '{record.name}' has a different {name}\n"
                f"  expected: {found}      got: {wanted}\n"
                "  what to do: choose another --name"
            )
