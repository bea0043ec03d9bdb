"""Pages say by themselves what is to be known of the files that they quote."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from . import figures
from .figures import Block, missing_engines, problems, read
from .pages import ROOT, between, name
from .remarks import FOLDER, HEADING, MARK, remarks, table
from .test_figures import QUOTING

START, END = f"<!-- {MARK} -->\n", f"<!-- end of {MARK} -->\n"


@pytest.mark.parametrize("page", QUOTING, ids=name)
def test_a_page_has_the_remarks_on_its_files(page: Path) -> None:
    expected = table(page)
    text = page.read_text(encoding="utf-8")
    if os.environ.get("SYNO_UPDATE_GOLDEN"):
        if START not in text and expected:
            text = f"{text.rstrip()}\n\n{HEADING}\n\n{START}{END}"
        if START in text:
            head, _, rest = text.partition(START)
            text = f"{head}{START}{expected}{rest[rest.index(END) :]}"
        page.write_text(text, encoding="utf-8")
    if not expected:
        assert START not in text
        return
    start, end = between(page, MARK)
    assert text[start:end] == expected, (
        "SYNO_UPDATE_GOLDEN=1 pytest tests/docs -k remarks writes it anew"
    )


def written(path: Path, **content: Any) -> list[str]:
    path.write_text(json.dumps(content), encoding="utf-8")
    return remarks(path)


COMMIT = "0123456789" * 4
ENGINES = ("eager", "inductor", "onnxruntime", "openvino")


def times(*engines: str) -> list[dict[str, str]]:
    return [{"network": "none", "engine": engine} for engine in engines]


def test_remarks_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    environment = {"commit": COMMIT + "+"}
    assert written(path, environment={"commit": COMMIT}, noisy=False) == []
    assert written(path, environment=environment, provenance={"tree": "changed"}) == [
        "from changed sources on `01234567`"
    ]
    assert written(path, provenance={"commit": "unknown", "note": "Why."}) == [
        "its commit is not recorded",
        "Why.",
    ]
    assert written(path, layers=[{"noisy": False}, {"noisy": True}]) == [
        "other processes used the machine"
    ]
    assert written(path, times=times(*ENGINES)) == []
    assert written(path, times=times("eager", "syno", "openvino")) == [
        "compared without TorchInductor, ONNX Runtime"
    ]


def test_an_engine_that_one_layer_lacks_is_missing() -> None:
    layers = [{"times": times(*ENGINES)}, {"times": times(*ENGINES[:2], "syno-cpp")}]
    assert missing_engines({"layers": layers}) == ("onnxruntime", "openvino")
    assert missing_engines({"times": [{"name": "operator-1", "compiled": 0.9}]}) == ()


# A file that lacks TorchInductor, as pages quote it.
LACKING = f"{FOLDER}network_lacking.json"
TEXT = "It is 1.10 times as fast as the best other engine"
COMMENT = f"""<!-- figures: {LACKING}
It is # times => network_lacking.times[0].over_rival
-->"""


def test_a_comparison_that_does_not_name_the_missing_engines_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    path = tmp_path / LACKING
    path.parent.mkdir(parents=True)
    content = {"times": [each | {"over_rival": 1.1} for each in times("eager", "openvino")]}
    path.write_text(json.dumps(content))

    def found(text: str) -> list[str]:
        return problems(Block(text, 1, COMMENT))

    (problem,) = found(TEXT)
    assert problem.startswith(f"it compares by {LACKING} and does not name TorchInductor, ONNX")
    assert found(f"{TEXT}, without TorchInductor and ONNX Runtime") == []
    content["times"] += times("inductor", "onnxruntime")
    path.write_text(json.dumps(content))
    read.cache_clear()
    assert found(TEXT) == []


def test_the_folder_of_results_is_that_of_the_check() -> None:
    assert (ROOT / FOLDER).is_dir()
