"""A search killed with `kill -9` loses no finished evaluation and repeats none."""

from __future__ import annotations

import random

import pytest

from marks import with_slow
from syno.store import Store, StudySummary

from .killing import SECONDS, Search

SEED = 20


def stored(search: Search) -> StudySummary:
    with Store.open(str(search.store), read_only=True) as store:
        return store.summary("study")


def answers(summary: StudySummary) -> dict[str, tuple[str, str]]:
    found = (summary.baseline, *summary.evaluations) if summary.baseline else ()
    return {e.key or "baseline": (e.status, e.finished) for e in found}


def content(summary: StudySummary) -> list[tuple[object, ...]]:
    assert summary.baseline is not None
    return [
        (e.ask, e.kind, e.text, e.key, e.status, e.reason, e.accuracy, e.latency_ratio)
        for e in (summary.baseline, *summary.evaluations)
    ]


@pytest.mark.parametrize("kills", with_slow([2, 5], 5))
def test_a_search_killed_at_random_moments_goes_on_as_if_nothing_had_happened(tmp_path, kills):
    whole, cut = (Search(tmp_path / name, 4 + 4 * kills) for name in ("whole", "cut"))
    whole.finish()
    expected = content(stored(whole))

    moments = random.Random(SEED)
    seen = 0
    told: dict[str, tuple[str, str]] = {}  # operator -> (answer, when it was stored)
    for kill in range(kills + 1):
        if kill < kills:
            cut.kill_after(moments.randint(2, 5), moments.uniform(0, 1.5 * SECONDS))
        else:
            cut.finish()
        this_run = cut.begun()[seen:]
        assert not set(this_run) & set(told), f"a finished evaluation was repeated (seed {SEED})"
        summary = stored(cut)
        found = answers(summary)
        assert told.items() <= found.items(), f"an answer was lost or changed (seed {SEED})"
        assert len(found) > len(told)
        assert len(summary.open_asks) <= 1
        told, seen = found, len(cut.begun())
    final = stored(cut)

    assert len(cut.begun()) <= len(expected) + kills  # at most one more for each kill
    assert content(final) == expected
    asked = [e.data["ask"] for e in final.events if e.kind == "asked"]
    answered = [e.data["ask"] for e in final.events if e.kind == "told"]
    assert asked == answered == list(range(len(expected)))
    assert [e.kind for e in final.events].count("resumed") == kills


@pytest.mark.parametrize(
    ("method", "objectives"),
    [
        pytest.param("local", (), marks=pytest.mark.slow),
        pytest.param("evolution", (), marks=pytest.mark.slow),
        pytest.param("tree", (), marks=pytest.mark.slow),
        pytest.param("graph", (), marks=pytest.mark.slow),
        pytest.param("surrogate", (), marks=pytest.mark.slow),
        pytest.param("surrogate", ("accuracy", "latency_ratio"), marks=pytest.mark.slow),
    ],
)
def test_a_method_that_learns_proposes_the_same_after_ten_kills_at_random_moments(
    tmp_path, method, objectives
):
    kills = 10
    whole, cut = (
        Search(tmp_path / name, 15 + 3 * kills, method=method, objectives=objectives)
        for name in ("whole", "cut")
    )
    whole.finish()
    moments = random.Random(SEED)
    for _ in range(kills):
        cut.kill_after(moments.randint(2, 4), moments.uniform(0, 1.5 * SECONDS))
    cut.finish()
    assert content(stored(cut)) == content(stored(whole)), f"seed {SEED}"
