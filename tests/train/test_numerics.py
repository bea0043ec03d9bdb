"""Precision, device, memory format, and images that grow while a network trains."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from syno import Operator, Specification, UserError
from syno.data import DataSet, load
from syno.network.placeholder import slots
from syno.operators import zoo
from syno.operators.layer import Layer
from syno.study.evaluate.network import Network
from syno.train import Fidelity, accuracy, fidelity, train
from syno.train.images import ImageTask
from syno.train.numerics import Numerics, checked_device
from syno.train.parallel import ProcessGroup

from .networks import convolutional

CONVOLUTION = zoo.load("conv2d").with_specification(
    Specification(
        "[N, C_in: unordered, H, W]",
        "[N, C_out: unordered, H, W]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0", "W: 0"],
        ["k=3: 2"],
        passed_through=[(0, 0)],
        bindings=["C_in=8,C_out=8,H=8,W=8"],
    )
)


class Seeing(nn.Module):
    """Notes the sizes, types and layout of what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.net = convolutional()
        self.sizes: list[int] = []
        self.types: set[torch.dtype] = set()
        self.last: set[bool] = set()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.net[0](x)
        if self.training:
            self.sizes.append(x.shape[2])
            self.types.add(y.dtype)
            self.last.add(x.is_contiguous(memory_format=torch.channels_last))
        return self.net[1:](y)


def test_images_grow_while_the_network_trains(dataset: DataSet, quick: Fidelity) -> None:
    net = Seeing()
    growing = quick.changed(progressive=((0.0, 0.5), (0.4, 0.75), (0.6, 1.0)))
    outcome = train(net, dataset, growing, 0)
    assert outcome.ok
    assert net.sizes[::8] == [2, 2, 3, 4]
    held = dataset.validation_split(0.2, 0)[1]
    assert accuracy(net, held, dataset) == outcome.accuracy


def test_a_network_of_one_size_is_refused_before_it_trains(
    dataset: DataSet, quick: Fidelity
) -> None:
    growing = quick.changed(progressive=((0.0, 0.5), (0.5, 1.0)))
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    before = copy.deepcopy(net)
    with pytest.raises(UserError, match=r"does not run on images of 2 px.*\n.*\n.*without `pro"):
        train(net, dataset, growing, 0)
    assert torch.equal(net[1].weight, before[1].weight)
    assert net.training


def operators(net: nn.Module) -> list[Layer]:
    """Of a network, in order."""
    return [module for module in net.modules() if isinstance(module, Layer)]


def test_operators_grow_with_the_images_and_keep_their_weights(tmp_path: Path) -> None:
    digits = load("digits")
    network = Network.named("resnet-small", {"width": 8, "stages": 1}, digits, 0)
    growing = fidelity("digits").changed(images=200, epochs=4, progressive=((0, 0.5), (0.5, 1.0)))
    net, _ = network.with_operator(CONVOLUTION)
    weights = {pack: pack.kernel.w0 for pack in operators(net)}
    kernels = {pack: pack.kernel for pack in operators(net)}
    before = copy.deepcopy(net.state_dict())
    outcome = train(net, digits, growing, 0)
    assert outcome.ok, outcome.detail
    for pack in operators(net):
        assert pack.kernel is kernels[pack]
        assert pack.kernel.w0 is weights[pack]
    assert not torch.equal(net.state_dict()["head.weight"], before["head.weight"])
    # The same convolutions as layers of torch, which run at any size anyway.
    plain, _ = network.with_operator(CONVOLUTION)
    for slot in slots(plain).values():
        weight = slot.kernel.kernel.w0  # type: ignore[union-attr]
        layer = nn.Conv2d(weight.shape[1], weight.shape[0], 3, padding=1, bias=False)
        layer.weight = weight
        slot.replace(layer)
    expected = train(plain, digits, growing, 0)
    assert outcome.loss_sum == pytest.approx(expected.loss_sum, rel=1e-4)
    # A pause in between changes nothing.
    path = tmp_path / "run.ckpt"
    for stop in (1, 3, None):
        paused, _ = network.with_operator(CONVOLUTION)
        last = train(paused, digits, growing, 0, checkpoint=path, stop_after=stop)
    assert last.loss_sum == outcome.loss_sum
    assert all(map(torch.equal, paused.state_dict().values(), net.state_dict().values()))


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("sum(i:C_in) x[n,i,h,w] * w0[o,i,h]", "cannot take with these weights"),
        ("sum(i:C_in,r:s) x[n,i,s*(h/s)+r,w] * w0[o,i]", "does not run on images of 3 px"),
    ],
)
def test_operators_that_cannot_grow_are_refused(formula: str, message: str) -> None:
    specification = Specification(
        "[N, C_in: unordered, H, W]",
        "[N, C_out: unordered, H, W]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 2", "W: 0"],
        ["s=2: 3"],
        passed_through=[(0, 0)],
        bindings=["C_in=8,C_out=8,H=8,W=8"],
    )
    digits = load("digits")
    operator = Operator.parse(f"y[n,o,h,w] = {formula}", specification)
    network = Network.named("resnet-small", {"width": 8, "stages": 1}, digits, 0)
    net, _ = network.with_operator(operator)
    growing = fidelity("digits").changed(images=64, epochs=2, progressive=((0, 0.4), (0.5, 1.0)))
    with pytest.raises(UserError, match=message):
        train(net, digits, growing, 0)


def test_images_are_augmented_small_and_seen_large(dataset: DataSet, quick: Fidelity) -> None:
    net = Seeing()
    large = quick.changed(resolution=12, augmented_at=4, crop=1, cutout=1)
    outcome = train(net, dataset, large, 0)
    assert outcome.ok
    assert set(net.sizes) == {12}
    held = dataset.validation_split(0.2, 0)[1]
    assert accuracy(net, held, dataset, resolution=12) == outcome.accuracy


def test_bfloat16_computes_in_it_and_keeps_weights_in_float32(
    dataset: DataSet, quick: Fidelity
) -> None:
    net = Seeing()
    outcome = train(net, dataset, quick.changed(precision="bfloat16", epochs=12), 0)
    assert outcome.ok
    assert net.types == {torch.bfloat16}
    assert {p.dtype for p in net.parameters()} == {torch.float32}
    assert outcome.accuracy is not None
    assert outcome.accuracy > 0.8


def test_channels_last_reaches_the_network_and_changes_little(
    dataset: DataSet, quick: Fidelity
) -> None:
    colour = replace(
        dataset,
        train=replace(dataset.train, images=np.repeat(dataset.train.images, 3, axis=1)),
        mean=dataset.mean * 3,
        std=dataset.std * 3,
    )
    nets = [Seeing(), Seeing()]
    for net in nets:
        torch.manual_seed(1)
        net.net[0] = nn.Conv2d(3, 8, 3, padding=1)
    outcomes = [
        train(net, colour, quick.changed(channels_last=last), 0)
        for net, last in zip(nets, (False, True), strict=True)
    ]
    assert [net.last for net in nets] == [{False}, {True}]
    assert outcomes[0].loss_sum == pytest.approx(outcomes[1].loss_sum, rel=1e-3)


def test_a_kernel_of_an_operator_trains_in_bfloat16_and_channels_last() -> None:
    digits = load("digits")
    network = Network.named("resnet-small", {"width": 8}, digits, 0)
    net, _ = network.with_operator(CONVOLUTION)
    how = fidelity("digits").changed(images=64, epochs=1, precision="bfloat16", channels_last=True)
    assert train(net, digits, how, 0).ok


def test_averaged_weights_are_what_is_measured_and_kept(dataset: DataSet, quick: Fidelity) -> None:
    plain, averaged = convolutional(), convolutional()
    train(plain, dataset, quick, 0)
    outcome = train(averaged, dataset, quick.changed(ema=0.99), 0)
    assert not torch.equal(plain[0].weight, averaged[0].weight)
    held = dataset.validation_split(0.2, 0)[1]
    assert accuracy(averaged, held, dataset) == outcome.accuracy


def test_scores_of_an_image_and_its_mirror_image_are_averaged(dataset: DataSet) -> None:
    class Left(nn.Module):
        """Bright on the left: class 1. An image and its mirror image together decide nothing."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            left = x[..., :2].mean(dim=(1, 2, 3)) - x[..., 2:].mean(dim=(1, 2, 3))
            return torch.stack([0 * left - 1e-6, left], dim=1)

    images = np.zeros((20, 1, 4, 4), np.uint8)
    images[:10, ..., :2] = 200
    images[10:, ..., 2:] = 200
    labels = np.repeat([1, 0], 10)
    made = replace(dataset, test=replace(dataset.test, images=images, labels=labels))
    assert accuracy(Left(), made.test, made) == 1.0
    assert accuracy(Left(), made.test, made, flip_average=True) == 0.5


def test_what_the_machine_cannot_is_refused(dataset: DataSet, quick: Fidelity) -> None:
    with pytest.raises(UserError, match="trains in float16, which needs a GPU\n  expected: --dev"):
        train(convolutional(), dataset, quick.changed(precision="float16"), 0)
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        train(convolutional(), dataset, quick, 0, device="gpu")
    with pytest.raises(UserError, match="cannot train on device 'meta'"):
        checked_device("meta")
    with pytest.raises(UserError, match=r"device 'cuda:99': torch .* sees \d+ CUDA devices"):
        checked_device("cuda:99")


def test_batches_larger_than_the_data_are_refused(dataset: DataSet, quick: Fidelity) -> None:
    with pytest.raises(UserError, match="batches of 97, and 'made' has 96 training images"):
        train(convolutional(), dataset, quick.changed(batch=97), 0)


def test_workers_change_nothing(dataset: DataSet, quick: Fidelity) -> None:
    how = quick.changed(crop=1, flip=True)
    first, second = (train(convolutional(), dataset, how, 0, workers=n) for n in (0, 2))
    assert (first.loss_sum, first.accuracy) == (second.loss_sum, second.accuracy)


def test_processes_divide_the_batches_of_one(dataset: DataSet, quick: Fidelity) -> None:
    how = quick.changed(crop=1, flip=True, batch=11)
    numerics = Numerics(how.recipe, torch.device("cpu"))

    def batches(rank: int, world: int) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
        task = ImageTask(dataset, how, 5, numerics, ProcessGroup(rank, world))
        return list(task.batches(1, 2))

    whole, parts = batches(0, 1), [batches(rank, 3) for rank in range(3)]
    assert len(whole) == len(parts[0]) == 7
    for (images, labels, count), *divided in zip(whole, *parts, strict=True):
        assert count == len(labels)
        assert [part[2] for part in divided] == [count] * 3
        assert torch.equal(torch.cat([part[0] for part in divided]), images)
        assert torch.equal(torch.cat([part[1] for part in divided]), labels)
    with pytest.raises(UserError, match="batches of 11 cannot be divided among 6 processes"):
        ImageTask(dataset, how, 5, numerics, ProcessGroup(0, 6))


@pytest.mark.slow
def test_a_compiled_network_learns_the_same(dataset: DataSet, quick: Fidelity) -> None:
    nets = [convolutional(), convolutional()]
    for net in nets:
        net[3].p = 0.0  # compiled code has random numbers of its own
    outcomes = [
        train(net, dataset, quick.changed(compile=flag), 0)
        for net, flag in zip(nets, (False, True), strict=True)
    ]
    assert outcomes[1].ok, outcomes[1].detail
    assert outcomes[0].loss_sum == pytest.approx(outcomes[1].loss_sum, rel=1e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16"])
def test_a_gpu_learns_the_same(dataset: DataSet, quick: Fidelity, precision: str) -> None:
    net = convolutional()
    expected = train(convolutional(), dataset, quick, 0)
    outcome = train(net, dataset, quick.changed(precision=precision), 0, device="cuda")
    assert outcome.loss_sum == pytest.approx(expected.loss_sum, rel=0.05)
    assert next(net.parameters()).device.type == "cpu"
