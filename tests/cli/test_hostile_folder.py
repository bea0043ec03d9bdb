"""Commands in a folder of a stranger: nothing that lies there is run or read as settings."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from syno.operators import zoo

from . import hostile_folder

SIZES = "N=1,C_in=16,C_out=16,H=8,g=4,s=2,k=3"
# One short training; nothing is rejected for being slow.
TRAINING = (
    "--data digits --epochs 1 --images 200 --repeats 20 --max-nodes 2000 --max-slowdown 1000 "
    "--model-option width=4"
)


class Folders:
    """A hostile folder and an empty one; a command runs in both."""

    def __init__(self, top: Path) -> None:
        self.hostile, self.empty, self.witness = top / "hostile", top / "empty", top / "witness"
        self.hostile.mkdir()
        self.empty.mkdir()
        self.planted = hostile_folder.plant(self.hostile, self.witness)
        assert {"ctypes.py", "matplotlibrc", "g++"} < self.planted
        self.script = hostile_folder.console_script(top)
        self.cache = top / "cache"
        self.operator = top / "operator.txt"
        self.operator.write_text(zoo.load("operator-1").text)

    def both(self, command: str) -> tuple[str, str]:
        """What the command prints in the hostile folder and in the empty one."""
        found = self.run(command)
        here = self._run(self._words(command), self.empty)
        assert here.returncode == 0, here.stderr
        return found, here.stdout

    def run(self, command: str, code: int = 0) -> str:
        """What the command prints in the hostile folder, where nothing planted may be touched."""
        # As in a shell whose PATH begins with the current folder.
        path = os.pathsep.join([".", "", os.environ["PATH"]])
        with hostile_folder.watched(self.hostile) as seen:
            there = self._run(self._words(command), self.hostile, PATH=path)
        assert not self.witness.exists(), self.witness.read_text()
        assert not seen.opened & self.planted
        assert there.returncode == code, there.stderr
        return there.stdout

    def _words(self, command: str) -> list[str]:
        return [word.format(op=self.operator) for word in command.split()]

    def _run(
        self, words: Sequence[str], folder: Path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return hostile_folder.run(self.script, folder, *words, cache=self.cache, **environment)

    def same(self, *names: str) -> None:
        """The command wrote the same files in both folders."""
        for name in names:
            written = [(folder / name).read_bytes() for folder in (self.hostile, self.empty)]
            assert written[0] == written[1], name
            assert len(written[0]) > 0


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_the_watch_and_the_witness_see_what_they_are_for(folders: Folders) -> None:
    """That nothing is found elsewhere says something only where something would be found."""
    code = "import ctypes, matplotlib"
    with hostile_folder.watched(folders.hostile) as seen:
        hostile_folder.run_python(["-c", code], folders.hostile)
        hostile_folder.run_python(["-P", "-c", "import matplotlib"], folders.hostile)
    assert "ctypes" in folders.witness.read_text().split()
    assert {"ctypes.py", "matplotlibrc"} <= seen.opened


@pytest.mark.slow
def test_export_measures_plans_and_checks_its_file(folders: Folders) -> None:
    command = "export {op} --binding " + SIZES + " --format cpp --measure-plans 2 --check -o op1"
    there, here = folders.both(command)
    assert "without Syno: right" in there and there.replace(" ", "") == here.replace(" ", "")
    folders.same("op1.cpp", "op1.h", "op1.bin")


def test_verify_with_processes_of_its_own(folders: Folders) -> None:
    found = json.loads(folders.run("verify --random 51 --jobs 2 --json"))
    assert found["operators"] == 51


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs the extra triton")
def test_verify_with_triton(folders: Folders) -> None:
    assert "passed" in folders.run("verify {op} --emitters triton --binding " + SIZES)


@pytest.mark.slow
def test_doctor_runs_no_compiler_of_the_folder(folders: Folders) -> None:
    there, here = folders.both("doctor --json")
    for name in ("compiler", "graphviz"):
        found = [_check(text, name) for text in (there, here)]
        assert found[0] == found[1]


@pytest.mark.slow
def test_an_isolated_training(folders: Folders) -> None:
    found = json.loads(
        folders.run(
            "train {op} --binding g=4,s=2,k=3 --data digits --epochs 1 --images 100 --no-latency "
            "--model-option width=4 --store runs.db --json"
        )
    )
    assert found


@pytest.mark.slow
def test_every_format_of_a_verification(folders: Folders) -> None:
    texts = folders.both("verify --random 120 --jobs 2 --emitters pytorch,cpp --json")
    found = [_without(json.loads(text)) for text in texts]
    assert found[0] == found[1]


@pytest.mark.slow
def test_an_isolated_search_and_its_report(folders: Folders) -> None:
    folders.both(f"search --evaluations 1 --store runs.db --json {TRAINING}")
    folders.both("report runs.db --png -o page.html")
    assert _drawings(folders.hostile / "page.html") == _drawings(folders.empty / "page.html")
    # Of times, which differ: the ground of the picture, which the planted settings make red.
    assert _corner(folders.hostile / "front.png") == _corner(folders.empty / "front.png")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["torch", "torch-export", "onnx", "aoti", "triton"])
def test_export_in_other_formats(folders: Folders, form: str) -> None:
    if form == "triton" and importlib.util.find_spec("triton") is None:
        pytest.skip("needs the extra triton")
    measured = "" if form == "triton" else "--measure-plans 2"  # which no emitter for it can do
    command = f"export {{op}} --binding {SIZES} --format {form} {measured} --check -o op1"
    assert "without Syno: " in folders.run(command)


@pytest.mark.slow
def test_compiled_trainings_measured_kernels_and_experiments(folders: Folders) -> None:
    folders.run(
        "bench kernels --forms frozen --operators conv2d --layers 512@7 --batch 1 --threads 1 "
        "--rounds 20 --measure-plans 2 --picture kernels.png"
    )
    folders.run(
        "experiment ranking --data digits --operators 1 --low digits --high digits --high-epochs 1 "
        "--arms 0 --seeds 1 --limit 2 --jobs 2 --model-option width=4 --out table.jsonl "
        "--picture table.png",
        code=1,  # trainings are left
    )


@pytest.mark.slow
def test_the_demonstration(folders: Folders) -> None:
    folders.run("demo --operators 1 --out out --json")


def _without(found: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in found.items() if "second" not in name}


def _check(text: str, name: str) -> object:
    (found,) = [check for check in json.loads(text) if check["name"] == name]
    return found


def _drawings(page: Path) -> list[str]:
    """Drawings of operators; those of Graphviz hold its own coordinates."""
    return re.findall(r'<svg role="img" aria-label="drawing.*?</svg>', page.read_text(), re.DOTALL)


def _corner(picture: Path) -> object:
    from PIL import Image

    with Image.open(picture) as image:
        return image.convert("RGB").getpixel((2, 2))
