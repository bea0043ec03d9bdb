"""Networks with several inputs, in tuples and dictionaries, with targets of any form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import syno
from syno import UserError
from syno.adaptation.pipeline.kinds import Kind, kinds_of
from syno.adaptation.pipeline.pool import Candidate, candidates
from syno.data.custom import custom_data
from syno.study.evaluate.network import Network

from .conftest import adapted, options, samples


class Sensors(nn.Module):
    """[N, 4, 8, 8] and [N, 3] -> [N, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(4, 8, 3, padding=1)
        self.body = nn.Conv2d(8, 8, 3, padding=1)
        self.side = nn.Linear(3, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, image: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.stem(image))
        x = functional.relu(x + self.body(x)).mean((2, 3))
        return self.head(x + functional.relu(self.side(numbers)))


class Triples(Dataset[Any]):
    """Inputs as the function arranges them, and classes."""

    def __init__(self, arrange: Any = lambda image, numbers: (image, numbers)) -> None:
        self.images, self.classes = samples(640, 0).tensors
        random = torch.Generator().manual_seed(1)
        self.numbers = functional.one_hot(self.classes, 3) + torch.randn(640, 3, generator=random)
        self.arrange = arrange

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, place: int) -> Any:
        return self.arrange(self.images[place], self.numbers[place]), self.classes[place]


def by_name(image: torch.Tensor, numbers: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"numbers": numbers, "image": image}


@pytest.fixture(scope="module")
def sensors() -> nn.Module:
    data = Triples()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Sensors()
        optimizer = torch.optim.Adam(net.parameters(), 0.01)
        for step in range(60):
            part = slice(step % 5 * 128, step % 5 * 128 + 128)
            optimizer.zero_grad()
            scores = net(data.images[part], data.numbers[part])
            functional.cross_entropy(scores, data.classes[part]).backward()
            optimizer.step()
    return net.eval()


@pytest.mark.parametrize(
    "arrange", [pytest.param(lambda *both: both, marks=pytest.mark.slow), by_name]
)
def test_a_network_of_two_inputs_is_adapted_and_shipped(sensors, arrange, tmp_path):
    data = Triples(arrange)
    given = {"options": options(engine="syno-cpp-int8"), "max_drop": 30.0}
    found = adapted(sensors, data, str(tmp_path / "runs.db"), **given)
    (network,) = found.networks
    assert found.original.value > 0.9 and network.row.value > 0.6
    shipped = found.ship(tmp_path / "shipped", network.name, processors=["native"])
    assert shipped.card.is_file()
    inputs = data.images[:5].numpy(), data.numbers[:5].numpy()
    library = syno.inference.load(found.export(tmp_path / "net", network.name).code)
    expected = network.net(data.images[:5], data.numbers[:5]).detach().numpy()
    np.testing.assert_allclose(library(*inputs), expected, atol=0.2 * np.abs(expected).max())


class Reader(nn.Module):
    """Token ids [N, 6] and a mask [N, 6] of those that count -> [N, 2]."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.embedding(words)
        read, _ = self.attention(x, x, x, key_padding_mask=~mask, need_weights=False)
        x = x + read
        x = x + self.narrow(functional.relu(self.wide(x)))
        weights = mask.float() / mask.sum(1, keepdim=True)
        return self.head((x * weights[:, :, None]).sum(1))


class Sentences(Dataset[Any]):
    """Words in sentences of 2 to 6 of them, and whether one of the first three is among them."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.rows = [random.integers(1, 11, random.integers(2, 7)) for _ in range(640)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        row = self.rows[place]
        return torch.from_numpy(row), int((row < 4).any())


def padded(rows: list[tuple[torch.Tensor, int]]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    words = torch.zeros(len(rows), 6, dtype=torch.long)
    for place, (row, _) in enumerate(rows):
        words[place, : len(row)] = row
    return {"mask": words > 0, "words": words}, torch.tensor([kind for _, kind in rows])


def longest(rows: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, targets = padded(rows)
    return inputs["words"][:, : max(len(row) for row, _ in rows)], targets


def test_sequences_of_several_lengths_have_a_mask():
    torch.manual_seed(0)
    net, rows = Reader(), Sentences()
    loader = DataLoader(rows, batch_size=64, collate_fn=padded)
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(20):
        for inputs, targets in loader:
            optimizer.zero_grad()
            functional.cross_entropy(net(**inputs), targets).backward()
            optimizer.step()
    given = {"where": syno.linear(), "operators": ["block-diagonal"], "max_drop": 50.0}
    found = adapted(net.eval(), loader, "sqlite://", macs="0.9x", **given)
    (network,) = found.networks
    assert found.original.value > 0.9 and network.row.value > 0.6
    assert found.settings["fidelity"]["recipe"]["batch"] == 64
    with pytest.raises(
        UserError, match=r"have different sizes\n  sample 0: \[\d\] int64      sample \d+: \[\d\]"
    ):
        adapted(net, DataLoader(rows, batch_size=64, collate_fn=longest), "sqlite://")


class Mixed(nn.Module):
    """Maps, and then a sequence of their places: [N, 4, 8, 8] -> [N, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(4, 8, 3, padding=1)
        self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.stem(x)).flatten(2).transpose(1, 2)
        x = x + self.narrow(functional.relu(self.wide(x)))
        return self.head(x.mean(1))


def test_all_kinds_of_slots_have_candidates():
    """Also in a network whose slots are made by `where` without an example."""
    where, data = (syno.conv2d(), syno.linear()), samples(64, 0)
    network = Network.custom(Mixed(), custom_data(data), 0, where)
    assert network.macs is not None and network.macs <= network.all_macs
    pool = candidates(network, zoo_too=True, samples=0, seed=0)
    kinds = kinds_of(network.template, network.inputs(1))
    assert len({each.name for each in pool}) == len(pool)
    for kind in kinds.values():
        fitting = [each for each in pool if fits(kind, each)]
        assert len(fitting) > 3, kind.name


def fits(kind: Kind, candidate: Candidate) -> bool:
    try:
        kind.binding(candidate)
    except UserError:
        return False
    return True


def test_an_operator_that_fits_no_slot_is_refused_at_once(trained, data):
    with pytest.raises(
        UserError,
        match=r"operator 'low-rank' fits no slot of the network\n"
        r"  expected: an operator with weights for inputs \[N, C_in, H, W\]      "
        r"got: \[N, T, C_in\] to \[N, T, C_out\]",
    ):
        adapted(trained, data, "sqlite://", operators=["conv1x1", "low-rank"])
