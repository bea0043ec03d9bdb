"""A search with many workers in simulated time, by the real driver and a real store."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from syno._util.errors import UserError
from syno.store import Store
from syno_lab.benchmark.cluster import Load, Recorded, SimulatedCluster, _Lock
from syno_lab.benchmark.measured_store import Cost
from syno_lab.benchmark.scale import ScaleResults, parse_workers, simulate_scale
from syno_lab.benchmark.scale_picture import save_scale


def ticking(step: float) -> Callable[[], float]:
    """A clock that goes on by `step` with each look, so that costs do not depend on the machine."""
    count = itertools.count()
    return lambda: step * next(count)


def simulated(path: Path, workers: tuple[int, ...] = (4,), step: float = 1e-4, **load: float):
    with Store.open(str(path)) as store:
        return simulate_scale(store, workers, timer=ticking(step), **load)


@pytest.mark.slow
def test_with_long_trials_the_workers_are_what_limits(tmp_path):
    progress = []
    with Store.open(str(tmp_path / "scale.db")) as store:
        found = simulate_scale(
            store,
            (1, 4),
            trial_seconds=300.0,
            progress=lambda *given: progress.append(given),
            timer=ticking(1e-4),
        )
        studies = store.studies()
        answers = [len(store.evaluations(study)) for study in studies]
        assert [study.name for study in studies] == ["scale-1-1", "scale-4-1"]
    one, four = found.results
    assert [one.workers, four.workers] == [1, 4]
    assert answers == [1 + one.answers, 4 + four.answers]
    assert one.efficiency > 0.95
    assert four.efficiency > 0.95
    assert {each.bottleneck for each in found.results} == {"workers"}
    assert four.ideal == pytest.approx(4 / 300, rel=0.1)
    assert 2.0 < four.missing < 8.0  # what the other workers evaluate, and what waits
    assert (four.lost, four.dropped, four.wasted) == (0, 0, 0.0)
    names = [each.name for each in four.operations]
    assert names == ["announce", "look", "propose", "renew", "take", "tell"] or names == [
        "look",
        "propose",
        "renew",
        "take",
        "tell",
    ]
    assert progress[-1] == (4 + four.answers, 4 + four.answers, "4 workers")
    with Store.open(str(tmp_path / "scale.db"), read_only=True) as store:  # it is whole
        assert store.quarantine.of(store.study("scale-4-1")) == []


def test_a_slow_store_is_named_as_what_limits(tmp_path):
    (found,) = simulated(tmp_path / "scale.db", (8,), step=0.5, trial_seconds=5.0).results
    assert found.efficiency < 0.5
    assert found.bottleneck in ("lock of the study", "driver")
    assert max(found.lock, found.driver) > 0.7
    tell = next(each for each in found.operations if each.name == "tell")
    assert 0 < tell.locked_ms <= tell.mean_ms <= tell.p99_ms


def test_workers_are_lost_and_late_answers_do_not_count(tmp_path):
    load = {"trial_seconds": 60.0, "failures": 0.3, "stragglers": 0.1}
    (found,) = simulated(tmp_path / "scale.db", (6,), **load).results
    assert found.lost > 0
    assert found.dropped > 0
    assert 0.02 < found.wasted < 0.6
    assert found.efficiency < 0.95
    with Store.open(str(tmp_path / "scale.db"), read_only=True) as store:
        study = store.study()
        events = store.events(study)
        told = [e.data["ask"] for e in events if e.kind == "told"]
        assert len(told) == len(set(told)) == 6 + found.answers
        assert sum(e.kind == "dropped" for e in events) >= found.dropped
        assert {e.status for e in store.evaluations(study)} == {"ok"}


def test_a_latency_is_added_for_each_message(tmp_path):
    near, far = (
        simulated(tmp_path / f"{ms:g}.db", (2,), trial_seconds=60.0, latency_ms=ms)
        for ms in (0.0, 10.0)
    )
    before, after = (
        {each.name: each for each in found.results[0].operations} for found in (near, far)
    )
    for name in ("propose", "take", "tell"):
        assert after[name].mean_ms > before[name].mean_ms + 50.0  # several messages
        assert after[name].locked_ms > before[name].locked_ms + 20.0


def test_it_is_the_same_with_the_same_seed(tmp_path):
    def results(name: str, seed: int) -> ScaleResults:
        with Store.open(str(tmp_path / name)) as store:
            return simulate_scale(
                store, (3,), trial_seconds=20.0, failures=0.1, seed=seed, timer=ticking(1e-4)
            )

    first, second = (results(f"{n}.db", 5).results for n in range(2))
    assert [each.workers for each in first] == [each.workers for each in second]
    assert first[0].answers == second[0].answers
    assert first[0].seconds == pytest.approx(second[0].seconds, rel=0.1)
    assert results("other.db", 6).results[0].seconds != first[0].seconds


def test_a_simulation_on_a_server(tmp_path, postgresql):
    with Store.open(postgresql) as store:
        found = simulate_scale(store, (3,), trial_seconds=30.0, failures=0.1, latency_ms=0.5)
        assert len(store.evaluations(store.study())) >= found.results[0].answers
    assert found.store == "postgresql"
    (result,) = found.results
    by_name = {each.name: each for each in result.operations}
    assert by_name["take"].locked_ms == 0.0  # workers do not wait for each other
    assert by_name["tell"].locked_ms > 0.0
    described = found.described()
    assert described["results"][0]["bottleneck"] == result.bottleneck
    assert described["environment"]["libraries"]["syno"]


def test_a_picture_of_it(tmp_path):
    save_scale(simulated(tmp_path / "scale.db", (1, 2), trial_seconds=9.0), tmp_path / "scale.png")
    assert (tmp_path / "scale.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"failures": 1.0}, r"failures \(--failures\) are a share of the trials, .* got 1"),
        ({"stragglers": -0.1}, "stragglers"),
        ({"trial_seconds": 0.0}, "a trial .* takes more than 0"),
        ({"latency_ms": 1e5}, "the latency of the database .* from 0 to 10,000"),
        ({"method": "magic"}, "there is no search method 'magic'"),
    ],
)
def test_mistakes_are_named(tmp_path, load, message):
    with Store.open("sqlite://") as store, pytest.raises(UserError, match=message):
        simulate_scale(store, (1,), **load)


@pytest.mark.parametrize("text", ["", "many", "1;2", "1,,2", "-4", "0", "4097", "1.5"])
def test_numbers_of_workers_are_checked(text):
    with pytest.raises(UserError, match="--workers"):
        parse_workers(text)


def test_numbers_of_workers_are_read():
    assert parse_workers("1, 64,256") == (1, 64, 256)


def test_thousands_of_calls_wait_for_the_lock_and_do_not_need_it() -> None:
    cluster = object.__new__(SimulatedCluster)
    cluster._lock, cluster._locks, cluster._load = _Lock(), {}, Load(1, 1.0)
    cluster._measure = lambda call: (call(), Cost(0.001, 0.0, 1, 0))
    cluster._now, cluster._order, cluster._events = 0.0, itertools.count(), []
    cluster.recorded = Recorded(0.0)
    made = []
    cluster._lock.is_held = True
    for number in range(5000):
        cluster._do("take", functools.partial(made.append, number), lambda _: None)
    assert made == []
    cluster._release()
    assert made == list(range(5000))
