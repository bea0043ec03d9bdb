"""choose_plan: what is timed is right, the fastest is taken, and the choice is kept."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from marks import slow_but
from syno import UserError
from syno.codegen import native
from syno.codegen.native import trial
from syno.measure import choose_plan, kernels, plans
from syno.operators import zoo

OPERATOR = zoo.load("conv2d")
SIZES = {"N": 1, "C_in": 16, "C_out": 16, "H": 10, "W": 10, "k": 3}


@pytest.fixture(scope="module")
def libraries(new_cache, tmp_path_factory):
    """A cache that the tests of this file share: compiling takes a second a plan."""
    return new_cache(tmp_path_factory.mktemp("plans") / "cache")


@pytest.fixture
def cache(libraries, monkeypatch):
    """The folder of choices, empty at first."""
    monkeypatch.setenv("SYNO_CACHE", str(libraries))
    folder = libraries / "plans"
    for file in folder.glob("*"):
        file.unlink()
    return folder


def timed_as(monkeypatch, *milliseconds):
    """Makes plan i take so many milliseconds, those of every round where it is a list."""

    def interleaved(calls, rounds):
        found = []
        for which, call in enumerate(calls):
            call()
            own = milliseconds[which] if which < len(milliseconds) else 0.1
            values = own if isinstance(own, list) else [own]
            found.append([1e-3 * values[i % len(values)] for i in range(rounds)])
        return found

    monkeypatch.setattr(plans, "interleaved", interleaved)


@pytest.mark.parametrize("emitter", plans.EMITTERS)
def test_the_chosen_plan_computes_the_operator(emitter, cache):
    choice = choose_plan(OPERATOR, SIZES, emitter=emitter, limit=3, rounds=20)
    assert [time.number for time in choice.times] == [1, 2, 3]
    assert choice.times[0].speedup == 1
    assert choice.speedup >= 1
    assert all(time.outputs >= 1600 and time.best_ms > 0 for time in choice.times)
    costs = OPERATOR.plans(SIZES, 3)
    assert [t.macs for t in choice.times] == [plan.macs for plan in costs]
    assert [t.bytes_moved for t in choice.times] == [plan.bytes_moved for plan in costs]
    random = np.random.default_rng(0)
    x, w = random.integers(-3, 4, (1, 16, 10, 10)), random.integers(-3, 4, (16, 16, 3, 3))
    for number in (choice.number, 3):
        if emitter == "cpp":
            function = native.compile_operator(OPERATOR, SIZES, plan=number)
            function.pack([w])
            found = function(x)
        else:
            kernel = OPERATOR.kernel_pack(SIZES, plan=number).kernel.double()
            kernel.w0.data = torch.from_numpy(w.astype(float))
            found = kernel(torch.from_numpy(x.astype(float))).detach().numpy()
        assert np.array_equal(found, OPERATOR.interpret(SIZES, x, [w]))


def test_the_fastest_is_chosen_where_it_is_clearly_faster(cache, monkeypatch):
    for milliseconds, number in (
        ((2.0, 3.0, 1.0), 3),
        ((2.0, 1.5, 1.6), 2),
        ((1.0, 0.98, 3.0), 1),  # less than 3 percent
        ((1.0, [1.1, 0.9, 0.9], 3.0), 2),
        ((1.0, [0.99, 1.2, 1.2], 3.0), 1),  # one good round is luck
        (([1.0, 0.5, 1.0], [0.8, 0.8, 0.8], 3.0), 1),  # and so may be most of them
    ):
        timed_as(monkeypatch, *milliseconds)
        choice = choose_plan(OPERATOR, SIZES, limit=3, again=True)
        assert choice.number == number, milliseconds
        known = choose_plan(OPERATOR, SIZES, limit=3)
        assert (known.number, known.from_cache) == (number, True)


def test_a_plan_without_a_chance_is_not_timed_further(cache, monkeypatch):
    timed_as(monkeypatch, 1.0, 30.0, 1.1)
    choice = choose_plan(OPERATOR, SIZES, limit=3, rounds=30)
    assert [time.rounds for time in choice.times] == [30, plans.WARM_UP, 30]
    assert choice.times[1].speedup == pytest.approx(1 / 30)
    # Long ones get fewer rounds, but a fifth.
    timed_as(monkeypatch, 900.0, 900.0, 900.0)
    assert choose_plan(OPERATOR, SIZES, limit=3, rounds=30, again=True).times[0].rounds == 6


@pytest.mark.slow
def test_plans_with_the_same_code_are_timed_once(cache):
    operator = zoo.load("operator-2")
    sizes = kernels.sizes(operator, 64, 7, 1)
    choice = choose_plan(operator, sizes, limit=4, rounds=20)
    hashes = [time.source_hash for time in choice.times]
    assert len(set(hashes)) < 4
    for time in choice.times:
        first = hashes.index(time.source_hash) + 1
        assert time.same_as == (None if first == time.number else first)
        assert time.median_ms == choice.times[first - 1].median_ms
    assert choice.times[choice.number - 1].same_as is None


def test_wrong_code_is_refused_and_not_kept(cache, monkeypatch):
    right = plans._source
    monkeypatch.setattr(
        plans, "_source", lambda *given: right(*given).replace("padding=(1, 1)", "padding=(2, 0)")
    )
    with pytest.raises(UserError, match="the code of plan 1 is wrong: y"):
        choose_plan(OPERATOR, SIZES, emitter="pytorch", limit=2)
    assert not list(cache.glob("*"))


# As the process of `trial`, with workspaces that are too small: the code writes behind them.
SMALL = r"""
import re
from syno import _core
from syno.codegen.native import trial

right = _core.emit_cpp

def small(*given, **named):
    source, manifest = right(*given, **named)
    pattern = r"(_workspace_size\(int threads\) \{ return )[^;]*;"
    source, count = re.subn(pattern, r"\g<1>0;", source)
    assert count == 1
    return source, manifest

_core.emit_cpp = small
trial.main()
"""


def test_code_that_touches_other_memory_is_refused_before_it_runs_here(cache, monkeypatch):
    operator, sizes = zoo.load("operator-1"), {"N": 1, "C_in": 64, "C_out": 64, "H": 14}
    sizes |= {"g": 32, "s": 2, "k": 3}
    trial.trial(operator, sizes, [1, 3], threads=2)
    run = subprocess.run

    def with_small(command, **given):
        return run(
            [*command[:1], "-c", SMALL] if "syno.codegen.native.trial" in command else command,
            **given,
        )

    monkeypatch.setattr(subprocess, "run", with_small)
    with pytest.raises(UserError, match=r"plan 1 accesses memory of others(?s:.*)2 threads"):
        trial.trial(operator, sizes, [1, 3], threads=2)
    with pytest.raises(UserError, match="plan 1 accesses memory of others"):
        choose_plan(operator, sizes, limit=2)
    assert not list(cache.glob("*"))


def test_the_choice_is_measured_once(cache, monkeypatch):
    first = choose_plan(OPERATOR, SIZES, limit=2, rounds=20)
    assert not first.from_cache
    monkeypatch.setattr(plans, "_measure", lambda *_: pytest.fail("measured again"))
    second = choose_plan(OPERATOR, SIZES, limit=2)
    assert second.from_cache
    assert (second.number, second.times, second.binding) == (
        first.number,
        first.times,
        first.binding,
    )
    assert second.control_spread == first.control_spread
    # A size that the binding leaves to the operator is the same size.
    assert choose_plan(OPERATOR, SIZES | {"N": 1}, limit=2).from_cache


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"binding": SIZES | {"C_out": 8}}, marks=pytest.mark.slow),
        pytest.param({"binding": SIZES | {"N": 2}}, marks=pytest.mark.slow),
        {"emitter": "pytorch"},
        {"limit": 3},
        pytest.param({"threads": 2}, marks=pytest.mark.slow),
        {"fold_weights": True},
        pytest.param({"again": True}, marks=pytest.mark.slow),
    ],
    ids=lambda change: "".join(change),
)
def test_what_decides_the_choice_is_in_its_key(change, cache, monkeypatch):
    given = {"binding": SIZES, "limit": 2}
    timed_as(monkeypatch, 1.0, 2.0)
    choose_plan(OPERATOR, **given)
    assert not choose_plan(OPERATOR, **(given | change)).from_cache


def test_another_compiler_or_machine_is_measured_anew(cache, monkeypatch):
    timed_as(monkeypatch, 1.0, 2.0)
    choose_plan(OPERATOR, SIZES, limit=2)
    choose_plan(OPERATOR, SIZES, emitter="pytorch", limit=2)
    monkeypatch.setattr(plans, "processor", lambda: "another")
    assert not choose_plan(OPERATOR, SIZES, limit=2).from_cache
    monkeypatch.undo()
    monkeypatch.setenv("SYNO_CACHE", str(cache.parent))
    timed_as(monkeypatch, 1.0, 2.0)
    monkeypatch.setattr(torch, "__version__", "9.9")
    assert not choose_plan(OPERATOR, SIZES, emitter="pytorch", limit=2).from_cache
    assert choose_plan(OPERATOR, SIZES, limit=2).from_cache


def _edited(held):
    held["choice"]["number"] = 2
    return json.dumps(held)


def _of_an_older_version(held):
    del held["choice"]["control_spread"]
    held["sum"] = plans._sum(held["choice"])
    return json.dumps(held)


def _without_a_time(held):
    del held["choice"]["times"][1]
    held["sum"] = plans._sum(held["choice"])
    return json.dumps(held)


DAMAGES = (
    _edited,
    _of_an_older_version,
    lambda held: json.dumps(held)[:-20],
    lambda held: "",
    lambda held: "{}",
    lambda held: "[1, 2]",
    lambda held: "nan",
    lambda held: json.dumps({"choice": 3, "sum": "x"}),
    lambda held: "\x00\xff",
    _without_a_time,
)


@pytest.mark.parametrize("damage", slow_but(DAMAGES, *DAMAGES[:3]))
def test_a_damaged_or_old_entry_is_measured_again(damage, cache, monkeypatch):
    timed_as(monkeypatch, 1.0, 2.0)
    first = choose_plan(OPERATOR, SIZES, limit=2)
    (path,) = cache.glob("*.json")
    path.write_text(damage(json.loads(path.read_text())), encoding="latin-1")
    again = choose_plan(OPERATOR, SIZES, limit=2)
    assert (again.from_cache, again.number) == (False, first.number)
    assert choose_plan(OPERATOR, SIZES, limit=2).from_cache
    assert [file.name for file in cache.iterdir()] == [path.name]


@pytest.mark.slow
def test_two_processes_at_once(cache):
    program = textwrap.dedent(f"""
        from syno.operators import zoo
        from syno.measure import choose_plan
        found = choose_plan(zoo.load("conv2d"), {SIZES}, limit=2, rounds=20)
        assert len(found.times) == 2
        """)
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [process.wait(120) for process in running] == [0, 0]
    assert choose_plan(OPERATOR, SIZES, limit=2).from_cache
    assert len(list(cache.iterdir())) == 1


def test_mistakes_are_named(cache, tmp_path, monkeypatch):
    for given, message in (
        ({"emitter": "tvm"}, "plans cannot be timed with the emitter 'tvm'\n  expected: cpp or"),
        ({"limit": 0}, r"'limit' is an integer of at least 1, got 0"),
        ({"limit": 1001}, r"'limit' is an integer of at most 1000, got 1001"),
        ({"limit": True}, r"'limit' is an integer of at least 1, got True"),
        ({"threads": 0}, "'threads' is an integer of at least 1, got 0"),
        ({"rounds": 19}, "'rounds' is an integer of at least 20, got 19"),
    ):
        with pytest.raises(UserError, match=message):
            choose_plan(OPERATOR, SIZES, **given)
    with pytest.raises(UserError, match="the binding gives no value to C_out"):
        choose_plan(OPERATOR, {"N": 1, "C_in": 4, "H": 3, "W": 3, "k": 3})
    timed_as(monkeypatch, 1.0, 2.0)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"cannot write the choice of a plan(?s:.*)SYNO_CACHE"):
        choose_plan(OPERATOR, SIZES, emitter="pytorch", limit=2)


def test_macs_on_zero_padding_are_out_of_bounds():
    plan = OPERATOR.numbered_plan(SIZES)
    assert plan.macs == 16 * 16 * (3 * 10) ** 2
    assert plan.macs_in_bounds == 16 * 16 * (3 * 10 - 2) ** 2


def test_a_plan_has_a_number_everywhere(cache):
    second = OPERATOR.plans(SIZES, 2)[1]
    assert OPERATOR.numbered_plan(SIZES, 2).text == second.text
    assert OPERATOR.numbered_plan(SIZES).text == OPERATOR.plan(SIZES)
    assert OPERATOR.source(SIZES, plan=2) != OPERATOR.source(SIZES)
    assert native.compile_operator(OPERATOR, SIZES, plan=2).source != (
        native.compile_operator(OPERATOR, SIZES).source
    )
    pack = OPERATOR.kernel_pack(SIZES, plan=2)
    again = pickle.loads(pickle.dumps(pack))
    assert (again.plan, again.source_hash) == (2, pack.source_hash)
    x = torch.randn(2, 16, 10, 10)
    assert torch.equal(again(x), pack(x))
    count = len(OPERATOR.plans(SIZES, 1000))
    for number, message in (
        (count + 1, rf"there is no plan {count + 1} of .*expected: a number in 1\.\.{count} "),
        (0, r"the number of a plan is an integer of at least 1, got 0"),
        (True, "the number of a plan is an integer"),
        ("2", "the number of a plan is an integer"),
    ):
        with pytest.raises(UserError, match=f"(?s){message}"):
            OPERATOR.numbered_plan(SIZES, number)
        with pytest.raises(UserError, match=f"(?s){message}"):
            native.compile_operator(OPERATOR, SIZES, plan=number)


def test_kernels_are_timed_with_the_chosen_plan_beside_the_cheapest(cache, monkeypatch):
    chosen = {"cpp": 3, "pytorch": 1}

    def choose(operator, binding, *, emitter, **_):
        return plans.PlanChoice(chosen[emitter], (), emitter, binding, 1, False, 0.0, False)

    monkeypatch.setattr(kernels, "choose_plan", choose)
    run = kernels.bench_kernels(
        {"conv2d": OPERATOR},
        bindings={"16@10": {"conv2d": SIZES}},
        threads=1,
        rounds=20,
        torch_forms=["eager"],
        measured_plans=3,
    )
    found = {choice.kernel: choice for choice in run.chosen}
    assert {name: choice.number for name, choice in found.items()} == {
        "conv2d cpp": 3,
        "conv2d eager": 1,
    }
    times = {time.kernel: time for time in run.times}
    assert set(times) == {"conv2d cpp", "conv2d eager", "conv2d cpp measured"}
    assert times["conv2d cpp measured"].macs == OPERATOR.plans(SIZES, 3)[2].macs
    assert found["conv2d eager"].speedup == 1
    ratio = times["conv2d cpp"].best_ms / times["conv2d cpp measured"].best_ms
    assert found["conv2d cpp"].speedup == pytest.approx(ratio, rel=0.5)
    assert run.plan_speedup("conv2d cpp") == pytest.approx(found["conv2d cpp"].speedup)
    assert run.plan_speedup() == pytest.approx(found["conv2d cpp"].speedup ** 0.5)
