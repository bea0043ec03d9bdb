"""What a search says at its start about functions and data that cannot work, and at its end about
operators that all failed."""

from __future__ import annotations

import re
import sys
import types

import pytest
import torch
from tests.study import own
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import syno
from syno import IsolationOptions, SpaceOptions, TimingOptions, TrainOptions, UserError
from syno.cli.commands.status import print_study
from syno.study.evaluate.custom import custom
from syno.study.evaluate.isolation import _check_data
from syno.train import fidelity

pytestmark = pytest.mark.usefixtures("one_torch_thread")

BRIEF = fidelity("custom").changed(name="brief", epochs=1, batch=64, learning_rate=0.01)
FAST = {
    "store": "sqlite://",
    "evaluations": 2,
    "isolation": IsolationOptions(isolate=False),
    "space": SpaceOptions(max_nodes=500),
    "timing": TimingOptions(repeats=20),
}
TRAINED = FAST | {"train": TrainOptions(fidelity=BRIEF, max_slowdown=1000.0)}
EXAMPLE = torch.zeros(1, 3, 8, 8)


def _raises(outputs, targets):
    raise KeyError("no such column")


# Metrics, and what the search says about them.
METRICS = {
    "raises": (_raises, r"the metric '_raises' fails .*: KeyError: 'no such column'"),
    "nothing": (lambda outputs, targets: None, "gives no number.*got: None"),
    "a text": (lambda outputs, targets: "0.5", "gives no number.*got: '0.5'"),
    "a vector": (lambda outputs, targets: outputs.mean(1), "gives no number.*got: a Tensor"),
    "complex": (lambda outputs, targets: 1j, "gives no number.*got: a complex"),
    "NaN": (lambda outputs, targets: float("nan"), "no finite <lambda>.*split is nan"),
    "a tensor of NaN": (lambda outputs, targets: outputs.sum() * torch.nan, "split is nan"),
    "infinity": (lambda outputs, targets: torch.inf, "split is inf"),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_that_is_none_on_the_original_network_ends_the_search(name):
    metric, text = METRICS[name]
    with pytest.raises(UserError, match=f"(?s){text}"):
        syno.search(own.network(), own.images(), metric=metric, **TRAINED)


def _fails_late(outputs, targets):
    if len(targets) > 2:
        raise LookupError("too many rows")
    return nn.functional.cross_entropy(outputs, targets)


def test_a_loss_that_fails_in_the_training_of_the_original_network_ends_the_search():
    with pytest.raises(
        UserError, match=r"(?s)training on 'TensorDataset' failed.*LookupError: too many rows"
    ):
        syno.search(own.network(), own.images(), loss=_fails_late, **TRAINED)


def test_an_evaluation_that_is_nan_on_the_original_network_ends_the_search():
    with pytest.raises(UserError, match=r"no finite accuracy.*\n  the accuracy is nan"):
        syno.search(own.network(), evaluate=lambda net: float("nan"), example_input=EXAMPLE, **FAST)


IMAGES, LABELS = own.images(96).tensors
DATA = {
    "bfloat16": (IMAGES.bfloat16(), r"\[2, 3, 8, 8\] bfloat16.*inputs\.float\(\)"),
    "half precision": (IMAGES.half(), r"float16.*inputs\.float\(\)"),
    "complex numbers": (IMAGES + 1j, "complex numbers"),
    "no values": (IMAGES.to("meta"), "device meta"),
    "a sparse tensor": (IMAGES.to_sparse(), "cannot be joined to a batch"),
}


@pytest.mark.parametrize("name", DATA)
def test_samples_of_another_type_than_the_weights_are_refused(name):
    inputs, text = DATA[name]
    with pytest.raises(UserError, match=f"(?s){text}"):
        syno.search(own.network(), TensorDataset(inputs, LABELS), **TRAINED)


def test_a_network_of_another_type_is_refused():
    with pytest.raises(UserError, match=r"'0\.weight' has the type torch\.bfloat16"):
        syno.search(own.network().bfloat16(), own.images(), **TRAINED)


def test_targets_in_bfloat16_are_data_as_any():
    def loss(outputs, targets):
        return (outputs - targets).square().mean()

    marks = [
        custom(TensorDataset(IMAGES, targets), loss=loss).fingerprint
        for targets in (IMAGES.bfloat16(), 2 * IMAGES.bfloat16(), IMAGES)
    ]
    assert len(set(marks)) == 3


def _failing_for_operators():
    calls = []

    def evaluate(net):
        calls.append(net)
        if len(calls) == 1:
            return 0.5
        raise ValueError("cannot divide" if len(calls) % 2 else "cannot sum")

    return evaluate


def test_a_search_whose_operators_all_fail_says_why(capsys):
    found = syno.search(
        own.network(),
        evaluate=_failing_for_operators(),
        example_input=EXAMPLE,
        **FAST | {"evaluations": 3},
    )
    assert "0 trained, 3 failed or rejected" in repr(found)
    assert "\n  2 x error: ValueError: cannot sum\n  1 x error: ValueError: cannot divide" in repr(
        found
    )
    print_study(found, operators=False)
    assert re.search(r"No operator was trained:\s+2 x error: ValueError", capsys.readouterr().out)


def test_a_search_whose_original_network_is_not_learned_says_why(capsys):
    def loss(outputs, targets):
        return outputs.sum() * torch.nan

    found = syno.search(own.network(), own.images(), loss=loss, **TRAINED)
    assert "the baseline, rejected: non_finite_loss" in repr(found)
    assert "stopped: the training of the baseline network failed" in capsys.readouterr().err


def test_what_another_process_cannot_have_is_named(monkeypatch):
    def inside(samples):
        return own.joined(samples)

    script = types.ModuleType("__main__")
    exec(
        "def join(samples): return samples\ndef error(a, b): return (a - b).abs().mean()",
        vars(script),
    )
    monkeypatch.setitem(sys.modules, "__main__", script)
    data = own.images()
    cases = [
        ({"data": DataLoader(data, 8, collate_fn=inside)}, "the collate_fn of the DataLoader"),
        ({"data": data, "metric": script.error}, "the metric 'error' .*\n  'error' is defined in"),
        ({"data": data, "loss": script.error}, "the loss cannot be sent.*\n  'error' is defined"),
    ]
    for given, text in cases:
        with pytest.raises(UserError, match=text):
            _check_data(custom(**given))
