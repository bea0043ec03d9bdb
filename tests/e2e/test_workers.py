"""Workers and drivers killed with `kill -9`: nothing is lost, nothing counts twice."""

from __future__ import annotations

import random
import time

import pytest

from postgresql import server

from .cluster import EVALUATIONS, Cluster, check_log, emptied, expected, table

SEED = 7


@pytest.fixture(params=["sqlite", "postgresql"])
def cluster(request, tmp_path):
    url = str(tmp_path / "store.db")
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql")
        emptied(url)
    made = Cluster(tmp_path, url)
    yield made
    made.close()


@pytest.mark.slow
def test_killed_workers_and_drivers_change_nothing(cluster, tmp_path):
    moments = random.Random(SEED)
    for name in ("driver", "one", "two"):
        cluster.start(name)
    for victim in ("one", "driver", "two", "driver"):
        cluster.wait_for(cluster.begun() + moments.randint(2, 4))
        time.sleep(moments.uniform(0, cluster.seconds))
        assert cluster.kill(victim)
        cluster.start(victim)
    assert cluster.end("driver") == "evaluations"
    summary = cluster.summary()
    check_log(summary)
    assert table(summary) == expected(tmp_path, cluster.evaluations), f"seed {SEED}"


@pytest.mark.slow
def test_a_killed_database_loses_nothing_that_was_stored(tmp_path):
    with server() as database:
        database.start(durable=True)
        cluster = Cluster(tmp_path, database.url)
        try:
            for name in ("driver", "one", "two"):
                cluster.start(name)
            for _ in range(2):
                cluster.wait_for(cluster.begun() + 4)
                database.kill()
                time.sleep(1.0)
                database.start(durable=True)
            assert cluster.end("driver") == "evaluations"
            summary = cluster.summary()
            check_log(summary)
            assert table(summary) == expected(tmp_path, EVALUATIONS)
        finally:
            cluster.close()
            database.stop()
