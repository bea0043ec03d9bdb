"""The time of an adaptation: its division, what is left, and lengths that fit."""

from __future__ import annotations

import dataclasses
import math
import time

import pytest

from syno import UserError
from syno.adaptation.pipeline.budget import SHARES, Budget
from syno.adaptation.pipeline.journal import AdaptationJournal, open_journal
from syno.adaptation.pipeline.length import TrainingPace, _length
from syno.store import Store
from syno.train import fidelity

from .conftest import OPERATORS, adapted


@pytest.fixture
def store(tmp_path):
    with Store.open(str(tmp_path / "runs.db")) as opened:
        yield opened


def journal(store: Store) -> AdaptationJournal:
    with open_journal(store, "one", "one", {}, 0) as found:
        return found


def test_phases_share_what_is_left(store) -> None:
    budget = Budget(1.0, journal(store))
    assert sum(SHARES.values()) == pytest.approx(1.0)
    assert budget.left("candidates") == pytest.approx(3600 * SHARES["candidates"], rel=1e-3)
    assert budget.left("fine-tuning") == pytest.approx(3600, rel=1e-3)
    assert "1 h 00 min are left: candidates 10 min 48 s" in budget.forecast()


def test_a_phase_that_takes_long_takes_it_from_those_after_it(store) -> None:
    notes = journal(store)
    budget = Budget(1.0, notes)
    before = budget.left("scores")
    notes.seconds["candidates"] = 1500.0
    assert budget.left("candidates") == 0.0
    assert budget.left("scores") < before
    left = budget.left("fits") + 0.0
    # The fine-tuning keeps its reserve, whatever came before it.
    rest = 3600 * (1 - SHARES["fine-tuning"]) - 1500
    before = SHARES["fits"] + SHARES["scores"] + SHARES["choice"]
    assert left == pytest.approx(rest * SHARES["fits"] / before, rel=1e-3)
    assert budget.left("fine-tuning") == pytest.approx(2100, rel=1e-3)
    notes.seconds["candidates"] = 2500.0
    assert budget.left("fits") == budget.left("choice") == 0.0
    assert budget.left("fine-tuning") == pytest.approx(1100, rel=1e-3)
    notes.seconds["candidates"] = 9000.0
    assert budget.left("fine-tuning") == 0.0
    assert budget.until("fine-tuning")()
    notes.seconds |= {"candidates": 600.0, "scores": 600.0}
    words = budget.forecast()
    assert words.startswith("40 min 00 s are left: scores 4 min 48 s")
    assert words.endswith("fine-tuning 30 min 00 s")


def test_without_hours_there_is_no_limit(store) -> None:
    budget = Budget(None, journal(store))
    assert math.isinf(budget.left("fits")) and not budget.until("fits")()
    assert budget.forecast() == "" and not budget.limited


@pytest.mark.parametrize("hours", [0.0, -1.0, math.nan, math.inf])
def test_other_hours_are_an_error(store, hours) -> None:
    with pytest.raises(UserError, match="'hours' is a number above 0"):
        Budget(hours, journal(store))


def test_hours_are_kept_and_can_be_raised(store) -> None:
    Budget(0.5, journal(store))
    assert Budget(None, journal(store)).hours == 0.5
    Budget(2.0, journal(store))
    assert Budget(None, journal(store)).hours == 2.0


def test_time_of_a_process_that_was_killed_counts(store) -> None:
    notes = journal(store)
    phase = notes.phase("fits")
    phase.__enter__()
    time.sleep(0.05)
    notes.put("fits", "a", 1)
    notes._phase = None  # and then it is killed
    again = journal(store)
    assert again.spent("fits") >= 0.05
    with again.phase("fits"):
        assert again.spent("fits") >= 0.05


PACE = TrainingPace(step_s=0.1, steps=100, value_s=2.0, other_s=8.0)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (1000.0, {"epochs": 30}),
        (128.0, {"epochs": 10}),
        (20.0, {"epochs": 1}),
        (20.9, {"epochs": 1}),
        (26.0, {"epochs": 2, "images": 70 * 64}),
        (126.0, {"epochs": 9}),
        (127.0, {"epochs": 10, "images": 99 * 64}),
        (14.0, {"epochs": 1, "images": 40 * 64}),
        (0.0, {"epochs": 1, "images": 4 * 64}),
    ],
)
def test_a_training_is_as_long_as_there_is_time(seconds, expected) -> None:
    usual = fidelity("fast/adapt")
    found = _length(usual, {"epochs": 30}, PACE, seconds)
    assert found == expected
    if seconds > 10.0:
        assert PACE.seconds(usual.changed(**found)) <= seconds


def test_text_has_as_many_steps_as_there_is_time() -> None:
    usual = fidelity("fast/adapt-text")
    pace = dataclasses.replace(PACE, steps=25)
    for seconds in (30.0, 60.0):
        found = _length(usual, {"steps": 500}, pace, seconds)
        assert PACE.other_s < pace.seconds(usual.changed(**found)) <= seconds
    assert _length(usual, {"steps": 500}, pace, 0.0) == {"steps": 20}
    assert _length(usual, {"steps": 500}, pace, 1e6) == {"steps": 500}


def test_a_time_in_which_nothing_can_be_trained_is_refused_first(trained, data, tmp_path) -> None:
    given = {"hours": 1e-6, "progress": lambda phase, *_: phases.append(phase)}
    phases: list[str] = []
    with pytest.raises(UserError) as caught:
        adapted(trained, data, str(tmp_path / "runs.db"), macs=["0.8x", "0.6x"], **given)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(
        "'hours' is too short: 0.0 s, and the shortest fine-tuning of 2 netw"
    )
    assert "candidates" not in phases


def test_an_adaptation_keeps_its_time(trained, data, tmp_path) -> None:
    """Far too little time: everything shrinks, and a network for each goal still comes out."""
    told = []
    found = adapted(
        trained,
        data,
        str(tmp_path / "runs.db"),
        macs=["0.8x", "0.6x"],
        operators=OPERATORS,
        fidelity={"batch": 64},
        hours=6 / 3600,
        name="short",
        progress=lambda *each: told.append(each),
    )
    assert len(found.networks) == 2
    forecasts = [remark for phase, _, _, remark in told if phase == "forecast"]
    assert "are left: candidates" in forecasts[0]
    assert "fine-tuning: 2 trainings of" in forecasts[1]
    # What was decided is kept, and so are the hours.
    again = adapted(
        trained,
        data,
        str(tmp_path / "runs.db"),
        macs=["0.8x", "0.6x"],
        operators=OPERATORS,
        fidelity={"batch": 64},
        name="short",
    )
    assert again.rows == found.rows
    assert again.hours == found.hours == pytest.approx(6 / 3600)


@pytest.mark.slow
def test_an_adaptation_with_time_trains_longer(trained, data, tmp_path) -> None:
    told = []
    adapted(
        trained,
        data,
        str(tmp_path / "runs.db"),
        macs="0.6x",
        operators=OPERATORS,
        fidelity={"batch": 64},
        hours=1.0,
        progress=lambda *each: told.append(each),
    )
    (forecast,) = [r for p, _, _, r in told if p == "forecast" and r.startswith("fine-tuning")]
    assert "30 epochs" in forecast
