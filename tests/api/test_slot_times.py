"""Compiled operators in all slots of a network: what is alike is timed once, and summed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import syno
from syno import Operator, UserError
from syno.measure.slots import ORIGINAL, SlotsRun, time_slots
from syno.network import models
from syno.operands.layers import fit_to_network
from syno.operands.lookup import NamedOperator
from syno.operators import zoo


def template(**options: int) -> nn.Module:
    torch.manual_seed(0)
    return models.slots(models.build("cnn-small", size=8, **options))


def fitted(name: str, net: nn.Module, **sizes: int) -> Operator:
    return fit_to_network(NamedOperator(name, zoo.load(name), zoo.binding(name)), net, sizes)


def timed(net: nn.Module, operators: dict[str, Operator], batch: int = 1) -> SlotsRun:
    example = torch.zeros(batch, 3, 8, 8)
    return time_slots(net, operators, example, rounds=20)


@pytest.mark.slow
def test_times_are_sums_over_slots() -> None:
    net = template(width=4, stages=2, layers=2)
    operators = {name: fitted(name, net) for name in ("conv2d", "depthwise-separable")}
    run = timed(net, operators)
    assert sum(run.counts.values()) == len(syno.slots(net))
    assert max(run.counts.values()) > 1  # what is alike is timed once
    found = {time.name: time for time in run.times}
    assert list(found) == [ORIGINAL, *operators]
    report = syno.layer_report(net)
    assert found[ORIGINAL].macs == found["conv2d"].macs == sum(r.macs for r in report.slots)
    assert found[ORIGINAL].replaced == 0
    for name in operators:
        time = found[name]
        assert (time.replaced, time.kept) == (len(report.slots), 0)
        kernels = {t.layer: t for t in run.kernels.times if t.kernel == f"{name} cpp"}
        pools = {t.layer: t.best_ms for t in run.kernels.times if t.kernel == "pool"}
        expected = sum(
            count * (kernels[label].best_ms + pools.get(label, 0.0))
            for label, count in run.counts.items()
        )
        assert time.best_ms == pytest.approx(expected)
        assert 0 < time.best_ms <= time.median_ms
        assert time.macs == operators[name].macs()
        assert time.params == operators[name].params()
        assert all(kernel.outputs > 0 for kernel in kernels.values())  # they were checked


def test_the_pooling_before_a_slot_of_stride_2_counts() -> None:
    layers = (nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, stride=2, padding=1))
    example, where = torch.zeros(1, 4, 8, 8), syno.conv2d(kernel=3, stride=(1, 2))
    net = syno.substitute(nn.Sequential(*layers), where=where, example_input=example)
    net.train()
    run = time_slots(net, {"conv2d": fitted("conv2d", net)}, example, rounds=20)
    assert net.training  # it is left as it was
    times = {(t.layer, t.kernel): t.best_ms for t in run.kernels.times}
    pooled = {name for name, slot in syno.slots(net).items() if slot.pool is not None}
    assert {layer for layer, kernel in times if kernel == "pool"} == pooled == {"1"}
    expected = times["0", "conv2d cpp"] + times["1", "conv2d cpp"] + times["1", "pool"]
    assert run.times[1].best_ms == pytest.approx(expected)


def test_slots_that_do_not_fit_count_with_their_layer() -> None:
    net = template(width=6, stages=2, layers=2)
    run = timed(net, {"grouped": fitted("grouped", net, g=4)}, batch=2)  # 6 channels: no 4 groups
    original, own = run.times
    fits = [name for name, slot in syno.slots(net).items() if slot.binding["C_in"] == 12]
    assert own.replaced == len(fits) > 0
    assert own.kept == len(syno.slots(net)) - len(fits) > 0
    times = {(t.layer, t.kernel): t.best_ms for t in run.kernels.times}
    expected = sum(
        count * times.get((label, "grouped cpp"), times[label, ORIGINAL])
        for label, count in run.counts.items()
    )
    assert own.best_ms == pytest.approx(expected)
    assert own.macs < original.macs
    assert all(t.batch == 2 for t in run.kernels.times)


def test_an_operator_that_fits_nowhere_is_refused() -> None:
    operator = fitted("grouped", template(width=6, stages=1, layers=2), g=3)
    with pytest.raises(UserError, match=r"operator 'grouped' fits no slot of the network\n  slots"):
        timed(template(width=4, stages=1, layers=2), {"grouped": operator})
