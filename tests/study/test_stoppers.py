"""Stoppers combine, and the reason is data."""

from __future__ import annotations

from syno.report.gather import STOP_TEXTS
from syno.study import ErrorsInARow, Evaluations, NoProgress, Seconds, SpaceExhausted, Tally


def test_each_stopper_looks_at_its_own_limit():
    assert Evaluations(3).check(Tally(2, 9, 1e9)) is None
    assert Evaluations(3).check(Tally(3, 0, 0.0)).name == "evaluations"
    assert Seconds(60).check(Tally(99, 0, 59.9)) is None
    assert Seconds(60).check(Tally(0, 0, 60.0)).name == "seconds"
    assert ErrorsInARow(10).check(Tally(9, 0, 1.0, errors=9)) is None
    assert ErrorsInARow(10).check(Tally(10, 0, 1.0, errors=10)).name == "errors"
    assert NoProgress(5).check(Tally(9, 0, 1.0, stale=4)) is None
    assert NoProgress(5).check(Tally(9, 0, 1.0, stale=5)).name == "no_progress"
    assert NoProgress(5).check(Tally(9, 0, 1.0, stale=5, due=1)) is None
    assert SpaceExhausted().check(Tally(5, 1, 1.0)) is None
    assert SpaceExhausted().check(Tally(5, 1, 1.0, exhausted=True)).name == "exhausted"


def test_combined_stoppers_give_the_first_reason_in_order():
    both = Evaluations(3) | Seconds(60)
    assert both.check(Tally(2, 0, 59.0)) is None
    assert both.check(Tally(3, 0, 99.0)).name == "evaluations"
    assert (Seconds(60) | Evaluations(3)).check(Tally(3, 0, 99.0)).name == "seconds"
    three = both | SpaceExhausted()
    assert three.check(Tally(0, 0, 0.0, exhausted=True)).name == "exhausted"


def test_stoppers_that_must_agree_give_all_their_reasons():
    both = Evaluations(3) & NoProgress(2)
    assert both.check(Tally(9, 0, 1.0, stale=1)) is None
    assert both.check(Tally(2, 0, 1.0, stale=2)) is None
    found = both.check(Tally(4, 0, 1.0, stale=2))
    assert found.name == "no_progress"
    assert found.text == (
        "4 operators were evaluated, as requested, and the last 2 operators improved nothing"
    )
    mixed = both | Seconds(60)
    assert mixed.check(Tally(0, 0, 61.0)).name == "seconds"
    assert mixed.looks_at_progress
    assert not (Evaluations(3) | Seconds(60)).looks_at_progress


def test_reasons_are_told_in_a_sentence():
    assert Evaluations(3).check(Tally(3, 2, 1.0)).text == "3 operators were evaluated, as requested"
    assert Evaluations(1).check(Tally(1, 1, 1.0)).text == "1 operator was evaluated, as requested"
    assert Seconds(60).check(Tally(1, 0, 61.0)).text == "the time limit of 60 s is reached"
    assert "no operator was evaluated" in Seconds(60).check(Tally(0, 0, 61.0)).text
    assert NoProgress(5).check(Tally(9, 0, 1.0, stale=6)).text == (
        "the last 6 operators improved nothing"
    )
    exhausted = SpaceExhausted().check(Tally(3, 2, 1.0, exhausted=True))
    assert exhausted.text == "all 5 operators of the space were proposed"


def test_the_report_has_words_for_every_reason():
    spent = Tally(evaluated=3, rejected=0, seconds=9.0, exhausted=True, errors=3, stale=3)
    stoppers = (
        Evaluations(3),
        Seconds(9.0),
        SpaceExhausted(),
        ErrorsInARow(3),
        NoProgress(3),
    )
    reasons = {stopper.check(spent).name for stopper in stoppers}
    assert reasons | {"interrupted", "callback"} == set(STOP_TEXTS)
