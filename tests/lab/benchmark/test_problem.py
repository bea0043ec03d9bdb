"""Replays with several objectives, and the oracle."""

import math
from dataclasses import replace

import pytest

import syno
from syno.store.hypervolume import hypervolume
from syno_lab.benchmark import Latency, MethodSpec, Problem, compare_methods, replay_all, score
from syno_lab.benchmark.tables import comparisons_table, scores_table

from . import made

ORACLE = MethodSpec("oracle")


def table(**options):
    return made.with_original(made.table(**options))


def repeated(table):
    """With operators that count as a sample with two seeds."""
    return replace(table, configuration=made.configuration(repeated=100))


def test_the_volume_of_the_whole_table_is_reached_when_everything_is_evaluated():
    problem = Problem.of(table(trained=150, seeds=2, noise=0.05), ["accuracy", "macs"])
    count = len(problem.table.keys)
    runs = replay_all(problem, [MethodSpec("uniform")], seeds=2, trials=count)["uniform"]
    for run in runs:
        curve = problem.regret(run.steps)
        assert 0 <= curve[-1] < 0.1  # the archive is that of noisy results
        assert curve[0] > curve[-1]
    exact = Problem.of(table(trained=150), ["accuracy", "macs"])
    run = replay_all(exact, [MethodSpec("uniform")], seeds=1, trials=count)["uniform"][0]
    curve = exact.regret(run.steps)
    assert curve == sorted(curve, reverse=True)
    assert curve[-1] == pytest.approx(0, abs=1e-12)
    seen = [exact.table.mean_trial(step.key) for step in run.steps[:20]]
    points = [(t.accuracy / 0.5, 1 - t.macs / exact.table.baseline_macs) for t in seen]
    every = [exact.table.mean_trial(key) for key in exact.table.keys]
    whole = [(t.accuracy / 0.5, 1 - t.macs / exact.table.baseline_macs) for t in every]
    missing = 1 - hypervolume(points, (0, 0)) / hypervolume(whole, (0, 0))
    assert curve[19] == pytest.approx(missing)
    assert exact.reach(run.steps, curve, 0.9) == 1 + sum(each > 0.1 for each in curve)
    assert exact.reach(run.steps[:2], curve[:2], 0.999999) == math.inf


def test_methods_see_the_objectives_and_ranks_by_all_of_them():
    problem = Problem.of(table(), ["accuracy", "macs"])
    seen = []

    class Recorder(MethodSpec):
        def make(self, problem, seed):
            inner = super().make(problem, seed)

            class Watched:
                def propose(self, history):
                    seen.append(history)
                    return inner.propose(history)

            return Watched()

    replay_all(problem, [Recorder("uniform")], seeds=1, trials=15, workers=3)
    last = seen[-1]
    assert [str(t) for t in last.objectives.all] == ["accuracy:max", "macs:min"]
    assert last.baseline[0].macs == problem.table.baseline_macs
    done = [e for e in last.entries if e.status]
    assert all(e.told is not None and e.told >= e.ask for e in done)
    expected = problem.ratings({e.ask: e.last for e in done})
    assert {e.ask: e.value for e in done} == expected
    assert max(expected.values()) > 0.5


def test_the_surrogate_finds_more_of_the_front_than_sampling():
    found = compare_methods(
        table(),
        [MethodSpec("uniform"), MethodSpec("surrogate")],
        seeds=4,
        trials=30,
        objectives=["accuracy", "macs"],
    )
    uniform, surrogate = (each.anytime[-1].median for each in found.scores)
    assert surrogate < uniform
    described = found.described()
    assert described["objectives"] == ["accuracy:max", "macs:min"]
    assert described["methods"][0]["reach"][0]["operators"] is None
    assert "trials to 90% of the hypervolume" in scores_table(found).names()


def test_a_latency_must_have_been_measured_and_a_memory_is_unknown():
    plain = table()
    with pytest.raises(syno.UserError, match="has no latencies"):
        Problem.of(plain, ["accuracy", "latency_ratio"])
    with pytest.raises(syno.UserError, match="holds no memory"):
        Problem.of(plain, ["accuracy", "memory"])
    plain.latencies += [Latency(n, 2.0 + n / 100, 0.5 + n / 400) for n in range(30)]
    problem = Problem.of(plain, ["accuracy", "latency_ratio"], ["latency_ratio<=0.55"])
    assert len(problem.table.keys) == 30
    assert problem.table.original.latency_ms == pytest.approx(4.0, rel=0.01)
    run = replay_all(problem, [MethodSpec("uniform")], seeds=1, trials=30)["uniform"][0]
    assert problem.regret(run.steps)[-1] == pytest.approx(0, abs=1e-12)


def test_operators_that_break_a_bound_on_macs_are_not_offered():
    whole = table(trained=150)
    macs = [row.macs for row in whole.rows[:150]]
    bound = sorted(macs)[50]
    problem = Problem.of(whole, ["accuracy"], [f"macs<={bound}"])
    assert len(problem.table.keys) == sum(value <= bound for value in macs)
    run = replay_all(problem, [MethodSpec("uniform")], seeds=1, trials=500)["uniform"][0]
    assert len(run.steps) == len(problem.table.keys)
    assert problem.regret(run.steps)[-1] == pytest.approx(0)
    with pytest.raises(syno.UserError, match=r"none of .* satisfies the constraints macs<=1"):
        Problem.of(whole, ["accuracy"], ["macs<=1"])


def test_no_operator_better_than_the_original_in_a_cost_is_an_error():
    cheap = replace(table(), baseline_macs=1)
    problem = Problem.of(cheap, ["accuracy", "macs"])
    run = replay_all(problem, [MethodSpec("uniform")], seeds=1, trials=3)["uniform"][0]
    with pytest.raises(syno.UserError, match="improves on the original network"):
        problem.regret(run.steps)
    without = made.table()
    with pytest.raises(syno.UserError, match="no result of the original network"):
        Problem.of(without, ["accuracy", "macs"]).regret(run.steps)


def test_the_oracle_knows_the_order_but_for_the_noise_of_a_training():
    exact = made.table()
    (run,) = replay_all(exact, [MethodSpec("oracle", {"noise": 0.0})], seeds=1, trials=9)[
        "oracle:noise=0.0"
    ]
    assert [step.key for step in run.steps] == exact.ranking[:9]
    noisy = repeated(made.table(seeds=2, noise=0.05))
    runs = replay_all(noisy, [ORACLE, MethodSpec("uniform")], seeds=20, trials=50)
    oracle, uniform = (score(noisy, name, runs[name], trials=50) for name in runs)
    assert oracle.reach[0].quartiles.median < uniform.reach[0].quartiles.median
    assert len({run.steps[0].key for run in runs["oracle"]}) > 1
    assert (
        runs["oracle"] == replay_all(noisy, [MethodSpec("oracle")], seeds=20, trials=50)["oracle"]
    )
    with pytest.raises(syno.UserError, match="noise of table 'made' is not known"):
        replay_all(exact, [ORACLE], seeds=1, trials=3)
    with pytest.raises(syno.UserError, match="no such option"):
        replay_all(exact, [MethodSpec("oracle", {"x": 1})], seeds=1, trials=3)


def test_the_largest_operators_come_first():
    sizes = {row.key: row.macs for row in made.table().rows}
    runs = replay_all(made.table(), [MethodSpec("largest")], seeds=2, trials=30)["largest"]
    for run in runs:
        macs = [sizes[step.key] for step in run.steps]
        assert macs == sorted(sizes.values(), reverse=True)[:30]
    first, second = ([step.key for step in run.steps] for run in runs)
    assert first != second  # equal ones are in another order


def test_the_oracle_orders_by_fronts():
    problem = Problem.of(repeated(table(seeds=2, noise=0.01)), ["accuracy", "macs"])
    (run,) = replay_all(problem, [ORACLE], seeds=1, trials=25)["oracle"]
    (chance,) = replay_all(problem, [MethodSpec("uniform")], seeds=1, trials=25)["uniform"]
    assert problem.regret(run.steps)[-1] < problem.regret(chance.steps)[-1]


def test_methods_are_compared_with_the_references():
    found = compare_methods(
        repeated(made.table(seeds=2, noise=0.01)),
        [MethodSpec(name) for name in ("diverse", "uniform", "local", "oracle")],
        seeds=6,
        trials=60,
    )
    figures = {(c.figure, c.at) for c in found.comparisons}
    assert figures == {("reach", 0.01), ("reach", 0.002), ("regret", 50)}
    shown = comparisons_table(found)
    assert shown.names() == ["method", "figure", "/ uniform", "/ local"]
    assert len(shown.rows) == 4 * 3
    own = next(row for row in shown.rows if row[:2] == ("uniform", "best 1.0%"))
    assert own[2] == ""
    assert "(p " in own[3]
