"""What `syno.adapt` refuses, and what it says then."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import syno
from syno import UserError
from syno.operators import zoo

from .conftest import Net, options
from .conftest import adapted as adapt


def test_a_goal_out_of_reach_says_what_is_possible(trained, data, tmp_path):
    with pytest.raises(UserError, match=r"out of reach\n  macs: the least possible is 0\.\d\dx"):
        adapt(trained, data, str(tmp_path / "runs.db"), macs="0.001x")


def test_a_network_that_only_guesses_is_refused(data, tmp_path):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = Net()
    with pytest.raises(UserError, match="not better than a guess"):
        adapt(net, data, str(tmp_path / "runs.db"))


def test_a_network_that_gives_nan_is_refused(trained, data, tmp_path):
    net = copy.deepcopy(trained)
    with torch.no_grad():
        net.first.weight[0] = float("nan")
    with pytest.raises(UserError, match="not finite"):
        adapt(net, data, str(tmp_path / "runs.db"))


def test_a_model_without_weights_is_refused():
    with pytest.raises(UserError, match="random initial weights"):
        syno.adapt("resnet-small", "digits")


def test_weights_of_another_network_are_refused(tmp_path):
    path = tmp_path / "other.pt"
    torch.save(nn.Linear(3, 4).state_dict(), path)
    with pytest.raises(UserError, match="weights"):
        syno.adapt("resnet-small", "digits", model_options={"weights": str(path)})


def test_weights_of_another_width_are_refused(tmp_path):
    path = tmp_path / "other.pt"
    net = syno.models.build("resnet-small", classes=10, channels=1, size=8, width=4)
    torch.save(net.state_dict(), path)
    with pytest.raises(UserError, match=r"other\.pt"):
        syno.adapt("resnet-small", "digits", model_options={"weights": str(path), "width": 8})


def test_a_network_trained_on_other_classes_is_refused(trained, data, tmp_path):
    inputs, targets = data.tensors
    other = TensorDataset(inputs, torch.randint(3, targets.shape))
    with pytest.raises(UserError, match="not better than a guess"):
        adapt(trained, other, str(tmp_path / "runs.db"))


def test_goals_that_exclude_each_other_say_what_is_nearest(trained, data, tmp_path):
    store = str(tmp_path / "runs.db")
    with pytest.raises(UserError, match="out of reach") as caught:
        adapt(trained, data, store, macs="0.3x", params="0.01x")
    lines = str(caught.value).splitlines()
    assert lines[0] == "the goal macs 0.3x, params 0.01x is out of reach"
    assert lines[1].startswith("  macs: the least possible is 0.")
    assert lines[2].startswith("  params: the least possible is 0.")
    assert any(line.endswith(", with the other goals") for line in lines)
    assert "a weaker goal, or more candidates" in lines[-1]


def test_data_without_labels_is_refused(trained, data, tmp_path):
    inputs, _ = data.tensors
    with pytest.raises(UserError, match=r"pair of tensors\n  expected: \(inputs, targets\)"):
        adapt(trained, TensorDataset(inputs), str(tmp_path / "runs.db"))
    loader = torch.utils.data.DataLoader(inputs, batch_size=64)
    with pytest.raises(UserError, match=r"pair of tensors\n  expected: \(inputs, targets\)"):
        adapt(trained, loader, str(tmp_path / "runs.db"))


def test_a_folder_of_images_without_classes_is_refused(trained, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(4):
        pixels = np.full((8, 8, 3), 20 * number, np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    with pytest.raises(UserError, match="photos"):
        adapt(trained, str(folder), str(tmp_path / "runs.db"))


def test_a_slot_without_an_original_layer_is_refused(trained, data, tmp_path):
    net = copy.deepcopy(trained)
    net.first = syno.Placeholder({"C_in": 8, "C_out": 8, "H": 8, "W": 8})
    with pytest.raises(UserError, match="slot 'first' has no original layer"):
        adapt(net, data, str(tmp_path / "runs.db"))


def test_an_operator_in_a_slot_is_refused(trained, data, tmp_path):
    net = syno.substitute(trained, example_input=torch.randn(1, 4, 8, 8))
    syno.replace(net, zoo.load("conv1x1"))
    with pytest.raises(UserError, match=r"slot 'stem' holds an operator"):
        adapt(net, data, str(tmp_path / "runs.db"))


def test_activations_that_are_not_finite_are_refused(trained, data, tmp_path):
    """One training sample has a NaN; the validation split has none."""
    inputs, targets = data.tensors
    bad = inputs.clone()
    bad[:, 0, 0, 0] = float("nan")
    with pytest.raises(UserError, match=r"activations of slot 'stem' are not finite"):
        adapt(
            trained,
            TensorDataset(bad, targets),
            str(tmp_path / "runs.db"),
            validation=TensorDataset(inputs[:128], targets[:128]),
        )


@pytest.mark.slow
def test_a_limit_of_memory_for_activations_changes_no_fit(trained, data, tmp_path):
    """The activations of a slot need 0.5 MiB or more, those of all more than the limit of 1 MiB."""
    usual = adapt(trained, data, str(tmp_path / "a.db"))
    limited = adapt(trained, data, str(tmp_path / "b.db"), options=options(activation_mib=1))
    errors = {(row.slot, row.operator): row.error for row in usual.networks[0].slots}
    same = 0
    for row in limited.networks[0].slots:
        if (row.slot, row.operator) in errors:
            assert row.error == pytest.approx(errors[row.slot, row.operator], rel=1e-3, abs=1e-6)
            same += 1
    assert same > 0


def test_hours_are_a_positive_number(trained, data, tmp_path):
    with pytest.raises(UserError, match="'hours' is a number above 0"):
        adapt(trained, data, str(tmp_path / "runs.db"), hours=0.0)


def test_a_loss_that_is_nan_is_refused(trained, data, tmp_path):
    def nan(outputs, targets):
        return functional.cross_entropy(outputs, targets) * float("nan")

    with pytest.raises(UserError, match="the loss of the network is not finite on the validation"):
        adapt(trained, data, str(tmp_path / "runs.db"), loss=nan)


def test_a_loss_that_becomes_nan_in_the_fine_tuning_is_said(trained, data, tmp_path):
    def nan(outputs, targets):
        wrong = functional.cross_entropy(outputs, targets)
        return wrong * float("nan") if outputs.requires_grad else wrong

    with pytest.raises(UserError, match=r"the fine-tuning failed: .*\n  what to do"):
        adapt(trained, data, str(tmp_path / "runs.db"), loss=nan)


def test_a_metric_of_percent_is_compared_in_shares_of_itself(trained, data, tmp_path):
    percent = lambda outputs, targets: 100.0 * (outputs.argmax(1) == targets).float().mean()  # noqa: E731
    found = adapt(trained, data, str(tmp_path / "runs.db"), metric=percent, max_drop=90.0)
    assert " lambda " in str(found)
    assert 90.0 < found.original.value <= 100.0
    assert found.best is not None
    found.max_drop = 1e-3
    assert found.best is None


def test_a_loader_of_one_batch_says_which_batch_fits(trained, data, tmp_path):
    few = TensorDataset(*(each[:64] for each in data.tensors))
    with pytest.raises(UserError, match=r"batches have 64 samples, and .* has 58 to train on"):
        adapt(trained, DataLoader(few, batch_size=64), str(tmp_path / "runs.db"))
