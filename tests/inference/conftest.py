"""Libraries are compiled with little optimization: the tests are about what they compute."""

import pytest

from syno.codegen.native import QUICK_FLAGS
from syno.inference.library import load


@pytest.fixture(autouse=True)
def quick_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "FLAGS", QUICK_FLAGS)
