"""Emitted sources as they stand in git: readable, and also run.

SYNO_UPDATE_GOLDEN=1 pytest tests/property -k golden writes them anew, to be read in the diff.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from .emitted import ROOT, check, zoo

FOLDER = ROOT / "tests/golden/pytorch"
ZOO = zoo()
GOLDEN = ("conv2d", "grouped", "operator-1", "operator-2", "operator-07795", "pixel-shuffle")


def path_of(name: str) -> Path:
    return FOLDER / f"{name.replace('-', '_')}.py"


@pytest.mark.parametrize("name", GOLDEN)
def test_the_source_is_the_one_in_git(name):
    source = ZOO[name].source()
    path = path_of(name)
    if os.environ.get("SYNO_UPDATE_GOLDEN"):
        path.write_text(source)
    difference = "\n".join(
        difflib.unified_diff(
            path.read_text().splitlines(), source.splitlines(), "in git", "now", lineterm=""
        )
    )
    assert not difference, (
        f"SYNO_UPDATE_GOLDEN=1 pytest tests/property -k golden updates it\n{difference}"
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_the_source_in_git_computes_the_operator(name):
    check(ZOO[name].with_sizes(N=3), path_of(name).read_text())


def test_every_golden_file_is_checked():
    assert {path.name for path in FOLDER.glob("*.py")} == {path_of(name).name for name in GOLDEN}
