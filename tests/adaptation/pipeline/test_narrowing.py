"""Networks with fewer channels for goals, in place of operators."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.adaptation.pipeline import channel_widths, narrowing, run
from syno.adaptation.pipeline.latency import InterleavedTimer
from syno.adaptation.pipeline.selection import OutOfReachError, Selector
from syno.codegen.export import export_network
from syno.network.surgery import layer_report

from .conftest import adapted, options


def macs(net: nn.Module) -> float:
    return channel_widths._Costs(net, torch.zeros(1, 4, 8, 8), {}).whole["macs"]


@pytest.fixture
def no_operators(monkeypatch):
    def refuse(*_):
        raise OutOfReachError("0.1x", ["macs: the least possible is 0.9x"])

    monkeypatch.setattr(Selector, "select", refuse)


def test_channels_go_where_operators_do_not_reach(trained, data, tmp_path, no_operators):
    notes = []

    def told(phase, done, total, text):
        if phase == "note":
            notes.append(text)

    given = {"macs": "0.6x", "options": options(widths=True), "name": "narrow", "progress": told}
    store = str(tmp_path / "runs.db")
    found = adapted(trained, data, store, **given)
    (network,) = found.networks
    assert any("out of reach with operators: macs 0.6x has fewer channels" in n for n in notes)
    assert network.row.about == "fewer channels" and network.slots == ()
    assert network.row.macs == pytest.approx(macs(network.net))
    assert 0.3 * found.original.macs < network.row.macs <= 0.6 * found.original.macs
    (reached,) = network.row.goals
    assert (reached.resource, reached.missed) == ("macs", False)
    assert network.row.value > found.original.value - 0.1
    assert all(0 < row.after < row.before and row.error > 0 for row in network.widths)
    sizes = {row.group: row.after for row in network.widths}
    for name, width in sizes.items():
        assert len(network.net.get_submodule(name).weight) == width
    assert network.row.params == sum(p.numel() for p in network.net.parameters())
    # It is printed, drawn, stored and exported as others are.
    (section,) = (each for each in found.sections() if each.title == "Channels of macs 0.6x")
    assert section.table is not None and len(section.table.rows) == len(network.widths)
    assert found.to_json()["networks"][0]["widths"][0]["group"] == network.widths[0].group
    page = found.report(tmp_path / "page.html").read_text()
    assert "Channels" in page and 'id="slots"' not in page
    assert found.picture(tmp_path / "picture.png").is_file()
    x = data.tensors[0][:3]
    written = export_network(network.net, tmp_path / "net", x, format="cpp-network")
    y = syno.inference.load(written.code)(x.numpy())
    np.testing.assert_allclose(y, network.net(x).detach().numpy(), rtol=1e-3, atol=1e-3)


def test_it_is_continued(trained, data, tmp_path, no_operators, monkeypatch):
    store = str(tmp_path / "runs.db")
    given = {"macs": "0.6x", "options": options(widths=True), "name": "narrow"}
    first = adapted(trained, data, store, **given).networks[0]
    for name in ("eliminations", "narrowed"):  # journaled, and behind a checkpoint
        monkeypatch.setattr(channel_widths, name, None)
    again = adapted(trained, data, store, **given).networks[0]
    assert again.row == first.row and again.widths == first.widths
    for one, other in zip(first.net.parameters(), again.net.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    with pytest.raises(UserError, match=r"options\.widths: true, now false"):
        adapted(trained, data, store, **{**given, "options": options()})


def test_goals_of_latency_are_met(trained, data, monkeypatch, no_operators):
    """With a latency that is that of the MACs."""
    monkeypatch.setattr(
        InterleavedTimer, "ratio", lambda self, net, engine=None: macs(net) / macs(self.original)
    )
    for goal in (0.7, 0.45):
        found = adapted(
            trained, data, "sqlite://", macs=None, latency=f"{goal}x", options=options(widths=True)
        )
        (network,) = found.networks
        assert network.widths and goal - 0.15 < network.row.ratio <= goal
        assert not network.row.goals[0].missed


@pytest.mark.parametrize(("distance", "operators"), [(0.0, True), (1e9, False)])
def test_the_network_nearest_to_the_original_is_chosen(
    distance, operators, trained, data, monkeypatch
):
    select = Selector.select

    def changed(self, *arguments):
        return dataclasses.replace(select(self, *arguments), distance=distance)

    monkeypatch.setattr(Selector, "select", changed)
    found = adapted(trained, data, "sqlite://", options=options(widths=True))
    (network,) = found.networks
    assert bool(network.slots) == operators
    assert network.widths or operators
    assert network.row.macs <= 0.6 * found.original.macs


def test_a_goal_that_the_original_keeps_is_no_reason_for_fewer_channels(trained, data):
    found = adapted(trained, data, "sqlite://", macs="1x", options=options(widths=True))
    assert found.networks[0].slots and not found.networks[0].widths


def test_macs_of_other_operations_count(trained, data, monkeypatch, no_operators):
    """As many as those of the layers: then half of all is none of the layers."""

    def more(template):
        found = layer_report(template)
        return SimpleNamespace(macs=2 * found.macs, params=found.params)

    for module in (run, channel_widths):
        monkeypatch.setattr(module, "layer_report", more)
    found = adapted(trained, data, "sqlite://", macs="0.8x", options=options(widths=True))
    (network,) = found.networks
    layers = macs(trained)
    assert found.original.macs == 2 * layers
    assert network.row.macs == pytest.approx(layers + macs(network.net))
    assert 0.7 * 2 * layers < network.row.macs <= 0.8 * 2 * layers
    with pytest.raises(UserError, match=r"the goal 0\.1x is out of reach"):
        adapted(trained, data, "sqlite://", macs="0.5x", options=options(widths=True))


def test_several_goals_at_once(trained, data, no_operators):
    found = adapted(
        trained, data, "sqlite://", macs="0.8x", params="0.5x", options=options(widths=True)
    )
    (network,) = found.networks
    assert network.row.params <= 0.5 * found.original.params
    assert network.row.macs <= 0.8 * found.original.macs


def test_what_cannot_be_narrowed_is_said(trained, data, monkeypatch):
    notes = []

    def refuse(*_):
        raise UserError("torch.export cannot trace the Net: no reason\n  what to do: nothing")

    monkeypatch.setattr(channel_widths, "channel_groups", refuse)
    found = adapted(
        trained,
        data,
        "sqlite://",
        options=options(widths=True),
        progress=lambda phase, done, total, text: notes.append(text) if phase == "note" else None,
    )
    assert found.networks[0].slots and not found.networks[0].widths
    assert (
        notes.count("no network with fewer channels: torch.export cannot trace the Net: no reason")
        == 1
    )
    assert run.Narrowing is narrowing.Narrowing


def test_out_of_reach_for_both(trained, data, no_operators):
    with pytest.raises(UserError, match=r"the goal 0\.1x is out of reach"):
        adapted(trained, data, "sqlite://", macs="0.001x", options=options(widths=True))
