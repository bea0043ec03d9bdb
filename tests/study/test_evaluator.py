"""The real evaluator, on a tiny network and few images; and what it refuses."""

from __future__ import annotations

import dataclasses
import errno
import os

import pytest
import torch
from torch import nn

from syno import Placeholder, TimingOptions, UserError
from syno.codegen.verify import Verification
from syno.data import load
from syno.network.sampler import Sampler
from syno.study.evaluate.evaluator import NetworkEvaluator
from syno.study.evaluate.network import Network
from syno.study.members import SamplerSpace
from syno.study.observer import StudyObserver
from syno.study.specifications import small_vision
from syno.train import fidelity

FIDELITY = dataclasses.replace(fidelity("digits"), name="brief", images=128, epochs=1)


@pytest.fixture(scope="module")
def dataset():
    return load("digits", size=8)


@pytest.fixture(scope="module")
def network(dataset):
    return Network.named("cnn-small", {"width": 4, "layers": 1, "stages": 2}, dataset, 0)


@pytest.fixture(scope="module")
def space(network):
    specification = small_vision(max_macs=network.macs)
    return SamplerSpace(
        Sampler.from_specification(specification, net=network.template, max_nodes=2000)
    )


@pytest.fixture
def evaluator(network, dataset):
    return NetworkEvaluator(network, dataset, FIDELITY, seed=3, timing=TimingOptions(repeats=20))


@pytest.fixture(scope="module")
def operator(space):
    """y = sum_i x * w: a convolution of window 1."""
    return next(op for op in space.operators if op.primitives() == {"reduce": 1, "contract": 1})


@pytest.mark.slow
@pytest.mark.parametrize(("device", "is_traced"), [("cpu", True), ("cuda", False)])
def test_a_process_that_forks_trainings_on_a_gpu_traces_no_network(
    network, dataset, device, is_traced
):
    """torch counts the GPUs when it traces, and then no child could use one."""
    timing = TimingOptions(repeats=20, latency="compiled")
    made = NetworkEvaluator(network, dataset, FIDELITY, seed=3, timing=timing, device=device)
    assert ("_shared" in vars(made.prepared())) is is_traced


def test_copies_of_the_network_start_from_the_same_weights(network, operator):
    first, second = network.original(), network.original()
    assert all(map(torch.equal, first.state_dict().values(), second.state_dict().values()))
    replaced = [network.with_operator(operator)[0] for _ in range(2)]
    assert all(map(torch.equal, *(net.state_dict().values() for net in replaced)))
    assert torch.equal(first.stem[0].weight, replaced[0].stem[0].weight)


def test_making_networks_leaves_the_random_numbers_alone(network, operator, dataset):
    before = torch.get_rng_state()
    network.with_operator(operator)
    Network.named("cnn-small", {"width": 4}, dataset, 5)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_cost_of_the_original_is_that_of_its_slots(network):
    layers = [slot.original for slot in _slots(network.template)]
    assert network.params == sum(layer.weight.numel() for layer in layers)
    assert network.macs == sum(
        layer.weight.numel() * slot.binding["H"] ** 2
        for layer, slot in zip(layers, _slots(network.template), strict=True)
    )


def _slots(net):
    return [module for module in net.modules() if isinstance(module, Placeholder)]


def test_the_baseline_is_trained_and_timed(evaluator, network):
    outcome = evaluator.baseline()
    assert outcome.status == "ok", outcome.reason
    assert 0 < outcome.accuracy <= 1
    assert outcome.latency.median_ms > 0
    assert (outcome.macs, outcome.params) == (network.macs, network.params)
    assert (outcome.rung, outcome.seed) == ("brief", 3)
    assert outcome.recipe["fidelity"] == FIDELITY.to_json()
    assert len(outcome.details["losses"]) == 1


def test_an_operator_is_verified_trained_and_timed(evaluator, operator, space):
    steps: list[str] = []

    class Watch(StudyObserver):
        def on_step(self, step):
            steps.append(step)

        def on_epoch(self, epoch, epochs, loss):
            steps.append(f"epoch {epoch} of {epochs}")

    evaluator.observer = Watch()
    outcome = evaluator.evaluate(operator)
    assert outcome.status == "ok", outcome.reason
    assert steps == ["verify", "train", "epoch 1 of 1", "measure"]
    assert outcome.verification.passed
    assert len(outcome.verification.bindings) == len(operator.specification.bindings)
    measured = outcome.measurement
    assert measured.ratio == pytest.approx(measured.median_ms / measured.baseline.median_ms)
    assert (outcome.macs, outcome.params) == (operator.macs(), operator.params())
    assert outcome.primitives == {"reduce": 1, "contract": 1}
    assert outcome.details["kept"] == {}


def test_the_same_seed_gives_the_same_accuracy(evaluator, operator):
    first, second = evaluator.evaluate(operator), evaluator.evaluate(operator)
    assert first.accuracy == second.accuracy
    assert first.details["losses"] == second.details["losses"]
    assert first.verification == second.verification


def test_an_operator_whose_code_is_wrong_is_rejected_before_training(
    evaluator, operator, monkeypatch
):
    def wrong(operator, binding, *, seed):
        return Verification("5ec7e1", dict(binding), "pytorch", seed, False, 0.5, 8, "y[0] differs")

    monkeypatch.setattr("syno.study.evaluate.evaluator.verify", wrong)
    outcome = evaluator.evaluate(operator)
    assert outcome.status == "rejected"
    assert outcome.reason == "the generated code is wrong: y[0] differs"
    assert not outcome.verification.passed
    assert (outcome.rung, outcome.accuracy, outcome.measurement) == ("", None, None)


def test_an_operator_that_fits_no_slot_is_rejected_with_the_reason(evaluator):
    wide = small_vision(
        coefficient=["g=32: 2"], bindings=[{"C_in": 64, "C_out": 64, "H": 8}], max_depth=4
    )
    operators = Sampler.from_specification(wide, max_nodes=2000).operators
    grouped = next(op for op in operators if "g" in op.variables)
    outcome = evaluator.evaluate(grouped)
    assert outcome.status == "rejected"
    assert outcome.reason.startswith("the operator fits no slot of the network")
    assert (outcome.rung, outcome.accuracy) == ("", None)


def test_an_operator_that_trains_far_too_slowly_is_rejected_before_training(evaluator, operator):
    evaluator.max_slowdown = 1e-6
    outcome = evaluator.evaluate(operator)
    assert outcome.status == "rejected"
    assert "times as long as that of the original network, more than 1e-06" in outcome.reason
    assert outcome.rung == ""


def test_a_bug_in_one_operator_is_an_error_with_its_traceback(evaluator, operator, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("syno.study.evaluate.evaluator.verify", broken)
    outcome = evaluator.evaluate(operator)
    assert outcome.status == "error"
    assert outcome.reason == "ZeroDivisionError: division by zero"
    assert "broken" in outcome.details["traceback"]


def test_a_mistake_of_the_user_ends_the_search(evaluator, operator, monkeypatch):
    def refused(*_args, **_options):
        raise UserError("this engine is not here")

    monkeypatch.setattr("syno.study.evaluate.evaluator.verify", refused)
    with pytest.raises(UserError, match="this engine is not here"):
        evaluator.evaluate(operator)


def test_a_slot_without_a_layer_to_compare_with_is_refused(dataset):
    net = nn.Sequential(Placeholder({"C_in": 1, "C_out": 1, "H": 8}), nn.Flatten())
    with pytest.raises(UserError, match="slot '0' of the network has no original layer"):
        Network(net, (1, 8, 8), 0)


def test_a_network_without_slots_is_refused(dataset):
    with pytest.raises(UserError, match="has no slots"):
        Network.given(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), dataset, 0)


def test_something_that_is_no_network_is_refused(dataset):
    with pytest.raises(UserError, match=r"must be a torch.nn.Module or the name of a model, got 3"):
        Network.given(3, dataset, 0)


def test_a_full_disk_says_nothing_about_an_operator(evaluator, operator, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/part")

    monkeypatch.setattr(NetworkEvaluator, "_train", full)
    for evaluate in (evaluator.baseline, lambda: evaluator.evaluate(operator)):
        with pytest.raises(UserError, match="the disk is full while writing '/tmp/part'"):
            evaluate()
