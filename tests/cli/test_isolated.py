"""The process that runs exported code really has no Syno."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from syno.cli.isolated import run_without_syno

MODULE = """
{head}
import torch
from torch import nn

class SynoOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.w0 = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.w0
"""


def written(folder: Path, head: str) -> Path:
    file = folder / "exported.py"
    file.write_text(MODULE.format(head=head))
    return file


X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.array([1, 2, 3], dtype=np.float32)


def test_it_runs_with_the_weights_it_is_given(tmp_path: Path) -> None:
    run = run_without_syno(written(tmp_path, ""), X, X * W, {"w0": W})
    assert run.ran
    assert run.max_error == 0.0


def test_a_wrong_result_shows_as_an_error(tmp_path: Path) -> None:
    assert run_without_syno(written(tmp_path, ""), X, X * W, {}).max_error > 0.5


def test_code_that_imports_syno_does_not_run(tmp_path: Path) -> None:
    run = run_without_syno(written(tmp_path, "import syno"), X, X, {})
    assert not run.ran
    assert run.problem == "ImportError: this process may not import syno"
