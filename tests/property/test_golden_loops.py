"""Sources for C++, TVM and Triton as they stand in git: readable, and also run.

SYNO_UPDATE_GOLDEN=1 pytest tests/property -k golden writes them anew, to be read in the diff.
"""

from __future__ import annotations

import pytest

from syno.codegen import emitters

from .emitted import ROOT, check_golden
from .loop_emitters import check, needs, zoo

ZOO = zoo()
GOLDEN = ("conv2d", "operator-1")
EMITTERS = {"cpp": "cpp", "tvm": "py", "triton": "py"}  # and how their files end


def path_of(emitter: str, name: str):
    return ROOT / "tests/golden" / emitter / f"{name.replace('-', '_')}.{EMITTERS[emitter]}"


@pytest.mark.parametrize("emitter", EMITTERS)
@pytest.mark.parametrize("name", GOLDEN)
def test_the_source_is_the_one_in_git(emitter, name):
    check_golden(path_of(emitter, name), emitters.get(emitter).source(ZOO[name]))


@pytest.mark.parametrize("emitter", [pytest.param(name, marks=needs(name)) for name in EMITTERS])
def test_the_sources_in_git_compute_the_operators(emitter):
    sources = [path_of(emitter, name).read_text() for name in GOLDEN]
    check(emitter, [ZOO[name] for name in GOLDEN], sources)


@pytest.mark.parametrize("emitter", EMITTERS)
def test_every_golden_file_is_checked(emitter):
    found = {path.name for path in (ROOT / "tests/golden" / emitter).iterdir() if path.is_file()}
    assert found == {path_of(emitter, name).name for name in GOLDEN}
