"""`syno report`, and what it takes out of a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from syno.cli.main import cli
from syno.report import Report, gather
from syno.report.model import Status
from syno.store import Store

from .conftest import KEYS, LINEAR


@pytest.fixture
def report(runs: str) -> Report:
    with Store.open(runs, read_only=True) as store:
        return gather(store.summary())


def test_numbers_come_from_the_store(report: Report) -> None:
    linear, conv = report.operators
    assert (linear.number, linear.key) == (1, KEYS[LINEAR])
    assert (linear.accuracy, linear.latency_ms, linear.macs) == (0.85, 1.2, 120_000)
    assert linear.latency_ratio == pytest.approx(0.8)
    assert (conv.status, conv.reason) == (Status.ERROR, "non_finite_loss")
    assert report.baseline.accuracy == 0.9
    assert report.baseline.latency_ms == 1.5
    assert report.rejections == {"cannot-finish": 7}


def test_formula_drawing_and_code_come_from_the_operator(report: Report) -> None:
    linear = report.operators[0]
    assert linear.formula_line == "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * w0[o,i]"
    assert linear.dot.startswith("digraph")
    assert linear.tree.startswith("input x\n")
    assert [source.code.count("class SynoOperator") for source in linear.sources] == [1, 1]


def test_layers_stand_beside_the_originals(report: Report) -> None:
    first, second = report.operators[0].layers
    assert (first.multiplicity, first.macs, first.original_macs) == (2, 8 * 8 * 64, 36_864)
    assert (second.multiplicity, second.macs, second.original_macs) == (1, 8 * 16 * 16, 18_432)


def test_settings_are_reported(report: Report) -> None:
    settings = {heading: dict(pairs) for heading, pairs in report.settings.items()}
    assert settings["Specification"]["input"] == "[N, C_in: unordered, H, H]"
    assert settings["Specification"]["bindings"] == "C_in=8 C_out=8 H=8  (in 2 layers)\n" + (
        "C_in=8 C_out=16 H=4"
    )
    assert settings["Specification"]["constraints"] == "min_unfold_ratio 1.3"
    assert settings["Network and training"]["model"] == "resnet-small"
    assert settings["Environment"]["device"] == "a processor"


def test_the_command_writes_page_and_pictures(runs: str, tmp_path: Path) -> None:
    out = tmp_path / "made" / "page.html"
    result = CliRunner().invoke(cli, ["report", runs, "-o", str(out), "--png", "--json"])
    assert result.exit_code == 0, result.output
    written = json.loads(result.stdout)["written"]
    assert written == [
        str(out),
        str(out.with_name("front.png")),
        str(out.with_name("progress.png")),
    ]
    page = out.read_text()
    assert "resnet-small on digits" in page
    assert "8ae7e767" in page


def test_the_store_is_only_read(runs: str, tmp_path: Path) -> None:
    before = Path(runs).read_bytes()
    result = CliRunner().invoke(cli, ["report", runs, "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 0
    assert Path(runs).read_bytes() == before
