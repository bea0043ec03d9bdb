"""Searches whose latencies are predicted: what they are used for, and that they stay marked."""

from __future__ import annotations

import dataclasses

import pytest

import syno
from syno import IsolationOptions, SpaceOptions, TimingOptions, TrainOptions, UserError
from syno._util import numbers
from syno.data import load
from syno.measure.roofline import Level, Roofline
from syno.network.sampler import Sampler
from syno.operators import zoo
from syno.prediction import Device, LatencyPredictor
from syno.store import Store
from syno.store.objective import ACCURACY
from syno.store.objectives import parse_objectives
from syno.store.tables import operators_table
from syno.study.evaluate.evaluator import NetworkEvaluator
from syno.study.evaluate.network import Network
from syno.study.evaluate.predicted import (
    NetworkLatencyPredictor,
    kernels_of,
    network_name,
    predictor_for,
    stored_samples,
)
from syno.study.local_workers import LocalWorkers
from syno.study.ratings import as_result
from syno.study.search import resume, search
from syno.study.specifications import small_vision
from syno.train import fidelity

pytestmark = pytest.mark.usefixtures("one_torch_thread")

BRIEF = fidelity("digits").changed(name="brief", images=64, epochs=1)
DEVICE = Device("a processor", 16, Roofline(1, 1e11, (Level(1 << 20, 1e11), Level(1 << 25, 1e10))))
OPTIONS = {"width": 4, "layers": 1, "stages": 2}


@pytest.fixture(scope="module")
def network():
    return Network.named("cnn-small", OPTIONS, load("digits"), 0)


@pytest.fixture(scope="module")
def operator(network):
    sampler = Sampler.from_specification(
        small_vision(max_macs=network.macs), net=network.template, max_nodes=2000
    )
    return next(op for op in sampler.operators if op.primitives() == {"reduce": 1, "contract": 1})


@pytest.fixture(scope="module")
def document():
    return LatencyPredictor(DEVICE).to_json()


@pytest.fixture(scope="module")
def outcomes(network, operator, document):
    """Those of the baseline and of the operator."""
    evaluator = NetworkEvaluator(
        network,
        load("digits"),
        BRIEF,
        0,
        timing=TimingOptions(latency="predicted"),
        predictor=document,
    ).prepared()
    return evaluator.baseline(), evaluator.evaluate(operator)


def timed(evaluation, milliseconds, **changes):
    """The evaluation with a measured latency."""
    environment = dataclasses.replace(evaluation.environment, device=DEVICE.name, threads=1)
    values = {
        "latency_ms": milliseconds,
        "latency_ratio": 0.5,
        "environment": environment,
        "details": {"latency_engine": "compiled"},
    }
    return dataclasses.replace(evaluation, **(values | changes))


def test_nothing_is_measured(outcomes, operator):
    for outcome in outcomes:
        assert outcome.status == "ok" and outcome.measurement is None and outcome.latency is None
        assert outcome.recipe["latency"] == "predicted"
        found = outcome.details["predicted_latency"]
        assert found["low_ms"] <= found["median_ms"] <= found["high_ms"]
        assert (found["device"], found["samples"], found["whole"]) == ("a processor", 0, False)
    baseline, own = (outcome.details["predicted_latency"] for outcome in outcomes)
    assert baseline["ratio"] == 1
    # A convolution of window 1 does a ninth of the multiply-adds.
    assert 0 < own["ratio"] < 1


def test_a_failed_training_has_no_latency(network, operator, document, monkeypatch):
    evaluator = NetworkEvaluator(
        network, load("digits"), BRIEF, 0, deadline_s=0.0, predictor=document
    )
    found = evaluator.evaluate(operator)
    assert found.status == "timeout" and "predicted_latency" not in found.details


def test_the_kernels_of_a_network_are_those_of_its_slots(network, operator):
    original = kernels_of(network.template)
    assert {kernel.operator.text for kernel in original} == {zoo.load("conv2d").text}
    assert sum(k.count * k.operator.macs(k.binding) for k in original) == network.macs
    net, _ = network.with_operator(operator)
    own = kernels_of(net)
    assert {kernel.operator.text for kernel in own} == {operator.text}
    assert sum(kernel.count for kernel in own) == sum(kernel.count for kernel in original)


def test_stored_latencies_of_the_device_start_the_predictor(network, operator, outcomes):
    row = dataclasses.replace(as_result(1, outcomes[1]), text=operator.text, key=operator.key)
    other = dataclasses.replace(row.environment, device="another", threads=1)
    rows = [
        timed(row, 3.0),
        timed(row, 3.0, environment=other),
        timed(row, 3.0, details={}),  # in eager PyTorch
        row,  # not measured
        timed(row, 5.0, kind="baseline", text=None, key=None),
    ]
    found = stored_samples(network, rows, LatencyPredictor(DEVICE))
    assert [sample.seconds for sample in found] == [3e-3, 5e-3]
    assert {sample.network for sample in found} == {network_name(network)}
    predictor = predictor_for(LatencyPredictor(DEVICE), network, rows, 1)
    net, _ = network.with_operator(operator)
    predicted = NetworkLatencyPredictor(network, predictor).predict(net)
    assert predicted["whole"] and predicted["samples"] == 2
    assert predicted["median_ms"] == pytest.approx(3.0, rel=0.35)
    with pytest.raises(UserError, match="for 1 threads"):
        predictor_for(LatencyPredictor(DEVICE), network, rows, 2)


def test_a_measured_latency_comes_before_a_predicted_one(outcomes):
    objectives = parse_objectives(["accuracy", "latency_ratio"], ["latency_ms<=1e9"], ACCURACY)
    predicted = as_result(1, outcomes[1])
    ratio = outcomes[1].details["predicted_latency"]["ratio"]
    assert objectives.scores(predicted) == (predicted.accuracy, -ratio)
    assert objectives.is_predicted(predicted) and objectives.violation(predicted) == 0
    measured = dataclasses.replace(predicted, latency_ratio=0.25, latency_ms=1.0)
    assert objectives.scores(measured) == (predicted.accuracy, -0.25)
    assert not objectives.is_predicted(measured)
    assert not parse_objectives(["accuracy", "macs"], [], ACCURACY).is_predicted(predicted)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A store with a search on predicted latencies that was resumed, and its predictor."""
    folder = tmp_path_factory.mktemp("predicted")
    path, predictor = str(folder / "runs.db"), str(folder / "predictor.json")
    LatencyPredictor(DEVICE).save(predictor)
    search(
        "cnn-small",
        "digits",
        model_options=OPTIONS,
        evaluations=2,
        space=SpaceOptions(max_nodes=2000),
        train=TrainOptions(fidelity=BRIEF, kernels="eager"),
        timing=TimingOptions(latency="predicted", predictor=predictor),
        isolation=IsolationOptions(isolate=False),
        objective=("accuracy", "latency_ratio"),
        store=path,
        name="predicted",
    )
    return path, predictor, resume(path, evaluations=3)


def test_a_search_compares_by_predictions_and_its_tables_say_so(searched):
    path, _, results = searched
    trained = [e for e in results.evaluations if e.status == "ok"]
    assert len(trained) >= 2
    for each in (*trained, results.baseline):
        assert each.latency_ms is None or each.kind == "baseline"
        assert each.details["predicted_latency"]["ratio"] > 0
    with Store.open(path, read_only=True) as store:
        summary = store.summary("predicted")
    assert summary.archive == () and summary.hypervolume is None
    assert any(value is not None for value in summary.progress)
    table = operators_table(summary)
    found = [dict(zip(table.names(), row, strict=True)) for row in table.rows]
    shown = [cells for cells in found if cells["status"] == "ok"]
    assert len(shown) == len(trained)
    for cells in shown:
        assert cells["predicted"].startswith("~")
        assert cells["latency"] == cells["speed-up"] == numbers.MISSING


def test_a_worker_without_the_device_predicts(searched, tmp_path):
    _, predictor, _ = searched
    path = str(tmp_path / "runs.db")
    search(
        "cnn-small",
        "digits",
        model_options=OPTIONS,
        evaluations=1,
        space=SpaceOptions(max_nodes=2000),
        train=TrainOptions(fidelity=BRIEF, kernels="eager", max_slowdown=1000),
        timing=TimingOptions(latency="eager", repeats=20),
        isolation=IsolationOptions(isolate=False),
        store=path,
    )
    results = resume(path, evaluations=2, predictor=predictor)
    first, second = results.evaluations
    assert first.latency_ms is not None and "predicted_latency" not in first.details
    assert second.latency_ms is None and "predicted_latency" in second.details
    last = resume(path, evaluations=3).evaluations[-1]
    assert last.latency_ms is not None or last.status != "ok"


def test_given_operators_are_measured():
    with pytest.raises(UserError, match="measured, and not predicted"):
        syno.train_operators(["conv2d"], "digits", timing=TimingOptions(latency="predicted"))


def test_what_is_no_predictor_is_refused_before_there_is_a_store(tmp_path):
    path, missing = tmp_path / "runs.db", str(tmp_path / "missing.json")
    timing = TimingOptions(latency="predicted", predictor=missing)
    with pytest.raises(UserError, match="cannot read the latency predictor"):
        search("cnn-small", "digits", timing=timing, jobs=2, store=str(path))
    LatencyPredictor(DEVICE).save(missing)
    timing = TimingOptions(latency="predicted", predictor=missing, threads=2)
    with pytest.raises(UserError, match="for 1 threads"):
        search("cnn-small", "digits", timing=timing, store=str(path))
    assert not path.exists()


def test_workers_predict_with_the_predictor_of_the_command_that_starts_them(searched, tmp_path):
    path, predictor, _ = searched
    with Store.open(path) as store:
        workers = LocalWorkers(store, None, 1, predictor=predictor)
        assert workers._given["predictor"] == predictor
    with pytest.raises(UserError, match="--jobs 0 starts none"):
        resume(path, jobs=0, predictor=predictor)
    with pytest.raises(UserError, match="cannot read the latency predictor"):
        resume(path, jobs=1, predictor=str(tmp_path / "none.json"))
