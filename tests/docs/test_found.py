"""The operators in examples/found compute what they say, and stand in the table of ResNet-18."""

from __future__ import annotations

import json

import pytest

from syno import Operator
from syno.codegen.verify import verify

from .pages import ROOT

FOUND = sorted((ROOT / "examples/found").glob("*.txt"))
SIZES = {"N": 1, "C_in": 8, "C_out": 16, "H": 6, "k": 3, "m": 2, "q": 4}


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_it_is_verified(path):
    operator = Operator.from_text(path.read_text(encoding="utf-8"))
    sizes = {name: SIZES[name] for name in operator.variables}
    assert verify(operator, sizes, emitter="cpp").passed


def test_all_of_them_are_measured():
    results = ROOT / "bench/results/network_resnet18_operators.json"
    times = json.loads(results.read_text(encoding="utf-8"))["times"]
    assert {path.stem for path in FOUND} < {time["network"] for time in times}
