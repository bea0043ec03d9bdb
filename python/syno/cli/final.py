"""The test split, read once: finalists are trained again and evaluated on it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from syno._errors import UserError
from syno.cli import output
from syno.report import format as fmt
from syno.report import gather
from syno.report.pareto import front, latency, macs

if TYPE_CHECKING:
    from syno.data import DataSet
    from syno.store import Outcome, Store, StudySummary
    from syno.study import StudySettings
    from syno.study.network import Network


def evaluate_finalists(store: Store, study: str | None, data_dir: str | None) -> StudySummary:
    """Evaluate the operators on a front, and the original network, on the test split.

    Finalists are chosen by their hold-out accuracy. Each is trained again, with the seed and the
    fidelity of the study, so that the same network is tested; what was tested before is not tested
    again. UserError for a study of a module that the store cannot hold.
    """
    from syno.study.study import settings_of

    summary = store.summary(study)
    settings = settings_of(summary.study, list(summary.events))
    if settings.model is None or settings.data is None:
        raise UserError(
            f"study '{summary.study.name}' is about a module that the store does not hold\n"
            "  --final needs a study of a named model"
        )
    report = gather(summary)
    trained = report.trained
    asks = {c.number for c in (*front(trained, latency), *front(trained, macs))}
    texts = {c.number: c.text for c in trained if c.number in asks}
    done = {evaluation.ask for evaluation in summary.final}
    wanted = [ask for ask in sorted({0, *asks} - done) if ask or summary.baseline is not None]
    if wanted:
        network, dataset = _network(settings, data_dir)
        with output.progress("testing finalists", len(wanted)) as move:
            for index, ask in enumerate(wanted, start=1):
                outcome = _test(settings, network, dataset, summary, texts.get(ask))
                store.add_evaluation(summary.study, ask, outcome, _environment(summary))
                found = fmt.percent(outcome.accuracy) if outcome.accuracy else outcome.reason
                move(index, f"{'baseline' if ask == 0 else f'proposal {ask}'}: {found}")
    return store.summary(summary.study)


def _network(settings: StudySettings, data_dir: str | None) -> tuple[Network, DataSet]:
    from syno.data import load
    from syno.study.network import Network

    assert settings.model is not None and settings.data is not None
    size = settings.fidelity["resolution"]
    dataset = load(settings.data, data_dir or settings.data_dir, size=size)
    if dataset.fingerprint != settings.fingerprint:
        raise UserError(
            f"the data set '{settings.data}' is not what the study was started with\n"
            f"  expected: {settings.fingerprint}      got: {dataset.fingerprint}"
        )
    return Network.named(settings.model, settings.model_options, dataset, settings.seed), dataset


def _test(
    settings: StudySettings,
    network: Network,
    dataset: DataSet,
    summary: StudySummary,
    text: str | None,
) -> Outcome:
    """Train the network once more, with the operator or as it was, and read the test split."""
    import torch

    from syno.store import Outcome
    from syno.store.records import TEST
    from syno.train import Fidelity, test_accuracy, train

    began = time.perf_counter()
    net = network.original() if text is None else _with_operator(network, summary, text)
    threads = torch.get_num_threads()
    torch.set_num_threads(int(settings.latency.get("threads", 1)))
    try:
        training = train(net, dataset, Fidelity.from_json(settings.fidelity), settings.seed)
        accuracy = test_accuracy(net, dataset) if training.ok else None
    finally:
        torch.set_num_threads(threads)
    return Outcome(
        training.status,
        reason=training.reason,
        accuracy=accuracy,
        split=TEST,
        rung=settings.fidelity["name"],
        recipe={"fidelity": settings.fidelity, "data": dataset.fingerprint},
        seed=settings.seed,
        seconds=time.perf_counter() - began,
        details={"holdout_accuracy": training.accuracy},
    )


def _with_operator(network: Network, summary: StudySummary, text: str) -> Any:
    from syno.operator import Operator
    from syno.report.asked import read_specification

    specification = read_specification(summary.study.specification)
    return network.with_operator(Operator.from_text(text, specification))[0]


def _environment(summary: StudySummary) -> Any:
    """The present machine, under the rules of the study."""
    from syno.store import capture_environment

    known = [e.environment for e in (*summary.evaluations, summary.baseline) if e is not None]
    return capture_environment(threads=known[0].threads, rules=known[0].rules)
