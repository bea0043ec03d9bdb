"""The process that forks evaluations ends without a word."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from syno.runs import processes
from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator

sys.path.insert(0, str(Path(__file__).parent))
import quiet_end  # the other process imports it by this name, too


@pytest.mark.slow
@pytest.mark.skipif(not processes.is_supported(), reason="needs Linux")
def test_extensions_find_no_leaks_where_evaluations_were_forked(capfd):
    """Torch imports triton there, if it is installed; what stays frozen counts as leaked."""
    with IsolatedEvaluator(quiet_end.Quiet) as evaluator:
        assert evaluator.evaluate("any").accuracy == 0.5
    said = capfd.readouterr().err
    assert said == "0 objects are frozen\n"
