"""`syno models`, and models by name in other commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from syno.cli.main import cli
from syno.network import models


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture(scope="module")
def listed() -> list[dict[str, Any]]:
    result = run("models", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_list_has_every_model_with_slots_sizes_and_costs(listed: list[dict[str, Any]]) -> None:
    assert [entry["name"] for entry in listed] == list(models.list_models())
    for entry in listed:
        assert entry["slots"] == sum(entry["multiplicities"]) > 0
        assert len(entry["bindings"]) == len(entry["multiplicities"])
        assert 0 < entry["slot_macs"] < entry["macs"]
        assert 0 < entry["slot_params"] < entry["params"]
    resnet = next(entry for entry in listed if entry["name"] == "resnet18")
    assert resnet["bindings"][1] == {"C_in": 64, "C_out": 128, "H": 28, "W": 28}
    assert (resnet["input_shape"], resnet["preset"]) == ([3, 224, 224], "paper/resnet18")


def test_the_table_stands_beside_models_that_cannot_be_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    result = run("models")
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert " 94% " in lines["resnet-small"]
    for name in ("resnet18", "gpt2"):
        assert "%" not in lines[name]
    text = " ".join(result.stdout.split())
    assert "pip install 'syno[vision]'" in text and "pip install 'syno[language]'" in text


def test_one_model_is_shown_with_options_and_every_layer() -> None:
    words = ("models", "resnet18", "--size", "32", "--classes", "10")
    result = run(*words, "--model-option", "cifar_stem=1")
    assert result.exit_code == 0, result.output
    assert "cifar_stem" in result.stdout and "0 to 1" in result.stdout
    assert "slot, 2x2 average pooling first" in result.stdout
    assert "kept: name is not layer*" in result.stdout
    assert "4 x C_in=64, C_out=64, H=32, W=32" in result.stdout
    data = json.loads(run(*words, "--model-option", "cifar_stem=1", "--json").stdout)
    assert data["options"]["width"]["default"] == 64
    assert len(data["layers"]) == 21
    assert data["layers"][-1]["reason"] == "not a conv2d layer"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("resnt18",), "did you mean: resnet18"),
        (("--size", "32"), "given without a model"),
        (("vit_b_16", "--size", "100"), "a multiple of its patches of 16 px"),
        (("resnet18", "--model-option", "width=1"), "from 4 to 512"),
        (("resnet18", "--model-option", "width=x"), "cannot read the model option 'width=x'"),
        (("gpt2", "--classes", "10"), "reads token ids, not images"),
        (("timm/resnet19",), "timm"),
        (("resnet18", "--model-option", "weights=none.pt"), "no file with weights at none.pt"),
    ],
)
def test_mistakes_are_told_without_a_traceback(arguments: tuple[str, ...], message: str) -> None:
    result = run("models", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_search_takes_a_model_of_torchvision_and_its_weights(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    torch.manual_seed(5)
    small = {"width": 4, "cifar_stem": 1}
    net = models.build("resnet18", classes=10, channels=1, size=8, **small)
    torch.save(net.state_dict(), tmp_path / "weights.pt")
    words = ["search", "--model", "resnet18", "--data", "digits", "--store", store]
    for option in ("width=4", "cifar_stem=1", f"weights={tmp_path / 'weights.pt'}"):
        words += ["--model-option", option]
    words += ["--evaluations", "1", "--images", "64", "--epochs", "1", "--max-nodes", "3000"]
    words += ["--min-fit", "0.5", "--max-slowdown", "100", "--repeats", "20", "--json"]
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    first = json.loads(result.stdout)
    assert (first["name"], first["trained"]) == ("resnet18-digits-1", 1)
    again = run("resume", store, "--evaluations", "2", "--json")
    assert again.exit_code == 0, again.stderr
    both = json.loads(again.stdout)
    assert both["trained"] == 2
    assert both["baseline_accuracy"] == first["baseline_accuracy"]


def test_a_search_on_images_refuses_a_language_model(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    result = run("search", "--model", "gpt2-small", "--data", "digits", "--store", store)
    assert result.exit_code == 2
    assert "model 'gpt2-small' is for text, and 'digits' is images" in result.stderr
