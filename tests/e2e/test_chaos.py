"""A hundred kills at random moments, while workers repeat, delay and misdate their answers.

Run with `pytest -m slow -s`, a test prints how many processes it killed.
"""

from __future__ import annotations

import collections
import random
import time

import pytest

from postgresql import server

from .cluster import Cluster, check_log, expected, table

KILLS = 100
SEED = 7
# The third worker sends answers again, later and in another order, and its clock jumps by days.
MISCHIEF = {"three": "late again clock"}
WORKERS = ("one", "two", "three")


def kill_at_random(cluster, database=None):
    """Kill processes at random moments and start them again; return how many of each."""
    moments = random.Random(SEED)
    killed = collections.Counter()
    victims = [*WORKERS, "driver"] * 3 + ["database"] * (2 if database else 0)
    for name in ("driver", *WORKERS):
        cluster.start(name)
    while killed.total() < KILLS:
        if killed.total() % 5 == 0:  # it goes on at times, however often it is killed
            cluster.wait_for(cluster.begun() + 3)
        time.sleep(moments.uniform(0, 0.6))
        cluster.goes_on()
        victim = moments.choice(victims)
        if victim == "database":
            database.kill()
            time.sleep(moments.uniform(0, 0.5))
            database.start(durable=True)
            killed[victim] += 1
        else:
            killed[victim] += cluster.kill(victim)
            cluster.start(victim)
    return killed


def check(cluster, tmp_path, killed):
    assert cluster.end("driver") == "evaluations"
    summary = cluster.summary()
    kinds = collections.Counter(event.kind for event in summary.events)
    print(f"\nkilled: {dict(killed)}; {cluster.evaluations} evaluations; log: {dict(kinds)}")
    check_log(summary)
    assert table(summary) == expected(tmp_path, cluster.evaluations), f"seed {SEED}"
    assert kinds["failed"] == 0


@pytest.mark.slow
def test_a_hundred_kills_of_workers_and_drivers_change_nothing(tmp_path):
    cluster = Cluster(tmp_path, str(tmp_path / "store.db"), mischief=MISCHIEF)
    try:
        check(cluster, tmp_path, kill_at_random(cluster))
    finally:
        cluster.close()


@pytest.mark.slow
def test_a_hundred_kills_also_of_the_database_change_nothing(tmp_path):
    with server() as database:
        database.start(durable=True)
        cluster = Cluster(tmp_path, database.url, mischief=MISCHIEF)
        try:
            killed = kill_at_random(cluster, database)
            assert killed["database"] > 0
            check(cluster, tmp_path, killed)
        finally:
            cluster.close()
            database.stop()
