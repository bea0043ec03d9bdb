"""`syno bench latency`: files that are continued, and accuracies whose right values are known."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from syno import UserError, zoo
from syno.cli.main import cli
from syno.measure.kernels import sizes
from syno.measure.roofline import Level, Roofline
from syno.prediction import RESOURCES, Device, LatencyPredictor, kernel_work
from syno_lab.experiments import latency_rows
from syno_lab.experiments.latency_accuracy import MACS, PREDICTOR, ROOFLINE, accuracies
from syno_lab.experiments.latency_rows import (
    KernelRow,
    KernelRows,
    family_of,
    measure_rows,
    read_rows,
    subjects,
)

DEVICE = Device("a processor", 16, Roofline(1, 1e11, (Level(1 << 20, 1e11), Level(1 << 25, 1e10))))
SMALL = {"one": ((8, 8),), "two": ((8, 6), (8, 4))}


@pytest.fixture
def here(monkeypatch):
    """Small layers, a known device, and kernels of the zoo that are quickly compiled."""
    monkeypatch.setattr(latency_rows, "NETWORKS", SMALL)
    monkeypatch.setattr(Device, "here", classmethod(lambda cls, threads=1: DEVICE))
    monkeypatch.setattr(Device, "name_here", staticmethod(lambda: DEVICE.name))
    chosen = {name: zoo.load(name) for name in ("conv1x1", "depthwise", "pixel-unshuffle")}
    monkeypatch.setattr(latency_rows, "zoo_operators", lambda names: chosen)


def measured(path, **changes):
    return measure_rows(path, **{"operators": 2, "layers": 2, "seed": 1} | changes)


def test_every_operator_is_in_a_layer_of_each_network_first(here):
    found = subjects(3, 2, 0)
    assert len(found) == 6
    for name in ("conv1x1", "depthwise", "pixel-unshuffle"):
        assert {row.network for row in found if row.operator == name} == {"one", "two"}
    assert subjects(3, 2, 0) == found != subjects(3, 2, 1)
    assert found[0].family == family_of(zoo.load("conv1x1"))


def test_a_file_is_continued_and_never_measured_twice(here, tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    first = measured(path, seconds=1e-9)
    assert (len(first.rows), first.pending) == (0, 4)
    seen = []
    whole = measured(path, progress=lambda done, total, what: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)] and whole.pending == 0
    assert all(row.best_ms is not None and row.best_ms > 0 for row in whole.rows)
    content = path.read_bytes()
    # What a kill leaves: a line without an end, and a kernel that was begun.
    last = content.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(content[: last + 20])
    again = measured(path)
    assert again.rows[:-1] == whole.rows[:-1] and again.rows[-1].name == whole.rows[-1].name
    monkeypatch.setattr(latency_rows, "_measured", lambda *_: pytest.fail("measured again"))
    assert measured(path) == again == read_rows(path)


def test_a_kernel_that_ends_the_process_is_left_out(here, tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"

    def killed(row, device):
        raise KeyboardInterrupt

    monkeypatch.setattr(latency_rows, "_measured", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            measured(path)
    known = lambda row, _: dataclasses.replace(row, best_ms=1.0)  # noqa: E731
    monkeypatch.setattr(latency_rows, "_measured", known)
    found = measured(path)
    assert [row.reason for row in found.missing] == ["it ended the process"]
    assert len(found.measured) == 3


def test_code_that_is_wrong_is_not_timed(here, tmp_path, monkeypatch):
    def wrong(*_, **__):
        raise UserError("the compiled code of it is wrong: 1 is 2\n  hint: none")

    monkeypatch.setattr(latency_rows, "compiled_runner", wrong)
    found = measured(tmp_path / "rows.jsonl")
    assert not found.measured
    assert {row.reason for row in found.missing} == {"the compiled code of it is wrong: 1 is 2"}


def test_files_that_cannot_be_continued(here, tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    measured(path, seconds=1e-9)
    for change in ({"operators": 1}, {"layers": 1}, {"seed": 2}, {"threads": 2}):
        with pytest.raises(UserError, match=f"expected: {next(iter(change))}"):
            measured(path, **change)
    with latency_rows._locked(path), pytest.raises(UserError, match="another process writes"):
        measured(path)
    monkeypatch.setattr(Device, "name_here", staticmethod(lambda: "another"))
    with pytest.raises(UserError, match="expected: device a processor"):
        measured(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no latencies"),
        ("{}\n", "no file of latencies"),
        ("text\n", "damaged in line 1"),
        ("[1]\n", "damaged in line 1"),
        ('{"format": "syno latencies 1"}\n', "damaged"),
    ],
)
def test_files_that_hold_no_latencies(tmp_path, content, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_rows(path)
    with pytest.raises(UserError, match="cannot read the latencies"):
        read_rows(tmp_path / "missing")


def test_rows_that_are_damaged(here, tmp_path):
    path = tmp_path / "rows.jsonl"
    measured(path, seconds=1e-9)
    head = path.read_text()
    row = dataclasses.asdict(subjects(2, 2, 1)[0])
    for change in ({"best_ms": "fast"}, {"best_ms": -1}, {"text": "y = x"}, {"more": 1}):
        path.write_text(head + json.dumps(row | change) + "\n")
        with pytest.raises(UserError):
            read_rows(path)


@pytest.fixture(scope="module")
def known():
    """Rows whose latency is a function of the work, with little noise."""
    rng = np.random.default_rng(0)
    rows = []
    names = ("conv2d", "operator-1", "operator-2", "depthwise", "grouped", "conv1x1", "shift-conv")
    for name in (*names, "pixel-shuffle", "dilated"):
        operator = zoo.load(name)
        for network, layers in {"a": ((64, 56), (128, 28)), "b": ((32, 32), (64, 16))}.items():
            for channels, size in layers:
                binding = sizes(operator, channels, size, 1, {"g": 8})
                work = kernel_work(operator, binding, DEVICE)
                seconds = sum(2 * work[resource] for resource in RESOURCES)
                milliseconds = 1e3 * seconds * math.exp(rng.normal(0, 0.02))
                row = KernelRow(
                    name, operator.text, name, network, f"{channels}@{size}", binding, milliseconds
                )
                rows.append(row)
    return KernelRows(DEVICE, 9, 2, 0, len(rows), tuple(rows))


def test_the_predictor_is_better_than_one_number(known):
    found = {(each.left_out, each.model): each for each in accuracies(known)}
    assert {name for name, _ in found} == {"families", "a", "b"}
    for left_out in ("families", "a", "b"):
        predictor, macs, roofline = (
            found[left_out, model] for model in (PREDICTOR, MACS, ROOFLINE)
        )
        assert predictor.kernels == macs.kernels == (36 if left_out == "families" else 18)
        assert predictor.operators == 9
        assert predictor.spearman > 0.85 and predictor.error < 1.25
        assert predictor.error < min(macs.error, roofline.error)
        assert predictor.within > 0.6 and macs.within is roofline.within is None
    # Copies have no MACs.
    assert found["families", MACS].spearman < found["families", PREDICTOR].spearman


def test_few_rows_are_refused(known):
    with pytest.raises(UserError, match="at least 20"):
        accuracies(dataclasses.replace(known, rows=known.rows[:19]))


def test_the_command_compares_a_file(known, tmp_path):
    path, predictor = tmp_path / "rows.jsonl", tmp_path / "predictor.json"
    head = {"format": latency_rows.FORMAT, "device": DEVICE.to_json(), "operators": 9}
    head |= {"layers": 2, "seed": 0, "kernels": len(known.rows) + 1}
    lines = [head, *map(dataclasses.asdict, known.rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ["bench", "latency", "--out", str(path), "--show"]
    done = CliRunner().invoke(cli, [*given, "--json", "--predictor", str(predictor)])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["operators"], found["kernels"], found["pending"]) == (9, 36, 1)
    assert found["accuracies"][0]["model"] == PREDICTOR
    assert len(LatencyPredictor.load(predictor).samples) == 36
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 1
    assert "rank correlation" in done.stdout and "1 pending" in done.stdout


def test_a_full_disk_is_an_error_in_words():
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(UserError, match="cannot write the latencies"),
    ):
        latency_rows._add(full, {"started": []})
