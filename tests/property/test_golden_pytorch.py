"""Emitted sources as they stand in git: readable, and also run.

SYNO_UPDATE_GOLDEN=1 pytest tests/property -k golden writes them anew, to be read in the diff.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .emitted import ROOT, check, check_golden, zoo

FOLDER = ROOT / "tests/golden/pytorch"
ZOO = zoo()
GOLDEN = ("conv2d", "grouped", "operator-1", "operator-2", "operator-07795", "pixel-shuffle")


def path_of(name: str) -> Path:
    return FOLDER / f"{name.replace('-', '_')}.py"


@pytest.mark.parametrize("name", GOLDEN)
def test_the_source_is_the_one_in_git(name):
    check_golden(path_of(name), ZOO[name].source())


@pytest.mark.parametrize("name", GOLDEN)
def test_the_source_in_git_computes_the_operator(name):
    check(ZOO[name].with_sizes(N=3), path_of(name).read_text())


def test_every_golden_file_is_checked():
    assert {path.name for path in FOLDER.glob("*.py")} == {path_of(name).name for name in GOLDEN}
