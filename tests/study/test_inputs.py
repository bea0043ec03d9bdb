"""Searches on networks with several inputs, and on targets of any form."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.study.test_custom_data import FAST, TRAINED
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import syno
from syno import UserError
from syno.data.custom import custom_data


class Scene(nn.Module):
    """[N, 3, 8, 8] and [N, 2] -> scores [N, 2] and a place [N, 2]."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(10, 4)

    def forward(self, image: torch.Tensor, wind: torch.Tensor) -> dict[str, torch.Tensor]:
        x = functional.relu(self.second(functional.relu(self.first(image))))
        x = self.head(torch.cat([x.mean((2, 3)), wind], 1))
        return {"scores": x[:, :2], "place": x[:, 2:]}


class Scenes(Dataset[Any]):
    """Images with any number of boxes."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        random = torch.Generator().manual_seed(number)
        image, wind = torch.randn(3, 8, 8, generator=random), torch.randn(2, generator=random)
        boxes = torch.rand(number % 3, 2, generator=random)
        return {"wind": wind, "image": image}, {"boxes": boxes, "kind": torch.tensor(number % 2)}


def listed(samples: list[Any]) -> tuple[dict[str, torch.Tensor], list[dict[str, torch.Tensor]]]:
    inputs = {name: torch.stack([each[name] for each, _ in samples]) for name in ("wind", "image")}
    return inputs, [target for _, target in samples]


def detection(outputs: dict[str, torch.Tensor], targets: list[dict[str, Any]]) -> torch.Tensor:
    kinds = torch.stack([each["kind"] for each in targets])
    lost = functional.cross_entropy(outputs["scores"], kinds)
    for place, each in zip(outputs["place"], targets, strict=True):
        if len(each["boxes"]):
            lost = lost + (each["boxes"] - place).square().mean() / len(targets)
    return lost


ONE = torch.zeros(2)
LOADER = DataLoader(Scenes(), batch_size=16, collate_fn=listed)


def test_a_network_of_two_inputs_with_boxes_as_targets_is_searched(tmp_path):
    store = str(tmp_path / "runs.db")
    net = Scene()
    arguments = {"loss": detection, "validation": 0.25, "store": store}
    found = syno.search(net, LOADER, **arguments, **TRAINED)
    (trial,) = found.trained
    assert found.objective.name == "loss" and found.baseline.status == trial.status == "ok"
    assert trial.latency_ratio > 0
    made, example = syno.study.trained_network.trained_network(found, trial.key, net=Scene())
    image, wind = example
    assert (image.shape, wind.shape) == ((1, 3, 8, 8), (1, 2))
    exported = syno.export_network(
        store, trial.key, tmp_path / "net", net=Scene(), format="cpp-network"
    )
    library = syno.inference.load(exported.code)
    inputs = torch.randn(3, 3, 8, 8), torch.randn(3, 2)
    expected = made(*inputs)
    for y, name in zip(library(*(each.numpy() for each in inputs)), expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(y), expected[name], rtol=1e-3, atol=1e-4)


def test_a_function_evaluates_a_network_of_two_inputs():
    inputs = torch.randn(4, 3, 8, 8), torch.randn(4, 2)

    @torch.no_grad()
    def evaluate(net: nn.Module) -> float:
        return float(net(*inputs)["place"].square().mean())

    given = {"evaluate": evaluate, "maximize": False, "store": "sqlite://"}
    found = syno.search(Scene(), example_input=inputs, **given, **FAST)
    assert [each.status for each in found.trained] == ["ok"]
    slots = syno.substitute(Scene(), example_input=inputs)
    again = syno.search(slots, **given, **FAST)
    assert again.baseline.status == "ok"


def test_a_batch_is_in_the_order_of_the_arguments():
    data = custom_data(LOADER, loss=detection, net=Scene())
    assert [list(each.shape) for each in data.example] == [[2, 3, 8, 8], [2, 2]]
    assert [list(each["boxes"].shape) for each in data.targets] == [[0, 2], [1, 2]]
    train, held = data.split(0.25, 0)
    assert (len(train), len(held)) == (48, 16)
    assert data.fingerprint == custom_data(LOADER, loss=detection, net=Scene()).fingerprint


class Other(nn.Module):
    def forward(self, picture: torch.Tensor, wind: torch.Tensor) -> torch.Tensor:
        return picture


def unequal(samples: list[Any]) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    return (torch.zeros(len(samples), 3), torch.zeros(1, 3)), torch.zeros(len(samples))


@pytest.mark.parametrize(
    ("collate", "net", "message"),
    [
        (
            listed,
            Other(),
            "first arguments of the network\n  expected: picture, wind      got: wind, image",
        ),
        (listed, None, "a network with named arguments"),
        (unequal, None, "a batch of 2 samples of 'Scenes' has 1 and 2 inputs and 2 targets"),
        (lambda _: ((), ONE), None, "is not a pair of tensors\n.*got: tuple, Tensor"),
        (lambda _: ({"a": 1}, ONE), None, "is not a pair of tensors\n.*got: dict, Tensor"),
        (lambda _: (ONE, "cat"), None, "is not a pair of tensors\n.*got: Tensor, str"),
    ],
)
def test_what_is_no_batch_is_refused(collate, net, message):
    with pytest.raises(UserError, match=message):
        custom_data(DataLoader(Scenes(), batch_size=2, collate_fn=collate), loss=detection, net=net)
