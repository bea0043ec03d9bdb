"""Replays: simulated workers, and the figures of methods on tables with known scores."""

import math
import statistics
from dataclasses import replace

import pytest

import syno
from syno.store.records import OK
from syno_lab.benchmark import (
    MethodSpec,
    Quartiles,
    compare,
    compare_methods,
    replay,
    replay_all,
    score,
)
from syno_lab.benchmark.problem import regret_curve, trials_to

from . import made

UNIFORM = MethodSpec("uniform")


class Recorder:
    """Proposes the operators of a table in their order, and keeps the histories that it saw."""

    def __init__(self, table, limit=None):
        self.histories = []
        self._operators = table.operators[:limit]

    def propose(self, history):
        self.histories.append(history)
        number = len(history.entries)
        return self._operators[number] if number < len(self._operators) else None


def recorded(table, **options):
    method = Recorder(table, options.pop("limit", None))
    run = replay(table, lambda _table, _seed: method, seed=0, **options)
    return method, run


def test_one_worker_sees_every_result_before_the_next_proposal():
    table = made.table()
    method, run = recorded(table, trials=30)
    assert [h.ask for h in method.histories] == list(range(1, 31))
    for number, history in enumerate(method.histories):
        assert [e.status for e in history.entries] == [OK] * number
        assert [e.key for e in history.entries] == table.keys[:number]
        for entry in history.entries:
            assert entry.value == entry.last.accuracy == table.trial(entry.key, 0).accuracy
            assert syno.Operator.from_text(entry.text, table.specification).key == entry.key
    assert [step.key for step in run.steps] == table.keys[:30]
    assert not run.is_exhausted


def test_parallel_workers_see_pending_operators_and_results_in_the_order_of_time():
    table = made.table()
    method, run = recorded(table, trials=40, workers=4)
    pending = [sum(e.status is None for e in h.entries) for h in method.histories]
    assert pending[:4] == [0, 1, 2, 3]
    assert set(pending[4:]) == {3}
    for history in method.histories:
        assert all(
            (e.value is None) == (e.status is None) == (not e.trials) for e in history.entries
        )
        assert [e.ask for e in history.entries] == list(range(1, history.ask))
    ends = [step.ended_s for step in run.steps]
    assert ends == sorted(ends)
    assert sorted(step.ask for step in run.steps) == list(range(1, 41))
    assert [step.ask for step in run.steps] != list(range(1, 41))
    # Four workers are busy for all of the time but at the end.
    busy = sum(table.trial(step.key, step.seed).seconds for step in run.steps)
    assert busy / 4 <= ends[-1] <= busy / 4 + 5.0


def test_a_method_without_proposals_ends_the_run():
    _, run = recorded(made.table(), trials=50, workers=3, limit=7)
    assert len(run.steps) == 7
    assert run.is_exhausted


def test_a_method_that_waits_for_results_is_asked_again():
    table = made.table()

    class Waits(Recorder):
        def propose(self, history):
            found = super().propose(history)
            return None if any(e.status is None for e in history.entries) else found

    method = Waits(table, 5)
    run = replay(table, lambda _table, _seed: method, seed=0, trials=9, workers=2)
    assert len(run.steps) == 5
    assert run.is_exhausted


def test_a_repeated_operator_gets_its_other_seeds():
    table = made.table(seeds=3, noise=0.05)

    class Stubborn(Recorder):
        def propose(self, history):
            return table.operators[0]

    run = replay(table, lambda t, _seed: Stubborn(t), seed=4, trials=6)
    assert sorted(step.seed for step in run.steps[:3]) == [0, 1, 2]
    assert [s.seed for s in run.steps[3:]] == [s.seed for s in run.steps[:3]]
    assert len({step.value for step in run.steps}) == 3
    assert {step.score for step in run.steps} == {table.scores[table.keys[0]]}


def test_an_operator_outside_of_the_table_is_refused():
    whole, part = made.table(), made.table(trained=10)
    outside = next(o for o in whole.operators if o.key not in part.keys)

    class Stranger(Recorder):
        def propose(self, history):
            return outside

    with pytest.raises(syno.UserError, match="has no result of an operator"):
        replay(part, lambda t, _seed: Stranger(t), seed=0, trials=1)


def test_equal_seeds_give_equal_runs_in_any_number_of_processes(tmp_path):
    table = made.table(seeds=2, noise=0.01)
    methods = [UNIFORM, MethodSpec("diverse", {"window": 0.2})]
    options = {"seeds": 3, "trials": 12, "workers": 2}
    one = replay_all(table, methods, **options)
    two = replay_all(table, methods, jobs=2, **options)
    assert one == two
    assert list(one) == ["uniform", "diverse:window=0.2"]
    assert [run.seed for run in one["uniform"]] == [0, 1, 2]
    assert len({run.steps for run in one["uniform"]}) == 3


@pytest.mark.parametrize("seeds", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_uniform_sampling_reaches_the_best_as_the_hypergeometric_distribution_says(seeds):
    table = made.table()
    count, good = len(table.keys), len(table.best(0.05))
    runs = replay_all(table, [UNIFORM], seeds=seeds, trials=count)["uniform"]
    found = [trials_to(run.steps, frozenset(table.best(0.05))) for run in runs]
    expected = (count + 1) / (good + 1)
    deviation = statistics.stdev(found) / math.sqrt(len(found))
    assert abs(statistics.fmean(found) - expected) < 4 * deviation


def test_regret_is_that_of_the_operator_with_the_best_result():
    table = made.table()
    _, run = recorded(table, trials=60)
    best = max(table.scores.values())
    curve = regret_curve(run.steps, best)
    scores = [table.scores[key] for key in table.keys[:60]]
    assert curve == [best - max(scores[: n + 1]) for n in range(60)]
    assert curve == sorted(curve, reverse=True)


def test_noise_can_mislead_a_search_and_a_failure_has_no_value():
    table = made.table(seeds=2, noise=0.3)
    _, run = recorded(table, trials=len(table.keys))
    chosen = max(run.steps, key=lambda step: step.value)
    assert regret_curve(run.steps, max(table.scores.values()))[-1] == pytest.approx(
        max(table.scores.values()) - chosen.score
    )
    assert chosen.value != chosen.score
    failed = made.table()
    lost = {"accuracy": None, "status": "error", "reason": "no memory"}
    failed.results = [replace(result, **lost) for result in failed.results]
    _, run = recorded(failed, trials=3)
    assert [step.value for step in run.steps] == [None] * 3
    assert regret_curve(run.steps, 0.5) == [math.inf] * 3


def test_figures_count_runs_that_never_reached_the_best():
    table = made.table()
    runs = replay_all(table, [UNIFORM], seeds=20, trials=10)["uniform"]
    found = score(table, "uniform", runs, trials=10, shares=(0.01,), regret_trials=(5, 10, 50))
    (reach,) = found.reach
    assert reach.missed == sum(math.isinf(n) for n in reach.trials) > 0
    assert list(found.regret) == [5, 10]
    assert all(a >= b for a, b in zip(found.regret[5], found.regret[10], strict=True))
    assert len(found.anytime) == 10
    assert found.hours > 0


def test_quartiles_allow_runs_that_never_ended():
    assert Quartiles.of([3, 1, 2, math.inf, math.inf]) == Quartiles(2, 3, math.inf)


def test_a_better_method_is_told_from_uniform_sampling():
    table = made.table()

    class Greedy(Recorder):
        def __init__(self, table, seed):
            super().__init__(table)
            order = [*table.ranking[20 + seed :], *table.ranking[: 20 + seed]]
            by_key = {o.key: o for o in table.operators}
            self._operators = [by_key[key] for key in order[::-1]]

    count = len(table.keys)
    runs = replay_all(table, [UNIFORM], seeds=30, trials=count)["uniform"]
    worse = [replay(table, Greedy, seed=s, trials=count, label="worst") for s in range(30)]
    scores = [score(table, name, r, trials=count) for name, r in (("u", runs), ("w", worse))]
    best, *_ = compare(*scores, count)
    assert (best.first, best.second) == ("u", "w")
    assert best.wilcoxon < 0.01
    assert best.mann_whitney < 0.01
    same, *_ = compare(scores[0], scores[0], count)
    assert (same.ratio, same.wilcoxon, same.mann_whitney) == (1.0, 1.0, 1.0)


def test_methods_are_named_with_options_and_labels():
    parse = MethodSpec.parse
    assert parse("uniform") == UNIFORM
    found = parse("mine@diverse:window=0.25,pool=50,x=true,y=some")
    assert found.title == "mine"
    assert found.name == "diverse"
    assert found.options == {"window": 0.25, "pool": 50, "x": True, "y": "some"}
    assert parse("diverse:window=0.25").title == "diverse:window=0.25"
    for text in ("", "uniform:", "uniform:x", "@uniform", ":x=1"):
        with pytest.raises(syno.UserError, match="method"):
            parse(text)


def test_mistakes_are_reported_before_any_run():
    with pytest.raises(syno.UserError, match="has no results yet"):
        compare_methods(made.table(trained=0), [UNIFORM], seeds=2)
    table = made.table()
    for methods, words in (
        ([], "no method"),
        ([UNIFORM, UNIFORM], "given twice"),
        ([MethodSpec("nothing")], "no search method 'nothing'"),
        ([MethodSpec("uniform", {"x": 1})], "no such option"),
    ):
        with pytest.raises(syno.UserError, match=words):
            compare_methods(table, methods, seeds=2)
