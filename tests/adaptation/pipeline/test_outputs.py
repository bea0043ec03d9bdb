"""Networks with several outputs, with losses and distances of a user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import syno
from syno import UserError
from syno._util.trial_calls import tensors_of
from syno.train.distillation import distance_of

from .conftest import adapted, options, samples


class Heads(nn.Module):
    """[N, 4, 8, 8] -> [N, 3] and [N, 2]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(4, 8, 3, padding=1)
        self.body = nn.Conv2d(8, 8, 3, padding=1)
        self.classes = nn.Linear(8, 3)
        self.numbers = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor] | tuple[torch.Tensor, ...]:
        x = functional.relu(self.stem(x))
        x = functional.relu(x + self.body(x)).mean((2, 3))
        return self.classes(x), self.numbers(x)


def both(outputs: tuple[torch.Tensor, torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
    scores, numbers = outputs
    wrong = functional.cross_entropy(scores, targets[:, 0].long())
    return wrong + functional.mse_loss(numbers, targets[:, 1:])


def far(outputs: tuple[torch.Tensor, ...], wanted: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return functional.mse_loss(outputs[1], wanted[1])


def many(outputs: tuple[torch.Tensor, ...], wanted: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return outputs[0] - wanted[0]


@pytest.fixture(scope="module")
def pairs() -> TensorDataset:
    inputs, targets = samples(640, 0).tensors
    numbers = torch.stack([inputs[:, 0].mean((1, 2)), inputs[:, 1].std((1, 2))], 1)
    return TensorDataset(inputs, torch.cat([targets[:, None].float(), numbers], 1))


@pytest.fixture(scope="module")
def heads(pairs: TensorDataset) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Heads()
        optimizer = torch.optim.Adam(net.parameters(), 0.01)
        for step in range(100):
            part = slice(step % 5 * 128, step % 5 * 128 + 128)
            inputs, targets = (each[part] for each in pairs.tensors)
            optimizer.zero_grad()
            both(net(inputs), targets).backward()
            optimizer.step()
    return net.eval()


def test_a_network_with_two_outputs_is_adapted_and_written(heads, pairs, tmp_path):
    store = str(tmp_path / "runs.db")
    found = adapted(heads, pairs, store, loss=both, max_drop=200.0)
    (network,) = found.networks
    assert found.objective.name == "loss" and network.row.value < 1.5 * found.original.value
    x = pairs.tensors[0][:5]
    library = syno.inference.load(found.export(tmp_path / "net", format="cpp-network").code)
    for y, expected in zip(library(x.numpy()), network.net(x), strict=True):
        np.testing.assert_allclose(y, expected.detach().numpy(), rtol=1e-3, atol=1e-4)


class Named(nn.Module):
    """The outputs of a network by name."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        scores, numbers = self.net(x)
        return {"scores": scores, "numbers": numbers}


@pytest.mark.slow
def test_outputs_by_name_stay_so_in_another_number_format(heads, pairs, tmp_path):
    def loss(outputs: dict[str, torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        return both((outputs["scores"], outputs["numbers"]), targets)

    store = str(tmp_path / "runs.db")
    given = {"loss": loss, "max_drop": 500.0, "options": options(engine="syno-cpp-int8")}
    found = adapted(Named(heads), pairs, store, **given)
    (network,) = found.networks
    assert network.row.exact is not None
    assert network.row.value == pytest.approx(network.row.exact, rel=0.2)


def test_a_distance_of_the_user_scores_and_teaches(heads, pairs, tmp_path):
    store = str(tmp_path / "runs.db")
    given = {"loss": both, "name": "far", "distance": far}
    found = adapted(heads, pairs, store, **given)
    assert found.settings["distance"] == "far"
    with pytest.raises(
        UserError, match=r"was started with other settings\n  distance: \"far\", now"
    ):
        adapted(heads, pairs, store, loss=both, name="far")
    with pytest.raises(
        UserError, match=r"is not a number\n  expected: a scalar      got: \[64, 3\]"
    ):
        adapted(heads, pairs, store, loss=both, distance=many)


def test_a_distance_is_for_custom_data(tmp_path):
    net = syno.models.build("resnet-small", classes=10, channels=1, size=8, width=4)
    with pytest.raises(
        UserError, match="for custom data\n  got: function for the data set 'digits'"
    ):
        syno.adapt(net, "digits", distance=far, options=options())
    with pytest.raises(UserError, match="for custom data\n  got: int"):
        syno.adapt(net, samples(16, 0), distance=3, options=options())  # type: ignore[arg-type]


@dataclass
class Boxes:
    scores: torch.Tensor
    names: list[str]
    more: dict[str, torch.Tensor]


def test_outputs_may_be_nested():
    one = Boxes(torch.zeros(2, 3), ["a"], {"x": torch.ones(2), "n": torch.ones(2, dtype=torch.int)})
    other = Boxes(torch.randn(2, 3), ["b"], {"x": torch.tensor([1.0, 3.0]), "n": torch.ones(2)})
    assert [each.shape for each in tensors_of(one)] == [(2, 3), (2,), (2,)]
    other.more["n"] = one.more["n"]
    wanted = other.scores
    first = wanted.square().mean() / wanted.var(correction=0)
    second = torch.tensor(2.0)  # errors 0 and 2, of a variance of 1
    found = distance_of(one, other, None)
    torch.testing.assert_close(found, (first + second) / 2)
    with pytest.raises(UserError, match="gives a str without tensors of numbers to compare"):
        distance_of("a", "b", None)
