"""Attempts that are made again."""

from __future__ import annotations

import itertools

import pytest

from syno.runs import retry


class LostError(Exception):
    pass


@pytest.fixture
def clock(monkeypatch):
    """The moments of sleep; time passes in them alone."""
    slept = []
    monkeypatch.setattr(retry.time, "sleep", slept.append)
    monkeypatch.setattr(retry.time, "monotonic", lambda: sum(slept))
    return slept


def test_pauses_double_up_to_the_most():
    assert list(itertools.islice(retry.pauses(1.0, 6.0), 5)) == [1, 2, 4, 6, 6]
    assert next(retry.pauses(9.0, 6.0)) == 6


def test_a_call_is_repeated_until_it_succeeds(clock):
    answers = iter([LostError("away\nmore"), LostError("away"), 7])

    def call() -> int:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    notes = []
    assert retry.retried(call, notes.append, LostError) == 7
    assert clock == [0.5, 1.0]
    assert notes[0] == "away\n  it is tried again for up to 10 minutes"


def test_waiting_ends_and_other_errors_are_raised_at_once(clock):
    def lose() -> None:
        raise LostError("away")

    with pytest.raises(LostError):
        retry.retried(lose, lambda _: None, LostError)
    assert retry.MOST_WAIT_S <= sum(clock) < retry.MOST_WAIT_S + 10
    clock.clear()
    with pytest.raises(ZeroDivisionError):
        retry.retried(lambda: 1 // 0, lambda _: None, LostError)
    assert not clock
