"""A search with a ladder, killed with `kill -9`, prunes as one that was left alone."""

from __future__ import annotations

import random

from syno.store import Store

from .killing import SECONDS, Search

EVALUATIONS = 14
KILLS = 2
SEED = 3


def results(search: Search) -> list[tuple[object, ...]]:
    """What training gave, in the order of telling."""
    with Store.open(str(search.store), read_only=True) as store:
        found = store.rung_results(store.study())
    return [(r.ask, r.kind, r.rung_index, r.status, r.accuracy) for r in found]


def reached(search: Search) -> dict[int, int]:
    """The highest rung that each operator was sent to."""
    with Store.open(str(search.store), read_only=True) as store:
        return {p.ask: p.rung_index for p in store.proposals(store.study())}


def test_a_ladder_killed_at_random_moments_takes_the_same_decisions(tmp_path):
    whole, cut = (Search(tmp_path / name, EVALUATIONS, ladder=True) for name in ("whole", "cut"))
    whole.finish()
    assert set(reached(whole).values()) == {0, 1, 2}
    assert any(accuracy is None for *_, accuracy in results(whole))

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
    assert reached(cut) == reached(whole), f"seed {SEED}"
    assert len(cut.begun()) <= len(whole.begun()) + KILLS  # at most one more for each kill
    for search in (whole, cut):
        assert not (search.folder / "store.db.checkpoints").exists()
