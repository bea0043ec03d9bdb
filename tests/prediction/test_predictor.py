"""The latency predictor on latencies that are computed, so that the right answers are known."""

import json

import numpy as np
import pytest

import syno
from syno import UserError, zoo
from syno.measure.kernels import sizes
from syno.measure.roofline import Level, Roofline
from syno.prediction import (
    RESOURCES,
    Device,
    LatencyPredictor,
    LatencySample,
    Workload,
    kernel_work,
)
from syno.surrogate.models import rank_correlation

NAMES = (
    "conv2d", "operator-1", "operator-2", "depthwise", "grouped", "conv1x1", "shift-conv",
    "pixel-shuffle", "dilated", "low-rank-conv",
)  # fmt: skip
LAYERS = ((64, 56), (128, 28), (256, 14), (96, 24))
# Seconds at the peak rate become these many.
RATES = {name: 1.2 + 0.3 * place for place, name in enumerate(RESOURCES)}


def device(name="a processor", lanes=16, speed=1.0):
    levels = tuple(
        Level(size << 10, speed * rate)
        for size, rate in ((16, 2e11), (1024, 8e10), (4096, 4e10), (32768, 1e10))
    )
    return Device(name, lanes, Roofline(1, speed * 150e9, levels))


def kernel(name, channels, size, batch=1):
    operator = zoo.load(name)
    return Workload(operator, sizes(operator, channels, size, batch, {"g": 16}))


def true_seconds(kernels, where, rest=0.0):
    works = [(kernel_work(k.operator, k.binding, where), k.count) for k in kernels]
    return rest + sum(n * sum(RATES[r] * work[r] for r in RESOURCES) for work, n in works)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    where = device()
    found = []
    for name in NAMES:
        for layer in LAYERS:
            kernels = (kernel(name, *layer),)
            seconds = true_seconds(kernels, where) * float(np.exp(rng.normal(0, 0.03)))
            found.append(LatencySample(kernels, seconds, where, family=name))
    return found


@pytest.fixture(scope="module")
def predictor(samples):
    return LatencyPredictor().fit(samples)


def test_work_counts_what_the_plan_counts():
    found = kernel("conv2d", 64, 56)
    work = kernel_work(found.operator, found.binding, device())
    assert work["macs"] == work["product_macs"] == 9 * 64 * 64 * 56 * 56
    assert work["product"] > 0 and work["scattered"] == 0
    # The roofline of the MACs is below what vectors take.
    assert work.floor <= sum(RATES[name] * work[name] for name in RESOURCES)
    rotated = kernel("window-by-rotation", 64, 56)
    assert kernel_work(rotated.operator, rotated.binding, device())["partial"] > 0


def test_work_of_a_batch_is_that_of_its_images():
    one, eight = (
        kernel_work(k.operator, k.binding, device())
        for k in (kernel("operator-1", 64, 28), kernel("operator-1", 64, 28, 8))
    )
    for name in ("product", "multiply", "partial", "macs", "rows"):
        assert eight[name] == pytest.approx(8 * one[name])
    assert eight["weights"] == one["weights"] and eight["calls"] == one["calls"]


def test_families_that_were_left_out_are_ranked(samples):
    left, known = samples[::5], [s for n, s in enumerate(samples) if n % 5]
    found = LatencyPredictor().fit(known).predict_many([s.kernels for s in left])
    seconds = np.array([each.seconds for each in found])
    true = np.array([s.seconds for s in left])
    assert rank_correlation(seconds, true) > 0.95
    assert np.exp(np.abs(np.log(seconds / true)).mean()) < 1.15


def test_it_extrapolates_over_sizes(predictor):
    for name in ("operator-1", "depthwise", "pixel-shuffle", "conv2d"):
        large = kernel(name, 512, 56, 4)
        found = predictor.predict(large.operator, large.binding)
        assert found.seconds == pytest.approx(true_seconds([large], device()), rel=0.3)


def test_it_knows_what_it_does_not_know(samples, predictor):
    large = kernel("conv2d", 64, 56)
    unknown = LatencyPredictor(device()).predict(large.operator, large.binding)
    known = predictor.predict(large.operator, large.binding)
    assert unknown.deviation > 4 * known.deviation
    assert unknown.low <= unknown.seconds <= unknown.high
    found = predictor.predict_many([s.kernels for s in samples])
    inside = [p.low <= s.seconds <= p.high for s, p in zip(samples, found, strict=True)]
    assert np.mean(inside) > 0.8


def test_no_prediction_is_below_the_roofline(predictor):
    fast = device("a faster one", speed=0.01)
    found = kernel("conv2d", 64, 56)
    floor = kernel_work(found.operator, found.binding, fast).floor
    predicted = predictor.predict(found.operator, found.binding, device=fast)
    assert floor <= predicted.low <= predicted.seconds


def test_a_faster_device_is_faster(predictor):
    found = kernel("operator-1", 64, 56)
    own, faster = (
        predictor.predict(found.operator, found.binding, device=where).seconds
        for where in (device(), device("twice as fast", speed=2.0))
    )
    assert own / faster == pytest.approx(2, rel=0.15)


def test_the_rest_of_a_network_is_learned(samples):
    where = device()
    nets = [(kernel(n, 64, 56), Workload(*_parts(n, 128, 28), 2)) for n in NAMES]
    rest = [LatencySample(k, true_seconds(k, where, 2e-3), where, "net", "x") for k in nets[:6]]
    found = LatencyPredictor().fit([*samples, *rest])
    for kernels in nets[6:]:
        predicted = found.predict(kernels, network="net")
        assert predicted.whole
        assert predicted.seconds == pytest.approx(true_seconds(kernels, where, 2e-3), rel=0.2)
        other = found.predict(kernels, network="another net")
        assert not other.whole and other.seconds < predicted.seconds


def _parts(name, channels, size):
    found = kernel(name, channels, size)
    return found.operator, found.binding


def test_a_saved_predictor_predicts_the_same(samples, predictor, tmp_path):
    predictor.save(tmp_path / "predictor.json")
    again = LatencyPredictor.load(tmp_path / "predictor.json")
    assert again.samples == predictor.samples and again.device == predictor.device
    networks = [s.kernels for s in samples[:5]]
    assert again.predict_many(networks) == predictor.predict_many(networks)
    assert [path.name for path in tmp_path.iterdir()] == ["predictor.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "syno surrogate"}, "no latency predictor"),
        ({"version": 99}, "expected: version 1      got: version 99"),
        ({"devices": []}, "damaged"),
        ({"devices": [{"name": "x"}]}, "damaged"),
        ({"operators": ["syno operator 9"]}, "version|operator"),
        ({"samples": [{}]}, "damaged"),
        ({"samples": 3}, "damaged"),
        ({"seed": "x"}, "damaged"),
    ],
)
def test_a_damaged_document_is_refused(samples, change, message):
    document = LatencyPredictor().fit(samples[:2]).to_json()
    with pytest.raises(UserError, match=message):
        LatencyPredictor.from_json(document | change)


@pytest.mark.parametrize(
    "change",
    [
        {"device": 7}, {"device": -1}, {"device": True}, {"kernels": []}, {"kernels": "none"},
        {"kernels": [[-1, {}, 1]]}, {"kernels": [[0, {"H": "x"}, 1]]}, {"seconds": -1.0},
        {"seconds": "1"}, {"kernels": [[0, {}, 1]]}, {"kernels": [[0, {"N": 1}, 0]]},
    ],
)  # fmt: skip
def test_a_damaged_sample_is_refused(samples, change):
    document = json.loads(json.dumps(LatencyPredictor().fit(samples[:2]).to_json()))
    document["samples"][0] |= change
    with pytest.raises(UserError):
        LatencyPredictor.from_json(document)


def test_files_that_hold_no_predictor(tmp_path):
    (tmp_path / "text").write_text("no JSON")
    with pytest.raises(UserError, match="not a JSON document"):
        LatencyPredictor.load(tmp_path / "text")
    with pytest.raises(UserError, match="cannot read the latency predictor"):
        LatencyPredictor.load(tmp_path / "missing")
    with pytest.raises(UserError, match="cannot write the latency predictor"):
        LatencyPredictor(device()).save(tmp_path / "text" / "file")


def test_latencies_that_are_none(samples):
    with pytest.raises(UserError, match="must be positive"):
        LatencyPredictor().fit([LatencySample(samples[0].kernels, 0.0, device())])
    with pytest.raises(syno.UserError, match="no kernels"):
        LatencyPredictor().fit([LatencySample((), 1.0, device())])
