"""ARCHITECTURE.md names what exists; docs/trust.md names tests that do."""

from __future__ import annotations

import re
import tomllib

import pytest

from .pages import ROOT, prose

PAGE = ROOT / "ARCHITECTURE.md"


TRUST = prose(ROOT / "docs/trust.md")


@pytest.mark.parametrize(
    "text",
    [TRUST.partition("\n## Threat model\n")[0], TRUST.partition("\n## Invariants\n")[2]],
    ids=["promises", "invariants"],
)
def test_every_claim_names_tests_that_exist(text):
    rows = re.findall(r"^\| (?!claim|promise|---)(.+?) \| (.+?) \|", text, re.MULTILINE)
    assert len(rows) > 20
    missing = []
    for promise, where in rows:
        named = re.findall(r"`([^`]+)`", where)
        assert named, promise
        missing += [name for name in named if not _exists(name)]
    assert missing == []


def _exists(name: str) -> bool:
    """`tests/x/test_y.py::test_z`, or `src/x_test.cpp: Suite.Name`."""
    if "::" in name:
        file, *_, test = name.split("::")
        text = _text(file)
        return re.search(rf"^ *def {test}\(", text, re.MULTILINE) is not None
    file, _, test = name.partition(": ")
    suite, _, case = test.partition(".")
    return re.search(rf"TEST(_F|_P)?\({suite}, {case}\)", _text(file)) is not None


def _text(file: str) -> str:
    path = ROOT / file
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def test_every_folder_of_the_layout_exists():
    rows = re.findall(r"^\| `([\w./]+)/` \|", prose(PAGE), re.MULTILINE)
    assert len(rows) > 20
    assert [row for row in rows if not (ROOT / row).is_dir()] == []


def test_every_file_that_is_named_with_its_folder_exists():
    files = re.findall(r"`((?:src|python|tests|docs|examples)/[\w./<>]+\.\w+)`", prose(PAGE))
    assert len(files) > 100
    missing = [f for f in files if not any(ROOT.glob(re.sub(r"<\w+>", "*", f)))]
    assert missing == []


def test_the_layout_names_every_folder_of_the_sources():
    named = set(re.findall(r"`([\w./]+)/`", prose(PAGE)))
    folders = {
        path.relative_to(ROOT).as_posix()
        for top in ("src/syno", "python/syno")
        for path in (ROOT / top).iterdir()
        if path.is_dir() and path.name != "__pycache__" and any(path.iterdir())
    }
    assert sorted(folders - named) == []


def test_the_layers_are_those_of_layers_toml():
    layers = tomllib.loads((ROOT / "layers.toml").read_text(encoding="utf-8"))["cpp"]["layers"]
    text = prose(PAGE)
    for layer, entry in layers.items():
        uses = ", ".join(entry["uses"]) or "nothing"
        uses = "all of the above" if uses == "*" else uses
        assert f"| {layer} | {uses} |" in text, layer


# The folders that the table "The way of one operator" visits.
_FLOW = {
    "python/syno": (
        "operators",
        "study",
        "network",
        "codegen",
        "train",
        "measure",
        "store",
        "report",
    ),
    "src/syno": ("spec", "space", "rules", "quality", "key", "graph", "plan", "emit", "interp"),
}


def test_the_way_of_one_operator_visits_its_folders_in_order():
    text = prose(PAGE)
    part = text[text.index("## The way of one operator") : text.index("## Entry points")]
    files = re.findall(r"`((?:src|python)/[\w./]+)`", part)
    folders = {f"{top}/{name}" for top, names in _FLOW.items() for name in names}
    assert {"/".join(name.split("/")[:3]) for name in files} == folders
    stages = re.findall(r"^\| (\w+) \|", part, re.MULTILINE)
    assert stages[1:4] == ["specification", "search", "operator"]
    assert stages[4:8] == ["proposal", "plan", "code", "verify"]
    assert stages[8:] == ["train", "measure", "store", "report"]
