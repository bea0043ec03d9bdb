"""`syno bench layers`: each layer once, verified before it is timed, and kept when it is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from syno import UserError
from syno.cli.main import cli
from syno.engines.compare import compare_engines
from syno.measure.roofline import ImpossibleTimeError, Level, Roofline
from syno.operators import zoo
from syno_lab.experiments.layers import bench, results
from syno_lab.experiments.layers.bench import LayerBench, bench_layers
from syno_lab.experiments.layers.tables import layers_table, means_table
from syno_lab.experiments.layers.tvm_layer import TvmLayer

SMALL = LayerBench(
    model="cnn-small",
    model_options={"width": 8, "layers": 2},
    size=8,
    operators=("conv2d", "nas-pte-1", "nas-pte-2"),
    engines=("eager", "channels-last"),
    threads=1,
    rounds=2,
)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 1e15)


def use(monkeypatch: pytest.MonkeyPatch, speed: float) -> None:
    """A machine with so many FLOP, and bytes, a second."""
    roofline = Roofline(1, speed, (Level(1 << 30, speed),))
    monkeypatch.setattr(bench, "measure_roofline", lambda threads: roofline)
    monkeypatch.setattr(bench, "reachable", lambda roofline, *_: roofline)


def labels(given: LayerBench, path: Path) -> list[str]:
    return [run.layer for run in bench_layers(given, path).layers]


def test_layers_have_times_of_every_subject_that_fits(tmp_path: Path) -> None:
    found = bench_layers(SMALL, tmp_path / "l.json")
    assert sum(run.count for run in found.layers) > 0
    for run in found.layers:
        subjects = {time.subject for time in run.times}
        assert {"original", "conv2d"} <= subjects
        # Half of the channels of sequence 1 come from 2 groups, the others from 4.
        if "nas-pte-1" in subjects:
            macs = run.subjects["original"].macs
            assert macs is not None
            assert run.subjects["nas-pte-1"].macs == pytest.approx(macs * (1 / 2 + 1 / 4) / 2)
        else:
            assert "nas-pte-1 in eager" in run.failures
        original, conv2d = run.subjects["original"], run.subjects["conv2d"]
        assert 0 < original.least_macs == conv2d.least_macs < conv2d.macs
        reason = run.failures.get("nas-pte-2 in eager")
        assert ("nas-pte-2" in subjects) is (reason is None)
        assert reason is None or "C_in - 16 = " in reason or "C_out - 16 = " in reason
        assert run.environment["clocks_mhz"] is not None and run.environment["threads"] == 1
        for time in run.times:
            assert time.error < 1e-3 and time.roofline is None
            assert 0 < time.floor_ms < time.best_ms
        rival = run.time("original", run.rival)
        assert rival is not None and rival.speedup == 1
    assert any("nas-pte-2 in eager" in run.failures for run in found.layers)
    assert len(layers_table(found).rows) == len(found.layers)
    assert [row[0] for row in means_table(found).rows] == found.subjects()


def test_a_file_is_gone_on_with_and_no_layer_is_measured_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.json"
    every = labels(SMALL, tmp_path / "all.json")
    assert len(every) > 1
    one = LayerBench(**{**vars(SMALL), "layers": (every[-1],)})
    assert labels(one, path) == [every[-1]]
    before = results.read(path)
    calls: list[object] = []

    def counted(*given: object, **options: object) -> object:
        calls.append(given)
        if len(calls) == len(every) - 1:
            raise KeyboardInterrupt
        return compare_engines(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(bench, "compare_engines", counted)
    with pytest.raises(KeyboardInterrupt):
        bench_layers(SMALL, path)
    monkeypatch.setattr(bench, "compare_engines", compare_engines)
    after = bench_layers(SMALL, path)
    assert [run.layer for run in after.layers] == every
    assert after.layers[-1] == before.layers[-1]


def test_a_file_of_other_settings_sources_or_another_machine_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    one = LayerBench(**{**vars(SMALL), "operators": ("conv2d",), "engines": ("eager",)})
    bench_layers(one, path)
    with pytest.raises(UserError, match="of another rounds"):
        bench_layers(LayerBench(**{**vars(one), "rounds": 3}), path)
    with pytest.raises(UserError, match="of another operators"):
        bench_layers(LayerBench(**{**vars(one), "operators": ("grouped",)}), path)
    content = json.loads(path.read_text())
    run = content["layers"][0]
    assert run["stream_gb_s"] > 0 and run["control_ms"] > 0
    run["environment"]["commit"], before = "another commit", run["environment"]["commit"]
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"of other sources(.|\n)*measure all layers again"):
        bench_layers(one, path)
    run["environment"]["commit"] = before
    run["environment"]["device"] = "another processor"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="of another machine"):
        bench_layers(one, path)
    path.write_text("{}")
    with pytest.raises(UserError, match="holds no times of layers"):
        bench_layers(one, path)


def test_a_time_below_the_floor_is_an_error_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, 1.0)
    with pytest.raises(ImpossibleTimeError, match="less than this machine can do"):
        bench_layers(SMALL, tmp_path / "l.json")
    assert not (tmp_path / "l.json").exists()


def test_macs_on_zero_padding_are_counted_for_convolutions_alone() -> None:
    conv = nn.Conv2d(4, 6, 3, padding=1, groups=2)
    macs, padding = bench._macs(conv, torch.zeros(2, 4, 5, 5))
    assert macs == 2 * 6 * 2 * (3 * 5) ** 2
    assert macs - padding == 2 * 6 * 2 * (3 * 5 - 2) ** 2
    assert bench._macs(nn.Linear(3, 4), torch.zeros(2, 3)) == (0, 0)


def test_wrong_names_are_said_before_anything_is_measured(tmp_path: Path) -> None:
    for changed, match in (
        ({"layers": ("64x57",)}, "has no layer '64x57'"),
        ({"engines": ("onnx",)}, "no inference engine 'onnx'"),
        ({"operators": ("nas-pte-4",)}, "nas-pte-4"),
    ):
        with pytest.raises(UserError, match=match):
            bench_layers(LayerBench(**{**vars(SMALL), **changed}), tmp_path / "l.json")
    assert not (tmp_path / "l.json").exists()


def test_tvm_takes_single_operators_alone(tmp_path: Path) -> None:
    example = torch.randn(1, 8, 8, 8)
    module = zoo.module("nas-pte-1", 8, 8).eval()
    with pytest.raises(UserError, match="single operators"):
        TvmLayer(tmp_path, 1, lambda _: None).prepare(nn.Sequential(module), example, 1)


class Tuned:
    """What MetaSchedule finds, without a search: the convolution itself."""

    def prepared(
        self, x: object, weights: list[object], shape: tuple[int, ...]
    ) -> Callable[[], torch.Tensor]:
        (weight,) = (torch.from_numpy(each) for each in weights)  # type: ignore[arg-type]
        image = torch.from_numpy(x)  # type: ignore[arg-type]
        assert tuple(weight.shape) == (8, 8, 3, 3)
        return lambda: nn.functional.conv2d(image, weight, padding=1)


def test_tvm_gets_the_weights_of_the_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def compile_tuned(source: str, folder: Path, **given: object) -> Tuned:
        asked.append(given)
        return Tuned()

    monkeypatch.setattr("syno.tune.tvm_schedules.compile_tuned", compile_tuned)
    layer = nn.Conv2d(8, 8, 3, padding=1, bias=False).eval()
    example = torch.randn(1, 8, 8, 8)
    run = TvmLayer(tmp_path, 7, lambda _: None).prepare(layer, example, 1)
    assert torch.allclose(run(), layer(example), atol=1e-5)
    assert asked[0]["trials"] == 7 and asked[0]["threads"] == 1


def test_the_command_prints_tables_and_shows_them_again(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    words = ["bench", "layers", "--model", "cnn-small", "--size", "8", "--rounds", "20"]
    words += ["--model-option", "width=8", "--model-option", "layers=1", "--threads", "1"]
    words += ["--operators", "conv2d", "--engines", "eager", "--out", str(path)]
    first = CliRunner().invoke(cli, words)
    assert first.exit_code == 0, first.output
    assert "conv2d" in first.stdout and "1.00x" in first.stdout
    again = CliRunner().invoke(cli, ["bench", "layers", "--out", str(path), "--show", "--json"])
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == json.loads(path.read_text())
    absent = CliRunner().invoke(cli, ["bench", "layers", "--out", "absent.json", "--show"])
    assert absent.exit_code == 2 and "holds no times of layers" in absent.stderr
