"""How values of objectives are compared and shown."""

from __future__ import annotations

import pytest

from syno.store import Outcome, Store
from syno.store.objective import ACCURACY, LOSS, named, objective_of

from .sample import ENVIRONMENT


def test_an_accuracy_is_a_share_that_is_raised():
    assert ACCURACY.score(0.9) > ACCURACY.score(0.8)
    assert (ACCURACY.title, ACCURACY.axis) == ("Accuracy", "validation accuracy")
    assert (ACCURACY.shown(0.9312), ACCURACY.shown(None)) == ("93.1 %", "–")
    assert (ACCURACY.beside(0.9), ACCURACY.in_words(0.9)) == ("", "90.0 %")
    assert ACCURACY.gap(0.9, 0.925) == "−2.5 points"
    assert (ACCURACY.spread(0.004), ACCURACY.spread(None)) == ("0.4 points", "")
    assert ACCURACY.least(0.9, 1.0) == pytest.approx(0.89)


def test_a_loss_has_a_unit_and_is_lowered():
    assert LOSS.score(1.8) > LOSS.score(1.9)
    assert LOSS.title == "Loss (nats a token)"
    assert LOSS.axis == "validation loss, nats a token"
    assert (LOSS.shown(1.8234), LOSS.shown(None)) == ("1.823", "–")
    assert (LOSS.beside(1.823), LOSS.beside(None)) == ("perplexity 6.19", "")
    assert LOSS.in_words(1.823) == "a loss of 1.823 (perplexity 6.19)"
    assert LOSS.gap(1.8, 1.85) == "−0.050 nats"
    assert LOSS.spread(0.01) == "0.010 nats"
    assert LOSS.least(1.8, 1.0) > 1.8


@pytest.mark.parametrize("objective", [ACCURACY, LOSS])
def test_an_objective_is_found_by_its_name(objective):
    assert named(objective.name) is objective


def test_the_recipe_of_a_study_says_what_it_is_judged_by():
    assert objective_of({"fidelity": {"recipe": {"task": "text"}}}) is LOSS
    assert objective_of({"fidelity": {"recipe": {"task": "images"}}}) is ACCURACY
    assert objective_of({}) is ACCURACY


@pytest.mark.parametrize("maximize", [True, False])
def test_a_trial_prints_the_name_of_a_custom_metric(tmp_path, maximize):
    with Store.open(str(tmp_path / "study.db")) as store:
        settings = {"metric": {"name": "dice", "maximize": maximize}}
        made = store.create_study("s", specification=("k", {}), settings=settings, seed=0)
        asked = store.ask(made, 1, ("text", "a" * 32), "worker")
        told = Outcome("ok", accuracy=0.25) if maximize else Outcome("ok", details={"loss": 0.25})
        store.tell(asked.id, told, ENVIRONMENT)
        (trial,) = store.summary(made).evaluations
        assert store.evaluations(made) == [trial]
    assert repr(trial) == "<trial 1: aaaaaaaa ok, dice 0.25>"
