"""A search with a ladder, killed with `kill -9`, prunes as one that was left alone."""

from __future__ import annotations

import random

import pytest

from syno.store import Store

from .killing import SECONDS, Search

EVALUATIONS = 14
RUNGS = 3
KILLS = 2
SEED = 3


def results(search: Search) -> list[tuple[object, ...]]:
    """What training gave, in the order of telling."""
    with Store.open(str(search.store), read_only=True) as store:
        found = store.rung_results(store.study())
    return [(r.ask, r.kind, r.rung_index, r.status, r.accuracy) for r in found]


def decisions(search: Search) -> set[tuple[int, int, str]]:
    """What became of each operator at each rung."""
    with Store.open(str(search.store), read_only=True) as store:
        study = store.study()
        reached = {p.ask: p.rung_index for p in store.proposals(study)}
        told = [r for r in store.rung_results(study) if r.kind == "operator" and r.is_evaluated]
    found = set()
    for result in told:
        if result.accuracy is None:
            what = "failed"
        elif result.rung_index == RUNGS - 1:
            what = "finished"
        else:
            what = "promoted" if reached[result.ask] > result.rung_index else "stopped"
        found.add((result.ask, result.rung_index, what))
    return found


@pytest.mark.slow
def test_a_ladder_killed_at_random_moments_takes_the_same_decisions(tmp_path):
    whole, cut = (Search(tmp_path / name, EVALUATIONS, ladder=True) for name in ("whole", "cut"))
    whole.finish()
    assert {what for *_, what in decisions(whole)} == {"promoted", "stopped", "failed", "finished"}

    moments = random.Random(SEED)
    told: list[tuple[object, ...]] = []
    for _ in range(KILLS):
        cut.kill_after(moments.randint(4, 10), moments.uniform(0, 1.5 * SECONDS))
        now = results(cut)
        assert now[: len(told)] == told, f"a result was lost or changed (seed {SEED})"
        assert len(now) > len(told)
        told = now
    cut.finish()

    assert results(cut) == results(whole), f"seed {SEED}"
    assert decisions(cut) == decisions(whole), f"seed {SEED}"
    assert len(cut.begun()) <= len(whole.begun()) + KILLS  # at most one more for each kill
    for search in (whole, cut):
        assert not (search.folder / "store.db.checkpoints").exists()
