"""Rungs with real trainings on the digits: going on from checkpoints, widths, pixels, isolation."""

from __future__ import annotations

import dataclasses
import functools
import signal

import pytest

from syno import IsolationOptions, SpaceOptions, TimingOptions, TrainOptions
from syno._util.errors import UserError
from syno._util.torch_threads import torch_threads
from syno.data import load
from syno.network.sampler import Sampler
from syno.runs import processes
from syno.study import Ladder, Rung
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator
from syno.study.evaluate.network import Network
from syno.study.evaluate.rungs import (
    LadderEvaluator,
    datasets,
    evaluators,
    make_ladder_evaluator,
    networks,
)
from syno.study.members import SamplerSpace
from syno.study.search import resume, search
from syno.study.specifications import small_vision
from syno.train import Fidelity, recipe, train

STEADY = dataclasses.replace(recipe("fast/steady"), batch=32, crop=1, flip=False, ema=0.9)
MODEL = ("cnn-small", {"width": 4, "layers": 1, "stages": 2})


def rung(name: str, epochs: int, width: float = 1.0, how=STEADY, **amounts) -> Rung:
    content = {"images": 128, "resolution": 8} | amounts
    return Rung(Fidelity(name, epochs=epochs, recipe=how, **content), width)


LADDER = Ladder("l", (rung("a", 1), rung("b", 2), rung("c", 4)), 2)


@pytest.fixture(scope="module")
def network():
    return Network.named(*MODEL, load("digits", size=8), 0)


@pytest.fixture(scope="module")
def operator(network):
    specification = small_vision(max_macs=network.macs)
    sampler = Sampler.from_specification(specification, net=network.template, max_nodes=2000)
    return SamplerSpace(sampler).operators[5]


def ladder_evaluator(folder, ladder=LADDER, model=MODEL, deadline_s=None) -> LadderEvaluator:
    data = datasets(ladder, "digits", None)
    nets = networks(ladder, *model, data[-1], 0)
    timing = TimingOptions(repeats=20, warmup=1)
    each = evaluators(ladder, nets, data, seed=3, timing=timing, deadline_s=deadline_s)
    return LadderEvaluator(ladder, each, Checkpoints(folder))


def test_rungs_of_one_training_end_as_a_run_in_one_go_bit_for_bit(tmp_path, network, operator):
    evaluator = ladder_evaluator(tmp_path)
    outcomes = [evaluator.evaluate(operator, index) for index in range(3)]
    assert [o.status for o in outcomes] == ["ok"] * 3
    assert [o.details["resumed_at"] for o in outcomes] == [0, 1, 2]
    net, _ = network.with_operator(operator)
    with torch_threads(TimingOptions().threads):  # what sums round to depends on their number
        whole = train(net, load("digits", size=8), LADDER.top.fidelity, 3)
    assert outcomes[2].accuracy == whole.accuracy
    losses = [point.loss for point in whole.curve]
    assert [o.details["losses"] for o in outcomes] == [losses[:1], losses[:2], losses]
    assert outcomes[2].details["loss_sum"] == whole.loss_sum
    # What the store keeps of each rung: signals of the curve, and what it was a part of.
    for outcome, index in zip(outcomes, range(3), strict=True):
        assert outcome.details["step_s"] > 0
        assert outcome.details["tail_loss"] > 0
        assert outcome.rung == LADDER.rungs[index].name
        assert outcome.recipe["fidelity"] == LADDER.rungs[index].fidelity.to_json()
        assert outcome.recipe["of_epochs"] == 4


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "empty"])
def test_without_a_whole_checkpoint_the_rung_is_trained_anew(tmp_path, operator, damage):
    evaluator = ladder_evaluator(tmp_path)
    evaluator.evaluate(operator, 0)
    expected = evaluator.evaluate(operator, 1)
    assert expected.details["resumed_at"] == 1
    (file,) = tmp_path.glob("*.ckpt")
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "flipped":
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    else:
        file.write_bytes(content[: len(content) // 2] if damage == "cut" else b"")
    if damage == "missing":
        again = evaluator.evaluate(operator, 1)
    else:
        with pytest.warns(UserWarning, match="the training starts over"):
            again = evaluator.evaluate(operator, 1)
    assert again.details["resumed_at"] == 0
    assert again.accuracy == expected.accuracy
    assert again.details["losses"] == expected.details["losses"]


def test_a_checkpoint_of_another_training_is_not_gone_on_from(tmp_path, operator):
    evaluator = ladder_evaluator(tmp_path)
    other = Ladder("l", (rung("a", 1), rung("b", 2), rung("c", 5)), 2)
    ladder_evaluator(tmp_path, other).evaluate(operator, 0)
    with pytest.warns(UserWarning, match=r"belongs to another training; the training starts over"):
        outcome = evaluator.evaluate(operator, 1)
    assert (outcome.status, outcome.details["resumed_at"]) == ("ok", 0)


def test_an_interrupted_rung_goes_on_from_its_last_epoch(tmp_path, operator, monkeypatch):
    """Also where the rung is no part of a longer training."""
    ladder = Ladder("l", (rung("a", 1, how=recipe("fast/digits")), rung("b", 3, resolution=16)), 2)
    evaluator = ladder_evaluator(tmp_path, ladder)
    expected = ladder_evaluator(tmp_path / "other", ladder).evaluate(operator, 1)

    class Killed(BaseException):
        pass

    def epoch(number, epochs, loss):
        if number == 2:
            raise Killed

    monkeypatch.setattr(evaluator.observer, "on_epoch", epoch)
    with pytest.raises(Killed):
        evaluator.evaluate(operator, 1)
    monkeypatch.undo()
    again = evaluator.evaluate(operator, 1)
    assert again.details["resumed_at"] == 1
    assert again.details["losses"] == expected.details["losses"]
    assert again.accuracy == expected.accuracy


def test_sigterm_ends_the_process_as_without_checkpoints(tmp_path, operator, monkeypatch):
    evaluator = ladder_evaluator(tmp_path)

    def epoch(number, epochs, loss):
        signal.raise_signal(signal.SIGTERM)

    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(True))
    try:
        monkeypatch.setattr(evaluator.observer, "on_epoch", epoch)
        with pytest.raises(KeyboardInterrupt):
            evaluator.evaluate(operator, 2)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [True]


def test_an_early_stop_inside_a_rung_is_a_failure_there(tmp_path, operator):
    wild = dataclasses.replace(STEADY, learning_rate=1e6, clip_norm=None)
    ladder = Ladder("l", (rung("a", 1, how=wild), rung("b", 2, how=wild)), 2)
    outcome = ladder_evaluator(tmp_path, ladder).evaluate(operator, 0)
    assert outcome.status == "rejected"
    assert outcome.rung == "a"  # it was trained: it counts among the results of the rung
    assert outcome.accuracy is None


def test_a_deadline_inside_a_rung_is_a_timeout_there(tmp_path, operator):
    outcome = ladder_evaluator(tmp_path, deadline_s=1e-9).evaluate(operator, 1)
    assert (outcome.status, outcome.rung) == ("timeout", "b")


def test_rungs_of_other_pixels_and_width_have_networks_of_their_own(tmp_path, operator):
    ladder = Ladder(
        "l", (rung("a", 1, width=0.5), rung("b", 1), rung("c", 1, resolution=16, images=200)), 2
    )
    data = datasets(ladder, "digits", None)
    model, options = "resnet-small", {"width": 8, "stages": 2}
    nets = networks(ladder, model, options, data[-1], 0)
    assert [net.input_shape for net in nets] == [(1, 8, 8), (1, 8, 8), (1, 16, 16)]
    assert nets[0].params < nets[1].params == nets[2].params
    assert [d.size for d in data] == [8, 8, 16]
    evaluator = ladder_evaluator(tmp_path, ladder, (model, options))
    outcomes = [evaluator.evaluate(operator, index) for index in range(3)]
    assert [o.status for o in outcomes] == ["ok"] * 3, outcomes
    assert [o.details["resumed_at"] for o in outcomes] == [0, 0, 0]
    assert [o.recipe["width"] for o in outcomes] == [0.5, 1.0, 1.0]
    # Costs are those in the network that was asked for, at every rung.
    assert len({(o.macs, o.params) for o in outcomes}) == 1


def test_a_model_without_a_width_is_refused_for_such_a_ladder():
    ladder = Ladder("l", (rung("a", 1, width=0.5), rung("b", 1)), 2)
    with pytest.raises(UserError, match="a module has no width to change") as caught:
        networks(ladder, network_module(), {}, load("digits"), 0)
    assert "in rung 'a' of ladder 'l'" in str(caught.value)


def network_module():
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 10),
    )


def test_a_module_is_used_at_the_pixels_of_each_rung_unless_it_has_slots_of_its_own():
    import syno

    ladder = Ladder("l", (rung("a", 1), rung("b", 1, resolution=16)), 2)
    data = datasets(ladder, "digits", None)
    nets = networks(ladder, network_module(), {}, data[-1], 0)
    assert [net.input_shape for net in nets] == [(1, 8, 8), (1, 16, 16)]
    import torch

    slotted = syno.substitute(network_module(), example_input=torch.zeros(1, 1, 16, 16))
    with pytest.raises(UserError, match="slots of its own has one size, and a rung requests 8 px"):
        networks(ladder, slotted, {}, data[-1], 0)


SEARCH = {
    "model_options": MODEL[1],
    "space": SpaceOptions(max_nodes=2000),
    "timing": TimingOptions(repeats=20),
}


def searched(path: str, isolate: bool):
    train = TrainOptions(ladder=LADDER, max_slowdown=1000.0)
    isolation = IsolationOptions(isolate=isolate)
    return search(
        *(MODEL[0], "digits"), evaluations=4, store=path, train=train, isolation=isolation, **SEARCH
    )


@pytest.mark.slow
def test_survivors_of_a_search_go_on_from_their_checkpoints(tmp_path):
    path = str(tmp_path / "runs.db")
    summary = searched(path, isolate=False)
    promoted = [e for e in (*summary.baselines, *summary.evaluations) if e.rung_index]
    assert {e.rung_index for e in promoted} == {1, 2}
    for evaluation in promoted:
        assert evaluation.details["resumed_at"] == evaluation.rung_index
        assert evaluation.latency_ms > 0
    assert not (tmp_path / "runs.db.checkpoints").exists()
    more = resume(
        path, evaluations=8, isolation=IsolationOptions(isolate=False)
    )  # checkpoints are gone: trained anew
    assert more.evaluations[: len(summary.evaluations)] != ()
    assert more.rungs[0].evaluated == 8
    if not processes.is_supported():
        return
    alone = searched(str(tmp_path / "isolated.db"), isolate=True)
    for one, other in zip(summary.evaluations, alone.evaluations, strict=True):
        assert (one.ask, one.rung_index, one.accuracy) == (
            other.ask,
            other.rung_index,
            other.accuracy,
        )
        assert one.details["resumed_at"] == other.details["resumed_at"]
    assert not (tmp_path / "isolated.db.checkpoints").exists()


@pytest.mark.slow
@pytest.mark.skipif(not processes.is_supported(), reason="needs Linux")
def test_a_failure_without_an_answer_is_stored_at_its_rung(tmp_path, operator):
    data = datasets(LADDER, "digits", None)
    nets = networks(LADDER, *MODEL, data[-1], 0)
    marks = [each.fingerprint for each in data]
    checkpoints = Checkpoints(tmp_path)
    factory = functools.partial(
        make_ladder_evaluator,
        nets[-1],
        nets[:-1],
        LADDER,
        "digits",
        None,
        marks,
        checkpoints,
        seed=3,
    )
    with IsolatedEvaluator(factory, deadline_s=60.0) as evaluator:
        assert evaluator.evaluate(operator, 0).status == "ok"
        evaluator._memory = 1 << 20
        outcome = evaluator.evaluate(operator, 1)
        assert outcome.details["failure"] == "out_of_memory"
        assert outcome.rung == "b"
        assert outcome.recipe == ladder_evaluator(tmp_path)._rungs[1].failure().recipe
        # It did not take the state of the rung below with it.
        evaluator._memory = 4 << 30
        again = evaluator.evaluate(operator, 1)
        assert (again.status, again.details["resumed_at"]) == ("ok", 1)


def test_a_ladder_that_no_operator_fits_is_refused_with_a_reason(tmp_path):
    tiny = Ladder("l", (rung("a", 1, resolution=2), rung("b", 1)), 2)
    store = str(tmp_path / "r.db")
    with pytest.raises(UserError) as caught:
        search("cnn-small", "digits", train=TrainOptions(ladder=tiny), store=store, **SEARCH)
    assert "rung 'a' of" in str(caught.value)


def test_ladder_and_fidelity_are_not_given_together(tmp_path):
    path = str(tmp_path / "r.db")
    both = TrainOptions(ladder=LADDER, fidelity="digits")
    with pytest.raises(UserError, match=r"a ladder .* or a fidelity .* not both"):
        search("cnn-small", "digits", train=both, store=path)
    with pytest.raises(UserError, match=r"eta \(--eta\) is 3, and there is no ladder"):
        search("cnn-small", "digits", train=TrainOptions(eta=3), store=path)
    with pytest.raises(UserError, match="did you mean: fast/digits"):
        search("cnn-small", "digits", train=TrainOptions(ladder="fast/digit"), store=path)
    assert not (tmp_path / "r.db").exists()
