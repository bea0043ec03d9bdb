"""Searches and trainings on the data of a user: data sets, losses, metrics and functions."""

from __future__ import annotations

import math
import re

import pytest
import torch
from tests.study import own
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import syno
from syno import IsolationOptions, SpaceOptions, TimingOptions, TrainOptions, UserError
from syno.report import gather, write_page
from syno.store import Store
from syno.train import fidelity

BRIEF = fidelity("custom").changed(name="brief", epochs=2, batch=32, learning_rate=0.01)
HERE = IsolationOptions(isolate=False)
FAST = {
    "evaluations": 1,
    "isolation": HERE,
    "space": SpaceOptions(max_nodes=1000),
    "timing": TimingOptions(repeats=20),
}
TRAINED = FAST | {"train": TrainOptions(fidelity=BRIEF, max_slowdown=1000.0)}


def test_a_data_set_of_tensors_is_learned_and_reported(tmp_path):
    path = str(tmp_path / "runs.db")
    found = syno.search(own.network(), own.images(), store=path, **TRAINED)
    assert found.objective.name == "accuracy"
    assert found.baseline.accuracy > 0.9  # a guess is right for a third of the images
    (evaluation,) = found.trained
    assert 0.0 <= evaluation.accuracy <= 1.0
    assert evaluation.latency_ratio > 0
    assert found.settings["data"] == "TensorDataset"
    with Store.open(path, read_only=True) as store:
        write_page(gather(store.summary()), tmp_path / "page.html")
    assert evaluation.key[:8] in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(syno.select(path)) == 1


def test_a_loader_gives_its_batch_size_and_how_samples_are_joined(tmp_path):
    loader = DataLoader(own.images(), batch_size=24, shuffle=True, collate_fn=own.joined)
    train = TrainOptions(max_slowdown=1000.0)
    found = syno.search(
        own.network(), loader, validation=0.25, store="sqlite://", train=train, **FAST
    )
    stored = found.settings["fidelity"]
    assert (stored["name"], stored["recipe"]["batch"]) == ("custom-batch24-holdout0.25", 24)
    assert stored["holdout"] == 0.25
    steps = math.ceil(192 * 0.75 / 24) * stored["epochs"]
    assert found.baseline.details["steps"] == steps


def test_a_guess_is_among_the_classes_of_the_network():
    """Few classes among the samples that are looked at are no reason to reject a training."""
    images = own.images().tensors[0]
    data = own.Pairs(images, torch.zeros(len(images), dtype=torch.long))
    brief = fidelity("custom").changed(epochs=1, learning_rate=1e-7)
    train = TrainOptions(fidelity=brief, max_slowdown=1000.0)
    found = syno.search(own.network(classes=50), data, store="sqlite://", train=train, **FAST)
    assert found.baseline.status == "ok"
    assert found.baseline.details["loss"] > 3  # a guess among fifty, and not among two


def test_a_custom_loss_is_minimized_and_a_metric_has_its_name(tmp_path):
    targets = own.images().tensors[0].mean((1, 2, 3), keepdim=True).flatten(1)
    data = own.Pairs(own.images().tensors[0], targets)
    arguments = {"loss": nn.functional.mse_loss, "validation": data, **TRAINED}
    plain = syno.search(own.network(classes=1), data, store="sqlite://", **arguments)
    assert (plain.objective.name, plain.objective.greater_is_better) == ("loss", False)
    assert plain.baseline.accuracy is None
    assert plain.quality(plain.baseline) == plain.baseline.details["loss"] < 0.2
    path = str(tmp_path / "runs.db")
    metric = {"metric": own.absolute_error, "maximize": False}
    named = syno.search(own.network(classes=1), data, store=path, **metric, **arguments)
    assert named.objective.name == "absolute_error"
    (choice,) = syno.select(path, within=1e9)
    assert choice.quality == named.quality(named.trained[0])
    report = gather(named)
    assert report.quality(report.baseline) == pytest.approx(named.quality(named.baseline))
    write_page(report, tmp_path / "page.html")
    assert "absolute_error" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_language_model_is_found_to_be_causal():
    torch.manual_seed(0)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.mix = nn.Embedding(13, 16), nn.Linear(16, 16)
            self.head = nn.Linear(16, 13)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(torch.relu(self.mix(self.embedding(tokens).cumsum(1))))

    text = torch.randint(13, (64, 12))
    data = TensorDataset(text[:, :-1], text[:, 1:])
    where = syno.linear(name="mix")
    net = syno.substitute(Model(), where=where, example_input=text[:1, :-1])
    found = syno.search(net, data, store="sqlite://", **TRAINED)
    assert "causal" in str(found.study.specification)
    assert found.trained


def test_an_evaluate_function_decides_what_an_operator_is_worth():
    net = own.network()
    found = syno.search(
        net,
        evaluate=own.weight_sum,
        example_input=torch.zeros(1, 3, 8, 8),
        store="sqlite://",
        **FAST,
    )
    assert found.baseline.accuracy == pytest.approx(own.weight_sum(net))
    (evaluation,) = found.trained
    assert evaluation.accuracy < found.baseline.accuracy  # fewer weights than the convolution
    assert evaluation.latency_ratio > 0


@pytest.mark.slow
def test_an_evaluate_function_runs_in_processes_of_its_own_where_it_can_be_imported():
    slots = syno.substitute(own.network(), example_input=torch.zeros(1, 3, 8, 8))
    separate = FAST | {"isolation": IsolationOptions(isolate=True)}
    found = syno.search(slots, evaluate=own.ending, store="sqlite://", **separate)
    assert found.baseline.accuracy == 0.5
    (evaluation,) = found.evaluations
    assert evaluation.reason.startswith("crash: the process ended with exit code 3")


def test_what_cannot_be_imported_is_evaluated_here_with_a_warning():
    def local(net: nn.Module) -> float:
        return 1.0

    example = torch.zeros(1, 3, 8, 8)
    given = FAST | {"isolation": IsolationOptions()}
    with pytest.warns(UserWarning, match=r"not isolated.*the function 'local' cannot be sent"):
        found = syno.search(
            own.network(), evaluate=local, example_input=example, store="sqlite://", **given
        )
    assert found.trained
    with pytest.raises(UserError, match="'local' cannot be sent to another process"):
        syno.search(
            own.network(),
            evaluate=local,
            example_input=example,
            store="sqlite://",
            **FAST | {"isolation": IsolationOptions(isolate=True)},
        )


def test_a_function_that_raises_on_the_original_network_ends_the_search():
    with pytest.raises(
        UserError, match=r"(?s)'raising' failed on the original network: KeyError.*in raising"
    ):
        syno.search(
            own.network(),
            evaluate=own.raising,
            example_input=torch.zeros(1, 3, 8, 8),
            store="sqlite://",
            **FAST,
        )


def test_a_function_that_raises_on_an_operator_fails_that_operator():
    found = syno.search(
        own.network(),
        evaluate=own.raising_for_operators,
        example_input=torch.zeros(1, 3, 8, 8),
        store="sqlite://",
        **FAST,
    )
    (evaluation,) = found.evaluations
    assert (evaluation.status, evaluation.accuracy) == ("error", None)
    assert evaluation.reason == "ZeroDivisionError: the learning rate is zero"
    assert "raising_for_operators" in evaluation.details["traceback"]


def test_a_study_of_custom_data_is_resumed_with_the_same_data(tmp_path):
    path = str(tmp_path / "runs.db")
    net = own.network()
    syno.search(net, own.images(), store=path, **TRAINED)
    with pytest.raises(UserError, match="started with 'TensorDataset', which a store cannot hold"):
        syno.resume(path, net=net)
    with pytest.raises(UserError, match="is not what study"):
        syno.resume(path, net=net, data=own.images(count=100))
    found = syno.resume(path, net=net, data=own.images(), evaluations=2, isolation=HERE)
    assert len(found.trained) == 2


@pytest.mark.parametrize("isolate", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_ladder_promotes_operators_on_custom_data(tmp_path, isolate):
    path = str(tmp_path / "runs.db")
    train = TrainOptions(ladder="fast/custom", eta=2, max_slowdown=1000.0, kernels="eager")
    options = FAST | {
        "evaluations": 4,
        "isolation": IsolationOptions(isolate=isolate),
        "timing": TimingOptions(repeats=20, latency="eager"),
    }
    data = DataLoader(own.images(), batch_size=32)
    net = own.network()
    found = syno.search(net, data, validation=0.25, store=path, train=train, **options)
    rungs = [f"fast/custom-{number}-batch32-holdout0.25" for number in (1, 2, 3)]
    reached = [trial.rung for trial in found.trials if trial.kind == "operator"]
    assert [reached.count(rung) for rung in rungs] == [4, 2, 1]
    assert {trial.rung for trial in found.trials if trial.kind == "baseline"} == set(rungs)
    again = syno.resume(path, net=net, data=data, validation=0.25, isolation=HERE)
    assert len(again.trials) == len(found.trials)


def test_given_operators_are_trained_on_custom_data():
    found = syno.train_operators(
        ["conv2d"],
        own.images(),
        model=own.network(),
        baseline=True,
        sizes={"k": 3},
        store="sqlite://",
        train=TrainOptions(fidelity=BRIEF),
        isolation=HERE,
        timing=TimingOptions(repeats=20),
    )
    assert [row.name for row in found.rows] == ["baseline", "conv2d"]
    assert found.ok and found.rows[0].accuracy.mean > 0.9
    lost = syno.train_operators(
        ["conv2d"],
        model=own.network(),
        evaluate=own.weight_sum,
        metric="size",
        maximize=False,
        example_input=torch.zeros(1, 3, 8, 8),
        sizes={"k": 3},
        store="sqlite://",
        isolation=HERE,
        latency=False,
    )
    assert lost.rows[0].loss.mean > 0 and lost.rows[0].accuracy is None


class Endless(IterableDataset):
    def __iter__(self):
        return iter([])


MISTAKES = {
    "channels": (
        lambda: syno.search(own.network(channels=1), own.images()),
        [r"batch of samples: \[2, 3, 8, 8\]", r"layer '0', Conv2d\(1, 8", "expected input"],
    ),
    "classes": (
        lambda: syno.search(own.network(classes=2), own.images()),
        ["gives 2 scores", "'TensorDataset' has class 2", "at least 3 classes"],
    ),
    "shape of the outputs": (
        lambda: syno.search(own.network()[:4], own.images()),
        [r"gives \[2, 8, 8, 8\]", r"class numbers of shape \[2\]"],
    ),
    "classes that may be in two places": (
        lambda: syno.search(
            nn.Embedding(8, 8), TensorDataset(*[torch.zeros(80, 8, dtype=torch.long)] * 2)
        ),
        [r"gives \[2, 8, 8\]", "second or the last dimension"],
    ),
    "targets without a loss": (
        lambda: syno.search(
            own.network(), TensorDataset(torch.zeros(8, 3, 8, 8), torch.zeros(8, 3))
        ),
        [r"\[2, 3\] float32 for two samples", "MSELoss"],
    ),
    "a loss that does not fit": (
        lambda: syno.search(own.network(), own.images(), loss=nn.functional.mse_loss),
        [r"outputs: \[2, 3\] float32", r"targets of 'TensorDataset': \[2\] int64"],
    ),
    "samples that are no pairs": (
        lambda: syno.search(own.network(), own.Records()),
        ["not a pair of tensors", "dict", "collate_fn"],
    ),
    "a sampler": (
        lambda: syno.search(own.network(), own.weighted()),
        ["sampler of its own", "evaluate="],
    ),
    "a stream": (
        lambda: syno.search(own.network(), Endless()),
        ["Endless", "__getitem__", "evaluate="],
    ),
    "validation of another shape": (
        lambda: syno.search(own.network(), own.images(), validation=own.images(channels=1)),
        [r"\[3, 8, 8\] float32", r"validation, 'TensorDataset': \[1, 8, 8\] float32"],
    ),
    "no data": (lambda: syno.search(own.network()), ["there is no data", "evaluate="]),
    "data and a function": (
        lambda: syno.search(own.network(), own.images(), evaluate=own.weight_sum),
        ["'data' is given, too"],
    ),
    "a loss for a named set": (
        lambda: syno.search(own.network(), "digits", loss=nn.functional.mse_loss),
        ["'loss' is for a torch.utils.data.Dataset", "'digits'"],
    ),
    "no example": (
        lambda: syno.search(own.network(), evaluate=own.weight_sum),
        ["example_input=", "latency"],
    ),
    "no result": (
        lambda: syno.search(
            own.network(),
            evaluate=own.saying_nothing,
            example_input=torch.zeros(1, 3, 8, 8),
            store="sqlite://",
            **FAST,
        ),
        ["'saying_nothing' returned NoneType", "the accuracy as a number, or a syno.Outcome"],
    ),
    "a model by name": (
        lambda: syno.search("resnet-small", own.images()),
        ["model 'resnet-small' is for data sets by name", "syno.models.build"],
    ),
    "a ladder": (
        lambda: syno.search(own.network(), own.images(), train=TrainOptions(ladder="fast/digits")),
        ["ladder 'fast/digits' is for images, and 'TensorDataset' is custom", "fast/custom"],
    ),
    "a ladder beside evaluate": (
        lambda: syno.search(
            own.network(),
            evaluate=own.weight_sum,
            example_input=torch.zeros(1, 3, 8, 8),
            train=TrainOptions(ladder="fast/custom"),
        ),
        ["'evaluate' trains networks itself", "expected: no ladder"],
    ),
    "a ladder for custom data with a data set by name": (
        lambda: syno.search("resnet-small", "digits", train=TrainOptions(ladder="fast/custom")),
        ["ladder 'fast/custom' is for custom data, and 'digits' is a data set by name"],
    ),
    "a recipe for images": (
        lambda: syno.search(own.network(), own.images(), train=TrainOptions(fidelity="digits")),
        ["trains on images, and the data is custom", "fast/custom"],
    ),
    "too large batches": (
        lambda: syno.search(own.network(), DataLoader(own.images(), batch_size=512)),
        ["batches have 512 samples", "to train on"],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_and_names_both_sides(name):
    mistake, words = MISTAKES[name]
    with pytest.raises(UserError) as caught:
        mistake()
    for each in words:
        assert re.search(each, str(caught.value)), str(caught.value)
