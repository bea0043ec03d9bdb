"""Known networks in engines: the detector, one process, files, tables and pictures."""

import dataclasses
import json

import pytest
import torch

from syno._core import UserError
from syno.engines import engine
from syno_lab.experiments.child import ProcessLimits
from syno_lab.experiments.networks import process, sweep, tables, zoo
from syno_lab.experiments.networks.picture import save_ratios
from syno_lab.experiments.networks.process import EngineTime, ProcessTimes
from syno_lab.experiments.networks.sweep import NetworksSweep, NetworksTimes, Setting, Visit

SMALL = Setting(1, 1)


def times(**ms):
    return ProcessTimes({k: EngineTime(v, v, v, 1.0, 1e-6) for k, v in ms.items()}, 1.0, 9.0, False)


def of(engine_name, ms, network="one", repetition=0):
    name = engine_name.replace("-", "_")
    found = times(**{name: ms})
    found = dataclasses.replace(found, engines={engine_name: found.engines[name]})
    return Visit(network, SMALL, (engine_name,), repetition), found


def test_the_detector_gives_maps_of_three_sizes():
    net = zoo.Detector(width=4, classes=1).eval()
    shapes = [list(each.shape) for each in net(torch.zeros(2, 3, 64, 96))]
    assert shapes == [[2, 18, 8, 12], [2, 18, 4, 6], [2, 18, 2, 3]]


@pytest.mark.parametrize("name", ["openvino", "syno-cpp"])
def test_engines_run_the_detector(name, monkeypatch):
    if not engine.available([name]):
        pytest.skip(f"the inference engine {name} is not installed")
    torch.manual_seed(0)
    net = zoo.with_statistics(zoo.Detector(width=4, classes=1).eval())
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(process, "network", lambda _: net)
    monkeypatch.setattr(process, "images", lambda count, seed=0: x.repeat(count, 1, 1, 1)[:count])
    found = process.measured("detector", [name], batch=2, threads=1, rounds=2)
    each = found.engines[name]
    assert each.reason == "" and each.error < 1e-4
    assert 0 < each.low_ms <= each.median_ms <= each.high_ms
    assert each.prepare_s > 0 and each.load_ms > 0 and each.size_mb > 0
    assert each.memory_mb is not None


def test_the_ratio_is_to_the_fastest_rival_by_the_least_median():
    visits = [of("openvino", 4.0), of("openvino", 3.0, repetition=1), of("onnxruntime", 6.0)]
    visits += [of("syno", 2.5), of("syno-cpp", 2.0)]
    visits.append((Visit("one", SMALL, ("openvino", "syno")), times(openvino=5.0, syno=2.6)))
    found = NetworksTimes({}, visits)
    assert found.ratio(SMALL, "one") == found.mean_ratio(SMALL) == 1.5
    (row,) = tables.times_table(found, SMALL)
    assert row == ("one", "6", "3 (5)", "2.5", "2", "1.50x", "1e-06")
    assert tables.heading(found, SMALL).endswith("geometric mean over the best rival 1.50x")


def test_engines_of_other_formats_stand_beside_each_other():
    visits = [of("openvino-int8", 2.0), of("syno-cpp", 5.0), of("syno-cpp-int8", 1.6)]
    found = NetworksTimes({}, visits)
    assert found.ratio(SMALL, "one") == 1.25
    table = tables.times_table(found, SMALL)
    assert list(table) == [("one", "5", "2", "1.6", "1.25x", "1e-06")]  # those of float32 first
    assert NetworksTimes({}, visits[:1]).ratio(SMALL, "one") is None


def test_the_table_of_starts_has_the_least_of_each_number():
    visits = []
    for repetition, (load, memory) in enumerate(((30.0, 50.0), (20.0, 60.0))):
        visit, one = of("syno-cpp", 2.0, repetition=repetition)
        each = dataclasses.replace(
            one.engines["syno-cpp"], load_ms=load, size_mb=45.5, memory_mb=memory
        )
        visits.append((visit, dataclasses.replace(one, engines={"syno-cpp": each})))
    found = NetworksTimes({}, [*visits, of("syno", 2.5)])
    (row,) = tables.start_table(found, SMALL)
    assert row == ("one", "1 s / – / – / –", "1 s / 20 ms / 45.5 MiB / 50 MiB")


def test_a_file_is_read_as_it_was_written_and_gone_on_with(tmp_path, monkeypatch):
    path = tmp_path / "networks.json"
    asked = NetworksSweep(
        ["squeezenet1_1"], [SMALL], ["eager"], 1, False, limits=ProcessLimits(seconds=0.01)
    )
    found = sweep.measure(path, asked)
    assert [each for _, each in found.visits] == ["it took more than 0 s"]
    assert tables.failures(found) == ["squeezenet1_1 in eager: it took more than 0 s"]
    found.visits.append(of("syno", 2.5))
    path.write_text(json.dumps(found.to_json()))
    assert sweep.read(path) == found
    said = []
    assert sweep.measure(path, asked, progress=lambda *each: said.append(each)) == found
    assert said == [(0, 0, "done")]  # nothing is left
    found.environment["commit"] = "another"
    path.write_text(json.dumps(found.to_json()))
    with pytest.raises(UserError, match="are of another commit"):
        sweep.measure(path, asked)
    path.write_text("[]")
    with pytest.raises(UserError, match="holds no times of networks"):
        sweep.read(path)
    with pytest.raises(UserError, match="there is no network 'resnet17'"):
        sweep.measure(tmp_path / "new.json", NetworksSweep(["resnet17"]))


@pytest.mark.slow
def test_one_network_is_measured_in_processes_of_its_own(tmp_path):
    asked = NetworksSweep(["squeezenet1_1"], [SMALL], ["eager", "onnxruntime"], 1, True, 2)
    found = sweep.measure(tmp_path / "networks.json", asked)
    assert tables.failures(found) == []
    assert [visit.engines for visit, _ in found.visits][-1] == ("eager", "onnxruntime")
    assert found.ms(SMALL, "squeezenet1_1", "onnxruntime") > 0
    assert found.turns_ms(SMALL, "squeezenet1_1", "onnxruntime") > 0


def test_the_picture_has_a_panel_for_each_setting(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "ratios.png"
    save_ratios(NetworksTimes({}, [of("syno", 2.0), of("openvino", 3.0)]), path)
    assert path.read_bytes().startswith(b"\x89PNG")
