"""What is said, and given, where a rival is as fast and as good as what was found."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.adaptation.pipeline import adapt
from syno.adaptation.pipeline.adaptation import Adaptation
from syno.adaptation.pipeline.in_format import OWN_INT8
from syno.adaptation.pipeline.results import AdaptedNetwork, NetworkRow, Reached
from syno.store.objective import ACCURACY

from .conftest import adapted, options


def row(name: str, ratio: float, value: float) -> NetworkRow:
    return NetworkRow(name, "", value, (value,), ratio=ratio)


def network(name: str, ratio: float, value: float) -> AdaptedNetwork:
    found = row(name, ratio, value)
    if name.endswith("x"):
        found = dataclasses.replace(found, goals=(Reached("latency", ratio, ratio),))
    return AdaptedNetwork(found, (), nn.Identity())


def results(*rivals: AdaptedNetwork, written: bool = True) -> Adaptation:
    return Adaptation(
        study="one",
        objective=ACCURACY,
        original=row("original", 1.0, 0.90),
        networks=[network("0.7x", 0.7, 0.900), network("0.5x", 0.5, 0.895)],
        rivals=[each.row for each in rivals],
        others={each.name: each for each in rivals} if written else {},
    )


def test_a_rival_behind_changes_nothing():
    found = results(network("slow", 0.71, 0.91), network("bad", 0.3, 0.88))
    assert [found.marks(each.row) for each in found.networks] == [[], []]
    assert found.best is found.networks[1]


def test_a_rival_ahead_takes_the_place_of_the_network():
    rivals = network("pruned", 0.45, 0.8945), network("pruned more", 0.4, 0.8935)
    found = results(*rivals)
    assert found.marks(found.networks[1].row) == ["is no better than pruned"]
    assert found.marks(found.networks[0].row) == []
    assert found.best is rivals[0] is found.network("pruned")
    assert "is no better than pruned" in str(found)


def test_the_fastest_of_those_ahead_counts():
    found = results(network("one", 0.45, 0.896), network("other", 0.26, 0.896))
    assert found.ahead_of(found.networks[1].row) is found.rivals[1]
    assert found.best is found.network("other")


def test_a_rival_of_another_engine_is_named_but_cannot_be_written():
    found = results(network("theirs", 0.3, 0.9), written=False)
    assert [found.marks(each.row) for each in found.networks] == [["is no better than theirs"]] * 2
    assert found.best is None
    with pytest.raises(UserError, match="no network loses as little as is allowed"):
        found.ship("nowhere")


def test_a_rival_that_loses_too_much_is_not_the_best():
    found = results(network("pruned", 0.4, 0.8805))
    found.networks[1].row = dataclasses.replace(found.networks[1].row, value=0.88)
    found.max_drop = 1.0
    assert found.best is found.networks[0]


def test_the_original_in_int8_stands_beside_and_is_shipped(trained, data, tmp_path):
    told: list[str] = []

    def progress(phase: str, done: int, total: int, remark: str) -> None:
        if phase == "note":
            told.append(remark)

    given = {"options": options(engine="syno-cpp"), "max_drop": 90.0, "progress": progress}
    given |= {"name": "beside"}
    found = adapted(trained, data, str(tmp_path / "runs.db"), **given)
    (rival,) = found.rivals
    assert rival.name == f"original, {OWN_INT8}" and rival.engine == OWN_INT8
    assert rival.value == pytest.approx(found.original.value, abs=0.05)
    said = [each for each in told if each.startswith(f"the original in {OWN_INT8} takes")]
    assert len(said) == (rival.ratio < 1.0)
    written = found.export(tmp_path / "net", rival.name)
    x = data.tensors[0][:8]
    with torch.no_grad():
        expected = trained(x).numpy()
    y = syno.inference.load(written.code)(x.numpy())
    assert 0 < np.abs(y - expected).max() < 0.1 * np.abs(expected).max()  # of integers
    again = adapted(trained, data, str(tmp_path / "runs.db"), **given)
    assert again.rivals == found.rivals


def test_rivals_are_of_the_kinds_that_were_chosen(trained, data, tmp_path):
    given = {"macs": None, "latency": "1x", "rival": ["pruning", "trained-on"]}
    found = adapted(trained, data, str(tmp_path / "runs.db"), **given)
    assert [row.way for row in found.rivals] == ["original, trained on", "channel pruning"]


def test_an_unknown_kind_of_rivals_is_an_error_before_all_else():
    with pytest.raises(UserError, match=r"'rival' is one of engines, formats, .*got: 'prunning'"):
        syno.adapt(nn.Identity(), None, rival=["prunning"])
    with pytest.raises(UserError, match="'rival' is no list"):
        syno.adapt(nn.Identity(), None, rival="pruning")


def test_a_rival_that_is_not_installed_is_an_error_before_all_else(monkeypatch):
    monkeypatch.setattr(adapt, "has_torch_pruning", lambda: False)
    with pytest.raises(UserError, match="the rival torch-pruning is not installed"):
        syno.adapt(nn.Identity(), None, rival=["torch-pruning"])
