"""Activations within a limit of memory."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.adaptation.activations import record
from syno.adaptation.pipeline import recorder as module
from syno.adaptation.pipeline.recorder import Recorder


@pytest.fixture(scope="module")
def net(trained: nn.Module) -> nn.Module:
    return syno.substitute(trained, example_input=torch.randn(1, 4, 8, 8)).eval()


@pytest.fixture(scope="module")
def inputs() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return list(torch.randn(32, 4, 8, 8, generator=generator).split(8))


def made(
    net: nn.Module, inputs: list[torch.Tensor], most: int
) -> tuple[Recorder, Callable[[], int]]:
    runs = 0

    def copied() -> nn.Module:
        nonlocal runs
        runs += 1
        return copy.deepcopy(net)

    return Recorder(copied, lambda: inputs, most), lambda: runs


def test_all_slots_are_recorded_at_once_where_the_memory_suffices(net, inputs) -> None:
    recorder, runs = made(net, inputs, 1 << 30)
    expected = record(copy.deepcopy(net), inputs)
    assert list(recorder) == list(expected) and len(recorder) == 3
    before = runs()
    for slot, activations in expected.items():
        torch.testing.assert_close(recorder[slot].x, activations.x)
        torch.testing.assert_close(recorder[slot].y, activations.y)
    assert runs() == before + 1
    assert not recorder.streams and recorder.samples == 32


def test_slots_stream_one_by_one_under_a_limit(net, inputs) -> None:
    """All 32 samples of each slot, of which only one is in memory."""
    expected = record(copy.deepcopy(net), inputs)
    largest = max(each.x.nbytes + each.y.nbytes for each in expected.values())
    recorder, runs = made(net, inputs, largest)
    assert recorder.streams
    before = runs()
    for slot, activations in expected.items():
        torch.testing.assert_close(recorder[slot].x, activations.x)
        torch.testing.assert_close(recorder[slot].y, activations.y)
        assert len(recorder._kept) == 1
    assert runs() == before + 3


def test_a_small_limit_keeps_fewer_samples(net, inputs) -> None:
    recorder, _ = made(net, inputs, 5 * 2 * 8 * 64 * 4)
    assert len(recorder["first"].x) == recorder.samples == 5
    with pytest.raises(UserError, match=r"one sample in slot 'first' need 0\.0 MiB"):
        made(net, inputs, 100)[0]["first"]


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_the_limit_is_halved_where_the_memory_is_short(net, inputs, monkeypatch, error) -> None:
    limits = []

    def short(*given, most_bytes, **more):
        limits.append(most_bytes)
        if most_bytes > 1 << 15:
            raise error
        return record(*given, most_bytes=most_bytes, **more)

    recorder, _ = made(net, inputs, 1 << 17)
    len(recorder)
    monkeypatch.setattr(module, "record", short)
    assert 0 < len(recorder["first"].x) < 32
    assert limits == [1 << 17, 1 << 16, 1 << 15]
    # It stays that small.
    recorder["second"]
    assert limits[-1] == 1 << 15


def test_memory_that_does_not_suffice_for_one_sample_is_an_error(net, inputs, monkeypatch) -> None:
    def never(*given, **more):
        raise MemoryError

    recorder, _ = made(net, inputs, 1 << 17)
    len(recorder)
    monkeypatch.setattr(module, "record", never)
    with pytest.raises(UserError, match=r"memory does not suffice .* slot 'first'"):
        recorder["first"]


def test_other_errors_are_not_taken_for_a_lack_of_memory(net, inputs, monkeypatch) -> None:
    def wrong(*given, **more):
        raise RuntimeError("shapes do not match")

    recorder, _ = made(net, inputs, 1 << 17)
    len(recorder)
    monkeypatch.setattr(module, "record", wrong)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        recorder["first"]


def test_activations_that_are_not_finite_are_an_error(net, inputs) -> None:
    bad = [batch.clone() for batch in inputs]
    bad[2][0, 0, 0, 0] = float("nan")
    with pytest.raises(UserError, match="activations of slot 'stem' are not finite"):
        made(net, bad, 1 << 30)[0]["stem"]
