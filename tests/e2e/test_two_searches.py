"""Two processes that go on with one study at once evaluate what one would, and no more."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from syno.store import Store
from syno.study.fidelity import asha
from syno.study.fidelity.asha import RungScore

from .killing import Search
from .test_kill import content

EVALUATIONS = 11


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    address = request.getfixturevalue("postgresql")
    with create_engine(address).begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    return address


def begin(search: Search) -> None:
    """The study with its baseline and a first operator; the rest is left to do."""
    search.kill_after(2, 0.0)


def stored(url: str):
    with Store.open(url, read_only=True) as store:
        return store.summary(), store.rung_results(store.study())


def test_two_that_resume_at_once_share_the_evaluations(tmp_path, url):
    whole = Search(tmp_path / "whole", EVALUATIONS, method="uniform")
    whole.finish()
    both = Search(tmp_path / "both", EVALUATIONS, method="uniform", url=url, seconds=0.1)
    begin(both)
    runs = [both.start(stdout=-1, text=True) for _ in range(2)]
    reasons = [run.communicate(timeout=120)[0].strip() for run in runs]
    assert reasons == ["evaluations", "evaluations"]
    assert [run.returncode for run in runs] == [0, 0]
    summary, _ = stored(url)
    assert sum(e.is_evaluated for e in summary.evaluations) == EVALUATIONS
    assert content(summary) == content(stored(str(whole.store))[0])
    assert len({line.split()[2] for line in both.lines("begin")[2:]}) == 2  # both did some


@pytest.mark.slow
def test_promotions_of_two_follow_from_the_results_that_were_stored_before(tmp_path, url):
    both = Search(tmp_path / "both", EVALUATIONS, ladder=True, url=url, seconds=0.05)
    begin(both)
    runs = [both.start(stdout=-1, text=True) for _ in range(2)]
    reasons = [run.communicate(timeout=120)[0].strip() for run in runs]
    assert reasons == ["evaluations", "evaluations"]
    assert [run.returncode for run in runs] == [0, 0]
    check_promotions(url)


def check_promotions(url: str) -> None:
    """Every promotion is what was due by the answers that stand before it in the log."""
    summary, results = stored(url)
    assert sum(e.is_evaluated for e in summary.evaluations if e.rung_index == 0) == EVALUATIONS
    assert summary.open_asks == ()
    told = {(r.ask, r.rung_index): r for r in results}
    assert len(told) == len(results)
    seen: list[RungScore] = []
    reached: dict[int, int] = {}
    for event in summary.events:
        ask, rung = event.data.get("ask"), event.data.get("rung", 0)
        if event.kind == "told":
            result = told[ask, rung]
            if result.kind == "operator" and result.is_evaluated:
                accuracy = result.accuracy if result.status == "ok" else None
                seen.append(RungScore(ask, rung, accuracy))
        elif event.kind == "promoted" and ask:
            assert (ask, rung) in [(p.ask, p.rung) for p in asha.due(seen, reached, 3, 2)][:1]
            reached[ask] = rung
