"""Integer programs over candidates, against every assignment there is."""

import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import milp

import syno
from syno.network.choice import Choices


def random_choices(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, size=rng.integers(1, 5))
    scores = [rng.normal(size=n).round(3).tolist() for n in counts]
    costs = {
        "latency": [rng.uniform(0, 2, n).round(3).tolist() for n in counts],
        "params": [(rng.uniform(0, 3, n) * 1e6).round().tolist() for n in counts],
    }
    if seed % 2:
        return Choices(scores, costs)
    pairs = [each for each in itertools.combinations(range(len(counts)), 2) if rng.random() < 0.6]

    def together(low, high):
        return {
            (s, t): rng.uniform(low, high, (counts[s], counts[t])).round(3).tolist()
            for s, t in pairs
            if rng.random() < 0.7
        }

    shared = {"latency": together(-0.5, 0.5), "params": together(-1e6, 1e6)}
    exclusive = [each for each in pairs if rng.random() < 0.5]
    return Choices(scores, costs, together(-1, 1), shared=shared, exclusive=exclusive)


def everything(choices):
    return [
        choices.assignment(choice)
        for choice in itertools.product(*(range(n) for n in choices.counts))
        if all(choice[s] == 0 or choice[t] == 0 for s, t in choices.exclusive)
    ]


def test_costs_of_pairs_are_added():
    own = {"latency": [[2.0, 1.0], [3.0, 1.0]]}
    shared = {"latency": {(0, 1): [[0.0, 0.0], [0.0, 0.75]]}}
    choices = Choices([[0.0, 1.0], [0.0, 1.0]], own, shared=shared)
    assert choices.assignment((1, 1)).costs == {"latency": 2.75}
    assert choices.best({"latency": 2.8}).choice == (1, 1)
    with pytest.raises(syno.UserError, match=r"at least 2\.75"):
        choices.best({"latency": 2.5})


def test_slots_that_exclude_each_other():
    choices = Choices([[2.0, 0.0], [2.2, 0.5, 0.0]], {}, exclusive=[(0, 1)])
    assert choices.best({}).choice == (0, 2)
    assert choices.best({}, other_than=[(0, 2)]).choice == (1, 0)


@pytest.mark.parametrize("seed", range(60))
def test_the_best_is_the_best_of_all(seed):
    choices = random_choices(seed)
    found = everything(choices)
    limits = {
        "latency": float(np.quantile([one.costs["latency"] for one in found], 0.4)),
        "params": float(np.quantile([one.costs["params"] for one in found], 0.6)),
    }
    inside = [one for one in found if all(one.costs[k] <= v for k, v in limits.items())]
    if not inside:
        with pytest.raises(syno.UserError, match=r"keeps all limits together|no assignment has"):
            choices.best(limits)
        return
    expected = sorted(one.score for one in inside)
    several = choices.several(limits, 4)
    assert [one.score for one in several] == pytest.approx(expected[:4])
    assert len({one.choice for one in several}) == len(several) == min(4, len(inside))
    assert all(one in inside for one in several)


@pytest.mark.parametrize("seed", range(10))
def test_the_front_goes_from_the_best_to_the_cheapest(seed):
    choices = random_choices(seed)
    found = everything(choices)
    cheapest = choices.cheapest("latency")
    assert cheapest.costs["latency"] == pytest.approx(min(o.costs["latency"] for o in found))
    front = choices.front("latency", [0.0, cheapest.costs["latency"], 3.0, 1e9])
    assert front[0].score == pytest.approx(min(one.score for one in found))
    scores = [one.score for one in front]
    assert scores == sorted(scores)


def test_a_limit_that_nothing_keeps_says_what_is_nearest():
    choices = Choices([[0.0, 1.0], [0.0, 0.5]], {"latency": [[4.0, 2.0], [3.0, 1.5]]})
    with pytest.raises(syno.UserError, match=r"latency of at most 3\n.*at least 3.5"):
        choices.best({"latency": 3.0})
    assert choices.best({"latency": 3.5}).choice == (1, 1)


def test_bad_candidates_are_refused():
    with pytest.raises(syno.UserError, match="every slot needs at least one candidate"):
        Choices([], {})
    with pytest.raises(syno.UserError, match="every slot needs at least one candidate"):
        Choices([[1.0], []], {})
    with pytest.raises(syno.UserError, match=r"'latency' has \[1\] values for the slots"):
        Choices([[1.0, 2.0]], {"latency": [[1.0]]})
    with pytest.raises(syno.UserError, match="'scores' are finite numbers, got nan"):
        Choices([[float("nan")]], {})
    with pytest.raises(syno.UserError, match="costs 'latency' are not negative, got -1"):
        Choices([[1.0]], {"latency": [[-1.0]]})
    with pytest.raises(syno.UserError, match="there are no costs 'memory'"):
        Choices([[1.0], [1.0]], {}, shared={"memory": {(0, 1): [[1.0]]}})
    with pytest.raises(syno.UserError, match="costs 'm' of the slots 0 and 1 together are finite"):
        Choices([[1.0], [1.0]], {"m": [[1.0], [1.0]]}, shared={"m": {(0, 1): [[1.0, 2.0]]}})
    with pytest.raises(syno.UserError, match="there are no costs 'memory'"):
        Choices([[1.0]], {"latency": [[1.0]]}).best({"memory": 1.0})


def test_messages_of_the_solver_are_no_part_of_the_output(monkeypatch, capfd):
    def talking(*args, **options):
        os.write(1, b"from compiled code\n")
        return milp(*args, **options)

    monkeypatch.setattr(scipy.optimize, "milp", talking)
    found = Choices([[0.0, 1.0]], {"ms": [[2.0, 1.0]]}).best({"ms": 1.0})
    print("the result")
    assert found.choice == (1,)
    assert capfd.readouterr() == ("the result\n", "from compiled code\n")


def test_two_threads_that_solve_leave_the_output_where_it_is(capfd):
    choices = random_choices(2)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: choices.front("latency", [4.0, 8.0]), range(12)))
    print("the result")
    assert capfd.readouterr().out == "the result\n"


def test_a_program_without_standard_output_solves():
    code = (
        "import os, sys; os.close(1)\n"
        "from syno.network.choice import Choices\n"
        "sys.exit(Choices([[0.0, 1.0]], {'ms': [[2.0, 1.0]]}).best({'ms': 1.0}).choice != (1,))"
    )
    ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
