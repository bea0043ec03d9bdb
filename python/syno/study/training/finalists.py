"""The finalists of a study: they are trained again and evaluated on the test split."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.report import gather
from syno.report.pareto import on_front
from syno.store.documents import Details
from syno.study.evaluate.run_key import RunKey
from syno.study.training.retraining import Retraining

if TYPE_CHECKING:
    from torch import nn

    from syno.store import Environment, Outcome, Store, StudySummary
    from syno.store.objective import Objective


class Finalists:
    """The operators on a front of a study, and its original network, for the test split.

    If no operator is on a front, the best operator takes their place.

    Finalists are selected by their validation accuracy or loss. Each is trained again, with the
    seed and the fidelity of the study, so that the same network is tested. An operator is tested
    once only.

    waiting: the numbers of the operators that are not tested yet.
    objective: the measure of the study, accuracy or loss.

    Raises:
        UserError: as in `Retraining`.
    """

    def __init__(self, store: Store, study: str | None, data_dir: str | None = None) -> None:
        summary = store.summary(study)
        report, objective = gather(summary), summary.objective
        # The best operator is tested even if it does not beat the baseline.
        finalists = on_front(report) or report.trained[:1]
        self._texts: dict[int, str | None] = {c.number: c.text for c in finalists}
        if summary.baseline is not None:
            self._texts[summary.baseline.ask] = None
        self.waiting = sorted(set(self._texts) - {e.ask for e in summary.final})
        self.objective: Objective = objective
        self._store, self._summary = store, summary
        self._retraining = Retraining(summary, data_dir) if self.waiting else None

    def evaluate(self, number: int) -> float | None:
        """Train one of the waiting operators and store its result on the test split.

        Returns:
            Its accuracy, from 0 to 1, or its loss in nats per token; None if the training failed.
        """
        assert self._retraining is not None
        outcome = _test(self._retraining, self._texts[number])
        environment = _environment(self._summary)
        self._store.add_evaluation(self._summary.study, number, outcome, environment)
        return self.objective.of(outcome.accuracy, outcome.details)


def _test(retraining: Retraining, text: str | None) -> Outcome:
    from syno.store import Outcome
    from syno.store.records import TEST

    began = time.perf_counter()
    net, training = retraining.train(text)
    settings = retraining.settings
    accuracy, details = _tested(net, retraining) if training.ok else (None, Details())
    details["holdout_accuracy"] = training.accuracy
    if training.loss is not None:
        details["holdout_loss"] = training.loss
    return Outcome(
        training.status,
        reason=training.reason,
        accuracy=accuracy,
        split=TEST,
        rung=retraining.fidelity.name,
        recipe=RunKey(settings.fidelity, retraining.dataset.fingerprint).to_json(),
        seed=settings.seed,
        seconds=time.perf_counter() - began,
        details=details,
    )


def _tested(net: nn.Module, retraining: Retraining) -> tuple[float | None, Details]:
    """Measure the accuracy on the test split, and for text the loss."""
    from syno.data import Records, TextData
    from syno.train import test_accuracy, test_metrics

    fidelity, dataset = retraining.fidelity, retraining.dataset
    if isinstance(dataset, TextData):
        assert fidelity.context is not None
        found = test_metrics(net, dataset, context=fidelity.context, batch=fidelity.batch)
        assert found.loss is not None
        return found.accuracy, {
            "loss": found.loss,
            "perplexity": math.exp(min(found.loss, 700.0)),
            "bits_a_byte": found.bits_a_byte,
        }
    if isinstance(dataset, Records):
        raise UserError(
            f"the test split of the records in '{dataset.folder}' cannot be read by --final\n"
            "  expected: an image folder, an archive of one, or a text"
        )
    accuracy = test_accuracy(
        net,
        dataset,
        resolution=fidelity.resolution,
        flip_average=fidelity.recipe.flip_average,
    )
    return accuracy, Details()


def _environment(summary: StudySummary) -> Environment:
    """Describe this machine, with the threads and rules of the study."""
    from syno.store import capture_environment

    known = next(e.environment for e in (summary.baseline, *summary.evaluations) if e is not None)
    return capture_environment(threads=known.threads, rules=known.rules)
