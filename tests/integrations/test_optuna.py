"""A study of Optuna whose operators are selected by a search method of Syno."""

from __future__ import annotations

import threading

import pytest

from study.fakes import RealSpace
from syno._util.errors import UserError

optuna = pytest.importorskip("optuna", reason="Optuna is not installed")
optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(scope="module")
def operators():
    return RealSpace().operators


def value_of(operator) -> float:
    counts = operator.primitives()
    return counts.get("unfold", 0) + counts.get("contract", 0) / 3


def made(operators, **options):
    from syno.integrations.optuna import OperatorSampler

    return OperatorSampler(operators, **{"method": "graph:samples=5", "seed": 3, **options})


@pytest.mark.parametrize("method", ["uniform", "local", "evolution", "tree", "graph"])
def test_a_study_evaluates_distinct_operators_and_repeats_itself(operators, method):
    runs = []
    for _ in range(2):
        sampler = made(operators, method=method)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        keys = []

        def objective(trial, sampler=sampler, keys=keys):
            operator = sampler.suggest(trial)
            rate = trial.suggest_float("rate", 0.1, 1.0, log=True)
            keys.append(operator.key)
            return value_of(operator) + rate * 0

        study.optimize(objective, n_trials=20)
        assert len(set(keys)) == 20
        runs.append(keys)
    assert runs[0] == runs[1]


def test_a_study_that_is_loaded_again_continues(operators, tmp_path):
    def proposals(parts):
        storage = optuna.storages.InMemoryStorage()
        keys = []
        for n_trials in parts:
            sampler = made(operators)
            study = optuna.create_study(
                study_name="s",
                storage=storage,
                direction="minimize",
                sampler=sampler,
                load_if_exists=True,
            )

            def objective(trial, sampler=sampler):
                keys.append(sampler.suggest(trial).key)
                if len(keys) == 4:
                    raise ValueError("a training that diverges")
                return value_of(sampler.suggest(trial))

            study.optimize(objective, n_trials=n_trials, catch=ValueError)
        return keys

    assert proposals([20]) == proposals([3, 10, 7])


def test_several_objectives_lead_to_the_front(operators):
    sampler = made(operators, method="local:samples=5")
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)

    def objective(trial):
        operator = sampler.suggest(trial)
        return value_of(operator), float(operator.macs())

    study.optimize(objective, n_trials=25)
    assert len({t.params["syno_operator"] for t in study.trials}) == 25
    assert study.best_trials


def test_threads_get_distinct_operators(operators):
    sampler = made(operators)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    lock, keys = threading.Lock(), []

    def objective(trial):
        operator = sampler.suggest(trial)
        with lock:
            keys.append(operator.key)
        return value_of(operator)

    study.optimize(objective, n_trials=24, n_jobs=4)
    assert len(keys) == len(set(keys)) == 24


def test_a_study_ends_with_its_space(operators):
    sampler = made(operators[:6])
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: value_of(sampler.suggest(trial)), n_trials=50)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 6 + ["PRUNED"]
    with pytest.raises(optuna.TrialPruned, match="every operator"):
        sampler.suggest(study.ask())


def test_mistakes_are_named(operators):
    with pytest.raises(UserError, match="no search method"):
        made(operators, method="annealing")
    with pytest.raises(UserError, match="no operator"):
        made([])
    study = optuna.create_study()
    with pytest.raises(UserError, match="another sampler"):
        made(operators).suggest(study.ask())
