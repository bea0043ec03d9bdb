"""latency: what is timed, and what is not."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.codegen.verify import verify
from syno.measure import latency, step_slowdown
from syno.measure.timing import STREAM_BYTES, Controls, Timing, stream, streaming

from .networks import EXAMPLE, conv_operator, network


class Slow(nn.Module):
    """Does the work of the other network several times."""

    def __init__(self, net, times):
        super().__init__()
        self.net, self.times = net, times

    def forward(self, x):
        for _ in range(self.times):
            y = self.net(x)
        return y


class Named(nn.Module):
    """Writes its name down when it is called."""

    def __init__(self, name, calls):
        super().__init__()
        self.name, self.calls = name, calls

    def forward(self, x):
        self.calls.append(self.name)
        return x


def test_network_and_baseline_change_places_from_round_to_round():
    calls = []
    net, baseline = Named("net", calls), Named("baseline", calls)
    latency(net, (3, 8, 8), baseline=baseline, repeats=21, warmup=1)
    rounds = [tuple(calls[i : i + 2]) for i in range(2, len(calls), 2)]
    # With the control computation there are three, and each comes first in a third of the rounds.
    first, second = ("net", "baseline"), ("baseline", "net")
    assert rounds == [first, second, second] * 7


def test_the_ratio_is_that_of_the_work():
    net = network()
    found = latency(Slow(net, 12), (3, 8, 8), baseline=net, repeats=20, warmup=3)
    assert found.ratio > 3  # 12 on a quiet machine
    swapped = latency(net, (3, 8, 8), baseline=Slow(net, 12), repeats=20, warmup=3)
    assert swapped.ratio < 1 / 3
    assert found.median_ms == pytest.approx(found.ratio * found.baseline.median_ms)
    assert found.spread_ms >= 0
    assert found.control.median_ms > 0 and found.stream.median_ms > 0
    assert (found.threads, found.repeats, found.batch) == (1, 20, 1)


def test_a_training_step_is_compared_with_the_originals_and_changes_neither_network():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = torch.randn(16, 3, 16, 16)
    assert step_slowdown(net, Slow(net, 12), x) > 3  # 12 on a quiet machine
    assert step_slowdown(Slow(net, 12), net, x) < 1 / 3
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not net.training
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize(
    ("product", "memory", "noisy"), [(0.05, 0.05, False), (0.2, 0.05, True), (0.05, 0.2, True)]
)
def test_a_machine_is_noisy_if_either_fixed_computation_varies(product, memory, noisy):
    found = Controls(Timing(0.25, 0.25 * product), Timing(6.4, 6.4 * memory))
    assert found.noisy is noisy
    assert found.stream_gb_s == pytest.approx(STREAM_BYTES / 6.4e-3 / 1e9)
    assert found.text() == (
        f"product 0.250 ms (spread {product:.0%}), memory 10.5 GB/s (spread {memory:.0%})"
    )


def test_memory_is_streamed_before_and_after_what_is_measured():
    with streaming() as times:
        before = len(times)
    assert before > 0 and len(times) == 2 * before
    # More than the caches of common processors hold.
    assert stream()() == STREAM_BYTES // 4 and STREAM_BYTES >= 1 << 26


def test_without_a_baseline_there_is_no_ratio():
    found = latency(network(), (3, 8, 8), repeats=20, warmup=1)
    assert found.baseline is None
    assert found.ratio is None


def test_the_network_and_the_threads_are_left_as_they_were():
    net = network()
    net.train()
    net[1].eval()
    before = torch.get_num_threads()
    latency(net, (3, 8, 8), repeats=20, threads=before + 1)
    assert torch.get_num_threads() == before
    assert net.training
    assert not net[1].training
    assert all(p.grad is None for p in net.parameters())


def test_an_operator_needs_a_passed_verification_of_its_own_code():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), EXAMPLE)
    assert latency(net, (3, 8, 8), repeats=20).median_ms > 0
    operator = conv_operator()
    syno.replace(net, operator)
    with pytest.raises(UserError, match=r"'1.first.layer' has no passed verification"):
        latency(net, (3, 8, 8), repeats=20)
    other = verify(operator, {"C_in": 8, "C_out": 8, "H": 5})
    with pytest.raises(UserError, match="1 passed, of other code"):
        latency(net, (3, 8, 8), repeats=20, verifications=[other])
    right = verify(operator, syno.slots(net)["1.first"].kernel.binding)
    failed = replace(right, passed=False)
    with pytest.raises(UserError, match="0 passed, of other code"):
        latency(net, (3, 8, 8), repeats=20, verifications=[failed])
    assert latency(net, (3, 8, 8), repeats=20, verifications=[right]).median_ms > 0


def test_too_few_repeats_are_refused():
    for options, message in (
        ({"repeats": 19}, "'repeats' is an integer of at least 20, got 19"),
        ({"warmup": 0}, "'warmup' is an integer of at least 1"),
        ({"threads": 0}, "'threads' is an integer of at least 1"),
    ):
        with pytest.raises(UserError, match=message):
            latency(network(), (3, 8, 8), **options)
