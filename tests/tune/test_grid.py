"""Grids: the form of the artifact and the shorter one, their tasks, and wrong ones."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from syno import UserError
from syno.operators import zoo
from syno.tune import read_grid, single_grid, tasks_of
from syno.tune.grid import BACK_ENDS, layer_size
from syno.tune.run import check_folders
from syno.tune.tasks import ORIGINAL, TuningTask

# The targets of the paper's artifact.
ARTIFACT = {
    "targets": [
        {
            "rpc_key": "a100",
            "prefix": "a100",
            "baseline_dir": "./baseline-latency",
            "target": "cuda -arch=sm_80 -max_threads_per_block=1024 -thread_warp_size=32",
            "target_host": "llvm -mtriple=x86_64-pc-linux-gnu -num-cores=128",
            "device": "cuda",
        },
        {
            "rpc_key": "jetson-orin-nano",
            "prefix": "mdev",
            "baseline_dir": "./baseline-latency",
            "target": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a78 -num-cores=6",
            "device": "cpu",
        },
    ],
    "kernels_dirs": {"resnet_18": ["./good/07889", "operator-2"], "torchvision/resnet34": []},
}


def written(folder: Path, content: object) -> Path:
    path = folder / "grid.json"
    path.write_text(json.dumps(content))
    return path


def short(**changes: Any) -> dict[str, Any]:
    return {"targets": [{"name": "here"}], "operators": ["conv2d"], "layers": ["8x8"]} | changes


def test_the_grid_of_the_artifact_is_read_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "a100" / "good" / "07889"
    folder.mkdir(parents=True)
    (folder / "operator.txt").write_text(zoo.load("operator-1").text)
    tasks = tasks_of(read_grid(written(tmp_path, ARTIFACT)))
    # Two targets; originals of two models, and two operators in one of them.
    assert len(tasks) == 2 * (2 + 2) * len(BACK_ENDS)
    check_folders(tasks)
    by_folder = {str(task.folder.relative_to(tmp_path)): task for task in tasks}
    found = by_folder["a100/good/07889/resnet_18/tvm-cuda"]
    assert found.model == "resnet18"
    assert found.text == zoo.load("operator-1").text
    assert (found.rpc_key, found.device) == ("a100", "cuda")
    assert by_folder["a100/baseline-latency/resnet_18/eager-cuda"].operator == ORIGINAL
    # A name of the zoo stands for a folder that is not there.
    assert by_folder["mdev/operator-2/resnet_18/cpp-cpu"].text == zoo.load("operator-2").text
    missing = [task for task in tasks if task.problem]
    assert {task.target for task in missing} == {"jetson-orin-nano-cpu"}
    assert all("mdev/good/07889" in task.problem for task in missing)


def test_the_short_form(tmp_path: Path) -> None:
    content = short(models=["resnet-small"], back_ends=["cpp", "eager"], trials=3, baseline=False)
    tasks = tasks_of(read_grid(written(tmp_path, content)))
    assert [(task.place, task.back_end) for task in tasks] == [
        ("resnet-small", "cpp"),
        ("resnet-small", "eager"),
        ("8x8", "cpp"),
        ("8x8", "eager"),
    ]
    assert {task.trials for task in tasks} == {3}
    assert tasks[0].folder == tmp_path / "grid-tuned/here/conv2d/resnet-small/cpp-cpu"


def test_a_whole_network_is_a_place_of_its_own(tmp_path: Path) -> None:
    content = short(
        layers=[], models=["resnet-small"], networks=["resnet-small"], back_ends=["tvm"]
    )
    tasks = tasks_of(read_grid(written(tmp_path, content)))
    found = {task.place: task for task in tasks if task.operator != ORIGINAL}
    assert set(found) == {"resnet-small", "resnet-small-network"}
    network = found["resnet-small-network"]
    assert (network.model, network.whole) == ("resnet-small", True)
    assert network.folder == tmp_path / "grid-tuned/here/conv2d/resnet-small-network/tvm-cpu"
    slots = dataclasses.replace(network, whole=False)
    assert slots.key != network.key
    # Without an operator, the original network alone is tuned.
    (alone,) = tasks_of(single_grid([], networks=["cnn-small"], out=tmp_path, back_ends=("tvm",)))
    assert alone.operator == ORIGINAL and alone.whole


def test_a_task_survives_json_and_its_key_names_what_decides_the_result(tmp_path: Path) -> None:
    grid = single_grid(["conv2d"], layers=["8x8"], out=tmp_path, rounds=20)
    (task, *_) = tasks_of(grid)
    assert TuningTask.from_json(json.loads(json.dumps(task.as_json()))) == task
    elsewhere = tasks_of(single_grid(["conv2d"], layers=["8x8"], out=tmp_path / "b", rounds=20))
    assert elsewhere[0].key == task.key
    longer = tasks_of(single_grid(["conv2d"], layers=["8x8"], out=tmp_path, rounds=30))
    assert longer[0].key != task.key


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "the grid is not an object"),
        ({}, "the grid has no 'targets'"),
        (short(targets=[]), "number of entries of the grid.targets is too small"),
        (short(targets=[{"rpckey": "a"}]), "unknown field 'rpckey'\n  did you mean: rpc_key"),
        (short(targets=[{"device": "tpu"}]), "expected: one of cpu, cuda"),
        (short(targets=[{}, {}]), "two targets have the name 'here-cpu'"),
        (short(back_ends=["tvn"]), "did you mean: tvm"),
        (short(trials=True), "the grid.trials is not an integer"),
        (short(trials=64.0), "the grid.trials is not an integer"),
        (short(rounds=20, plans=1001), "at most 1000"),
        (short(operators=["a\0b"]), "the grid.operators[0] holds a NUL"),
        (short(rounds=1), "at least 20"),
        (short(layers=["8"]), "the length of the grid.layers"),
        (short(layers=["8by8"]), "'8by8' is no layer"),
        (short(layers=[]), "operators without a place"),
        (short(binding={"g": "x"}), "the grid.binding.g is not an integer"),
        ({"targets": [{}]}, "the grid has no task"),
    ],
)
def test_a_wrong_grid_is_named_with_its_field(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(UserError) as error:
        read_grid(written(tmp_path, content))
    assert words in str(error.value)
    assert "grid.json" in str(error.value)


def test_an_unknown_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown model 'resnet-smal'"):
        tasks_of(read_grid(written(tmp_path, short(models=["resnet-smal"]))))


def test_two_tasks_with_one_folder_are_refused(tmp_path: Path) -> None:
    content = short(targets=[{"name": n, "prefix": "same"} for n in ("one", "two")])
    with pytest.raises(UserError, match="two tasks have the same folder"):
        check_folders(tasks_of(read_grid(written(tmp_path, content))))


@pytest.mark.parametrize("text", ["64", "x56", "0x8", "64x", "-1x3"])
def test_a_layer_is_channels_and_size(text: str) -> None:
    assert layer_size("64x56") == layer_size("64@56") == (64, 56)
    with pytest.raises(UserError, match="is no layer"):
        layer_size(text)


@pytest.mark.parametrize(
    "target",
    [
        {"prefix": "/elsewhere"},
        {"prefix": "../beside"},
        {"prefix": "a/../../beside"},
        {"name": "../../beside"},
        {"prefix": "a", "baseline_dir": "../../beside"},
        {"prefix": "link"},
        {"prefix": "a\0b"},
    ],
)
def test_results_outside_of_the_folder_of_the_grid_are_refused(
    tmp_path: Path, target: dict[str, str]
) -> None:
    folder = tmp_path / "grids"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    path = written(folder, short(targets=[target]))
    with pytest.raises(UserError, match=r"outside of the folder of the grid|holds a NUL"):
        tasks_of(read_grid(path))
    if "\0" not in target.get("prefix", ""):
        assert tasks_of(read_grid(path, outside=True))


@pytest.mark.parametrize("operator", ["../../../beside", "/elsewhere/op"])
def test_folders_of_operators_do_not_lead_out_either(tmp_path: Path, operator: str) -> None:
    folder = tmp_path / "grids"
    folder.mkdir()
    content = {"targets": [{"prefix": "a"}], "kernels_dirs": {"resnet18": [operator]}}
    found = folder / "a" / operator
    if operator.startswith(".."):
        found.mkdir(parents=True)
        (found / "operator.txt").write_text(zoo.load("operator-1").text)
        with pytest.raises(UserError, match="outside of the folder of the grid"):
            tasks_of(read_grid(written(folder, content)))
    else:
        tasks = tasks_of(read_grid(written(folder, content)))
        assert all(task.folder.is_relative_to(folder / "a") for task in tasks)
